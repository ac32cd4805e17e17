package dci

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections is the most connections if the process may open twice as many files; otherwise
// the most is half of the files. The other half is for the store, and for a node in the same
// process: unknown callers must not make its tasks fail.
const mostConnections = 1 << 14

// A crowd is a listener that lets in so many at once; who comes then waits until somebody goes. Its server has to tell it who goes.
type crowd struct {
	net.Listener
	log    *slog.Logger
	slots  chan struct{} // one of each connection
	closed chan struct{}
	once   sync.Once
	told   time.Time // that it is full; Accept's own
}

func newCrowd(l net.Listener, most int, log *slog.Logger) *crowd {
	return &crowd{Listener: l, log: log, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener. One goroutine may call it.
func (c *crowd) Accept() (net.Conn, error) {
	select {
	case c.slots <- struct{}{}:
	default:
		if time.Since(c.told) > time.Minute {
			c.told = time.Now()
			c.log.Warn("there are as many connections as there may be; others wait until one ends", "connections", cap(c.slots))
		}
		select {
		case c.slots <- struct{}{}:
		case <-c.closed:
			return nil, net.ErrClosed
		}
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		<-c.slots
	}
	return conn, err
}

// state is the http.Server's ConnState. It does not count hijacked connections, such as those of a
// proxy for another protocol.
func (c *crowd) state(_ net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		<-c.slots
	}
}

// Close implements net.Listener.
func (c *crowd) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Listener.Close()
}
