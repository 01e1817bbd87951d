package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"goodput_exporter/probe/arrival"
)

// ErrCRC says that a frame's checksum is not that of its bytes.
var ErrCRC = errors.New("the checksum of a frame is wrong")

// AWS cuts a body of application/vnd.amazon.eventstream into its messages, whose two checksums are verified. A
// message that tells an exception has its type as the event's name and is marked as a failure.
type AWS struct {
	message []byte // as far as it came
	decoder *eventstream.Decoder
	payload []byte
}

// prelude is the length of a message's fixed beginning: two lengths and their checksum.
const prelude = 12

// Feed implements Framer.
func (a *AWS) Feed(p []byte, at arrival.Stamp, emit func(Frame) error) error {
	a.message = append(a.message, p...)
	rest := a.message
	for len(rest) >= prelude {
		// Before the length is believed: what waits for the end of a length that is wrong waits for ever.
		if crc32.ChecksumIEEE(rest[:prelude-4]) != binary.BigEndian.Uint32(rest[prelude-4:]) {
			return fmt.Errorf("%w: that of its lengths", ErrCRC)
		}
		n := int(binary.BigEndian.Uint32(rest))
		if n > MaxFrame {
			return ErrTooLarge
		}
		if n < prelude+4 {
			return fmt.Errorf("%w: a message of %d bytes", ErrCRC, n)
		}
		if len(rest) < n {
			break
		}
		f, err := a.decode(rest[:n])
		if err != nil {
			return err
		}
		f.Stamp = at
		if err := emit(f); err != nil {
			return err
		}
		rest = rest[n:]
	}
	a.message = append(a.message[:0], rest...)
	return nil
}

func (a *AWS) decode(message []byte) (Frame, error) {
	if a.decoder == nil {
		a.decoder = eventstream.NewDecoder()
	}
	m, err := a.decoder.Decode(bytes.NewReader(message), a.payload[:0])
	if err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrCRC, err)
	}
	a.payload = m.Payload
	f := Frame{Data: m.Payload}
	header := func(name string) string {
		if v := m.Headers.Get(name); v != nil {
			return v.String()
		}
		return ""
	}
	switch header(":message-type") {
	case "exception":
		f.Event, f.Failure = header(":exception-type"), true
	case "error":
		f.Event, f.Failure = header(":error-code"), true
		if len(f.Data) == 0 {
			f.Data = []byte(header(":error-message"))
		}
	default:
		f.Event = header(":event-type")
	}
	return f, nil
}

// Close implements Framer. A cut message is nothing: its checksum never came.
func (*AWS) Close(func(Frame) error) error { return nil }
