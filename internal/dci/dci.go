// Package dci owns the listener of the server. One HTTP server serves the REST API (/api/v1,
// /oste/v1 and /disco), the pages (/ui/) and Disbatch's routes (/). It limits slow and hostile callers, and stops in order.
// The parts own their answers.
package dci

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/telemetry"
)

// The limits of a connection.
const (
	headerTime = 10 * time.Second // for the head of a request
	bodyTime   = 30 * time.Second // to send a body that is not large
	answerTime = 2 * time.Minute  // to take an answer, unless the answer itself says otherwise, as events do
	idleTime   = 2 * time.Minute  // between requests
	headerSize = 64 << 10
	stopTime   = 10 * time.Second // for what is being answered, when the server stops
)

// Config is a command interface. All but Disbatch, Schema and URI is required.
type Config struct {
	Store    store.Store
	URI      string // of the store, as of v1.Config
	API      *v1.API
	Pages    http.Handler // of /ui/
	Disbatch Disbatch     // of all that is nobody else's; nil: none
	Schema   []byte       // of plan files, for editors; nil: none is served
	Foreign  bool         // a configuration of Disbatch is in use: its page is at / for browsers, too
	Metrics  *telemetry.Metrics
	Guard    *auth.Guard
	Log      *slog.Logger
}

// Disbatch is what answers Disbatch's routes.
type Disbatch interface {
	http.Handler
	// Scope says what a request needs.
	Scope(r *http.Request) auth.Scope
}

// A Server is a command interface that listens. Run serves.
type Server struct {
	c        Config
	listener net.Listener
	http     *http.Server
	tls      bool
	mux      *http.ServeMux
}

// Listen opens the address, which auth.Check has let pass: HOST:PORT, where port 0 is any that is free, or unix:PATH. With a certificate
// what goes over it is encrypted.
func Listen(ctx context.Context, c Config, address string, certificate *Certificate) (*Server, error) {
	l, err := auth.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	all := newCrowd(l, connections(), c.Log)
	s := &Server{c: c, listener: all, tls: certificate != nil}
	if s.tls {
		s.listener = tls.NewListener(all, certificate.config(c.Log))
	}
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerSize, ConnState: all.state,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug), // of what clients do wrong
	}
	return s, nil
}

// URL is where a browser on this host finds the pages; of a socket its address.
func (s *Server) URL() string {
	if s.listener.Addr().Network() == "unix" {
		return "unix:" + s.listener.Addr().String()
	}
	if s.tls {
		return "https://" + s.listener.Addr().String()
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
	// The end of the context has ended the streams of events, so that they do not delay the rest.
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
	s.mux = mux
	mux.Handle(api.Root+"/", s.c.API)
	mux.Handle(api.OSTERoot+"/", s.c.API)
	mux.Handle(api.DiscoRoot+"/", s.c.API)
	mux.Handle("POST "+api.Root+"/login", s.c.Guard.Login())
	mux.Handle("POST "+api.Root+"/logout", s.c.Guard.Logout())
	mux.HandleFunc("GET "+api.Root+"/session", s.session)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", s.c.Metrics.Handler())
	if s.c.Schema != nil {
		mux.HandleFunc("GET /plan.schema.json", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/schema+json")
			_, _ = w.Write(s.c.Schema) // who asked may be gone
		})
	}
	if loopback(s.listener.Addr()) { // profiles tell what a program does, and slow it down
		profiles(mux)
	}
	mux.Handle("/ui/", http.StripPrefix("/ui", s.c.Pages))
	if s.c.Disbatch != nil {
		mux.Handle("/", s.c.Disbatch)
	}
	if s.c.Disbatch == nil || !s.c.Foreign {
		mux.HandleFunc("GET /{$}", s.root)
	}
	return timely(s.c.Guard.Wrap(s.c.Metrics.Requests(mux), s.need), bodyTime, answerTime)
}

// need says which scope a request needs. Pages hold no data: what they show they ask the API for.
func (s *Server) need(r *http.Request) auth.Scope {
	_, pattern := s.mux.Handler(r)
	switch pattern {
	case api.Root + "/", api.OSTERoot + "/", api.DiscoRoot + "/":
		return s.c.API.Scope(r)
	case "GET /{$}":
		if s.c.Disbatch != nil && !browses(r) {
			return s.c.Disbatch.Scope(r)
		}
		return auth.Public
	case "/ui/", "GET /healthz", "GET /readyz", "GET /plan.schema.json", "POST " + api.Root + "/login", "POST " + api.Root + "/logout", "GET " + api.Root + "/session":
		return auth.Public
	case "GET /metrics":
		return auth.Read
	case "/":
		return s.c.Disbatch.Scope(r)
	}
	return auth.Admin // profiles, and what is nowhere
}

// root leads a browser to the pages. Programs, as monitors of Disbatch, get Disbatch's answer.
func (s *Server) root(w http.ResponseWriter, r *http.Request) {
	if s.c.Disbatch != nil && !browses(r) {
		s.c.Disbatch.ServeHTTP(w, r)
		return
	}
	http.Redirect(w, r, "/ui/", http.StatusSeeOther)
}

// browses reports whether a person asks by a browser: these name HTML among what they accept.
func browses(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// session tells pages who is logged in, and the token that proves their requests.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	who := auth.From(r.Context())
	place := ""
	if auth.May(r.Context(), auth.Read) {
		place = v1.PlaceOf(r, s.c.URI).Store
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(struct { // who asked may be gone
		Name   string       `json:"name"`
		By     auth.By      `json:"by"`
		Scopes []auth.Scope `json:"scopes"`
		CSRF   string       `json:"csrf_token,omitempty"`
		Store  string       `json:"store,omitempty"` // as commands that need it take it
	}{who.Name, who.By, append([]auth.Scope{}, who.Scopes...), who.CSRF, place})
}

// ready says whether the store answers.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, done := context.WithTimeout(r.Context(), 5*time.Second)
	defer done()
	if _, err := s.c.Store.Queues(ctx); err != nil { // what time it is a store may know without looking
		s.c.Log.Warn("not ready: the store does not answer", "error", err)
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

// loopback reports whether an address can be reached from this host alone.
func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
