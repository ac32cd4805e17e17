package dci

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections is how many connections there are at most, where the process may have twice as many files; else it is half of those. The other
// half is the store's, and of a node that runs in the same process: whoever connects is not known yet, and is not to fail its tasks.
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

// state is the http.Server's ConnState. What is hijacked, as by a proxy for another protocol, is not counted on.
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
