// Package closedport gives tests an address at which nobody listens. A listener that is opened and
// closed gives none: its port is free then, and another process may get it before the test has asked.
package closedport

import (
	"net"
	"sync"
	"testing"
)

// New returns the address of a port of 127.0.0.1 that refuses connections until the test ends or free is called. The port is the near end of
// a connection, so nobody else gets it. It is bound before the connection is made: a port that the system chooses for a connection is shared with
// connections to other addresses. After free the test may listen there.
func New(t testing.TB) (address string, free func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	bound := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	near, err := bound.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	free = sync.OnceFunc(func() {
		_ = near.(*net.TCPConn).SetLinger(0) // or the port would wait for late packets
		_ = near.Close()
		_ = far.Close()
	})
	t.Cleanup(free)
	return near.LocalAddr().String(), free
}
