//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together (golang.org/issue/78156).

package dci

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A piped server has connections of the memory only, so that its deadlines are those of a bubble.
type piped chan net.Conn

func (p piped) Accept() (net.Conn, error) {
	c, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p piped) Close() error   { return nil }
func (p piped) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// dial connects to the server.
func (p piped) dial() net.Conn {
	mine, its := net.Pipe()
	p <- its
	return mine
}

// servePiped runs the test in a bubble with a server.
func servePiped(t *testing.T, h http.Handler, test func(t *testing.T, p piped)) {
	synctest.Test(t, func(t *testing.T) {
		p, ended := piped(make(chan net.Conn)), make(chan error)
		s := &http.Server{Handler: h}
		go func() { ended <- s.Serve(p) }()
		test(t, p)
		close(p)
		_ = s.Close()
		<-ended
	})
}

func TestABodyThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	const within = 10 * time.Second
	mux := http.NewServeMux()
	mux.HandleFunc("/unread", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			t.Error("the body is said to be there")
		}
		w.WriteHeader(http.StatusRequestTimeout)
	})
	for _, request := range []string{
		"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{",
		"GET /unread HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
		"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{",
	} {
		servePiped(t, timely(mux, within, time.Minute), func(t *testing.T, p piped) {
			c := p.dial()
			defer c.Close()
			began := time.Now()
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(c)
			if took := time.Since(began); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 40") || took < within || took > within+time.Second {
				t.Errorf("%q: %q, %v after %v", request, answer, err, took)
			}
		})
	}
}

func TestABodyThatComesSlowlyHasTheTimeThatItTakes(t *testing.T) {
	const part = leastRate / 2 // half a second more
	h := timely(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, " ", err)
	}), 2*time.Second, time.Minute)
	for pause, comes := range map[time.Duration]bool{250 * time.Millisecond: true, 500 * time.Millisecond: true, time.Second: false} {
		servePiped(t, h, func(t *testing.T, p piped) {
			c := p.dial()
			defer c.Close()
			answered := make(chan string)
			go func() {
				answer, _ := io.ReadAll(c)
				answered <- string(answer)
			}()
			_, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", 12*part)
			for range 12 {
				if err == nil {
					_, err = c.Write(make([]byte, part))
				}
				time.Sleep(pause)
			}
			if answer := <-answered; strings.HasSuffix(answer, fmt.Sprint(12*part, " <nil>")) != comes || (err == nil) != comes {
				t.Errorf("with pauses of %v: %q, %v; want that the body comes: %v", pause, answer, err, comes)
			}
		})
	}
}

// How long a handler takes is neither the body's time nor the answer's, also where it sets a deadline for the body itself.
func TestAHandlerMayTakeItsTime(t *testing.T) {
	h := timely(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
			t.Error("the caller is said to be gone")
		case <-time.After(time.Minute):
		}
		fmt.Fprint(w, "done")
	}), time.Second, time.Second)
	servePiped(t, h, func(t *testing.T, p piped) {
		dials := 0
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			dials++
			return p.dial(), nil
		}}}
		defer client.CloseIdleConnections()
		for range 2 {
			a, err := client.Post("http://a/", "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(a.Body); err != nil || string(text) != "done" {
				t.Errorf("%q, %v", text, err)
			}
			a.Body.Close()
		}
		if dials != 1 {
			t.Errorf("the two went over %d connections, want one", dials)
		}
	})
}
