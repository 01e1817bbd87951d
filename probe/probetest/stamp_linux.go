package probetest

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// receiver reads from a socket together with the kernel's receive time.
type receiver struct {
	tcp *net.TCPConn
	raw syscall.RawConn // nil: the kernel gives no times
	oob []byte
}

func newReceiver(c *net.TCPConn) receiver {
	raw, err := c.SyscallConn()
	if err != nil || !askForStamps(raw) {
		return receiver{tcp: c}
	}
	return receiver{tcp: c, raw: raw, oob: make([]byte, 128)}
}

// stampAccepted has the kernel stamp what arrives on accepted connections from their first byte on.
func stampAccepted(l net.Listener) {
	if tcp, ok := l.(*net.TCPListener); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			askForStamps(raw)
		}
	}
}

func askForStamps(raw syscall.RawConn) bool {
	var option error
	err := raw.Control(func(fd uintptr) {
		option = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	return err == nil && option == nil
}

// receive reads once. The stamp is in nanoseconds of the wall clock; 0 is none.
func (r *receiver) receive(p []byte) (n int, stamp int64, err error) {
	if r.raw == nil || len(p) == 0 {
		n, err = r.tcp.Read(p)
		return n, 0, err
	}
	var oobn int
	var errno error
	err = r.raw.Read(func(fd uintptr) bool {
		for {
			n, oobn, _, _, errno = unix.Recvmsg(int(fd), p, r.oob, 0)
			if errno != unix.EINTR {
				return errno != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return 0, 0, err
	case errno != nil:
		return 0, 0, os.NewSyscallError("recvmsg", errno)
	case n == 0:
		return 0, 0, io.EOF
	}
	return n, kernelStamp(r.oob[:oobn]), nil
}

func kernelStamp(oob []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		}
	}
	return 0
}
