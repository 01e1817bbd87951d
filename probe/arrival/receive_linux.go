package arrival

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiver reads a socket by recvmsg, which tells when the kernel received the bytes. It allocates nothing per
// read. It is not safe for concurrent use.
type receiver struct {
	raw  syscall.RawConn
	recv func(fd uintptr) bool // r.recvmsg, made once

	msg unix.Msghdr
	iov unix.Iovec
	oob [8]uint64 // aligned for a control message; one with a struct timespec takes 4
	n   int
	err error
}

// newReceiver returns nil where c is no socket or gives no receive times.
func newReceiver(c net.Conn) *receiver {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	var enabled error
	if err := raw.Control(func(fd uintptr) { enabled = stampReceives(int(fd)) }); err != nil || enabled != nil {
		return nil
	}
	r := &receiver{raw: raw}
	r.recv = r.recvmsg
	return r
}

func stampReceives(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
}

// read fills p like net.Conn's Read and returns the kernel's receive time of the last byte, in nanoseconds since
// 1970, or 0 where it gave none.
func (r *receiver) read(p []byte) (n int, received int64, err error) {
	r.iov.Base = &p[0]
	r.iov.SetLen(len(p))
	err = r.raw.Read(r.recv)
	r.iov.Base = nil
	if err == nil && r.err != nil {
		err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("recvmsg", r.err)}
	}
	if err != nil {
		return 0, 0, err
	}
	if r.n == 0 {
		return 0, 0, io.EOF
	}
	return r.n, r.received(), nil
}

// recvmsg reports whether the socket had something to say; else the poller waits for it and calls again.
func (r *receiver) recvmsg(fd uintptr) bool {
	for {
		r.msg = unix.Msghdr{Iov: &r.iov, Control: (*byte)(unsafe.Pointer(&r.oob))}
		r.msg.SetIovlen(1)
		r.msg.SetControllen(int(unsafe.Sizeof(r.oob)))
		n, _, errno := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.msg)), 0)
		switch errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		case 0:
			r.n, r.err = int(n), nil
		default:
			r.n, r.err = 0, errno
		}
		return true
	}
}

// received returns the time in the control message, or 0.
func (r *receiver) received() int64 {
	if int(r.msg.Controllen) < unix.CmsgLen(int(unsafe.Sizeof(unix.Timespec{}))) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&r.oob))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SO_TIMESTAMPNS {
		return 0
	}
	ts := (*unix.Timespec)(unsafe.Add(unsafe.Pointer(&r.oob), unix.CmsgLen(0)))
	return ts.Nano()
}

// keepStamping holds a socket with receive times open. The kernel stamps packets only while some socket wants it
// and takes a moment to begin, so the first answer on the only connection of a process could have no time.
// The returned function lets go.
func keepStamping() func() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	_ = stampReceives(fd) // where it fails, the reads' own fallback says so
	return func() { _ = unix.Close(fd) }
}
