// Package dci owns the command interface's listener: one HTTP server that puts the REST API (/api/v1), the pages (/ui/) and Disbatch's
// routes (/) together, keeps what is slow or hostile from holding it up, and stops in order. What each part answers is its own.
package dci

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/telemetry"
)

// What a connection may take.
const (
	headerTime = 10 * time.Second // to say what it asks
	answerTime = 2 * time.Minute  // to take an answer, unless the answer itself says otherwise, as events do
	idleTime   = 2 * time.Minute  // between requests
	headerSize = 64 << 10
	stopTime   = 10 * time.Second // for what is being answered, when the server stops
)

// Config is a command interface.
type Config struct {
	Store    store.Store
	API      *v1.API
	Pages    http.Handler // of /ui/; nil: none
	Disbatch http.Handler // of all that is nobody else's; nil: none
	Metrics  *telemetry.Metrics
	Hosts    []string // names, without a port, by which the server may be asked beside the address that it listens on and loopback's
	Log      *slog.Logger
}

// A Server is a command interface that listens. Run serves.
type Server struct {
	c        Config
	listener net.Listener
	http     *http.Server
}

// Listen opens the address: HOST:PORT, where port 0 is any that is free, or unix:PATH, a socket that only its owner can use.
func Listen(c Config, address string) (*Server, error) {
	l, err := listen(address)
	if err != nil {
		return nil, err
	}
	s := &Server{c: c, listener: l}
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerSize,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug), // of what clients do wrong
	}
	return s, nil
}

func listen(address string) (net.Listener, error) {
	path, local := strings.CutPrefix(address, "unix:")
	if !local {
		return net.Listen("tcp", address)
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("listen on %s: another process does", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil { // of a process that died
			return nil, err
		}
	}
	return listenPrivately(path)
}

// URL is where a browser on this host finds the pages; of a socket its address.
func (s *Server) URL() string {
	if s.listener.Addr().Network() == "unix" {
		return "unix:" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// Run serves until the context ends, and returns when all that was being answered is, or its time is over.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	listening, quiet := context.WithCancel(ctx)
	defer quiet()
	wg.Go(func() { s.c.API.Run(listening) })
	failed := make(chan error, 1)
	wg.Go(func() { failed <- s.http.Serve(s.listener) })
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Those who listen for events were told to go by the context's end, so that they do not hold up the rest.
	last, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer done()
	if err := s.http.Shutdown(last); err != nil {
		_ = s.http.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(api.Root+"/", s.c.API)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", s.c.Metrics.Handler())
	if Loopback(s.listener.Addr().String()) { // profiles tell what a program does, and slow it down
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	if s.c.Pages != nil {
		mux.Handle("/ui/", http.StripPrefix("/ui", s.c.Pages))
		mux.Handle("GET /{$}", http.RedirectHandler("/ui/", http.StatusSeeOther))
	}
	if s.c.Disbatch != nil {
		mux.Handle("/", s.c.Disbatch)
	}
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		v1.WriteProblem(w, api.NewProblem(http.StatusForbidden, api.CodeForbidden, "a page of another site asked for this"))
	}))
	guarded := s.c.Metrics.Requests(cross.Handler(mux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // not every connection has one
		if !s.isOurs(r.Host) {
			v1.WriteProblem(w, api.NewProblem(http.StatusMisdirectedRequest, api.CodeForbidden, "this server is not %q; name it with --host if it is", r.Host))
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// isOurs reports whether a request was meant for this server: a page that had its own name point to this host's address asks by that name.
func (s *Server) isOurs(host string) bool {
	if s.listener.Addr().Network() == "unix" {
		return true
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if ip := net.ParseIP(name); ip != nil { // a name is what such a page needs
		return true
	}
	for _, h := range append([]string{"localhost"}, s.c.Hosts...) {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

// ready says whether the store answers.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, done := context.WithTimeout(r.Context(), 5*time.Second)
	defer done()
	if _, err := s.c.Store.Now(ctx); err != nil {
		s.c.Log.Warn("not ready: the store does not answer", "err", err)
		plain(w, http.StatusServiceUnavailable, "the store does not answer")
		return
	}
	plain(w, http.StatusOK, "ok")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // who asked may be gone
}

// Loopback reports whether an address can be reached from this host alone.
func Loopback(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
