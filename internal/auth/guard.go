package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Config is what a guard works by.
type Config struct {
	Access    *File    // who there is; nil: callers on this machine may do all, and there are no others
	Listen    string   // where the server listens, as it was given: the name in it is one of its own
	Hosts     []string // other names that it is reached by
	LoginPath string   // of the page that asks for name and password, as /ui/login; "": there is none, and nobody is sent there
	Home      string   // where a login leads that was not on the way elsewhere; default /
	// Error writes an answer that refuses a request; its headers are set. Default: WriteRefusal.
	Error func(http.ResponseWriter, *http.Request, Refusal)
	Log   *slog.Logger // default: slog's own
	Audit *Audit       // the file of who changed what; nil: it is in Log only, as it always is
}

// A Guard stands before the handlers of a server. It may be used by many goroutines at once.
type Guard struct {
	Config
	names    []string // of this server, as hostName has them
	origin   *http.CrossOriginProtection
	verifier *verifier
	sessions *sessions
	refusals *quiet
}

// New returns a guard.
func New(c Config) (*Guard, error) {
	g := &Guard{
		Config: c, origin: http.NewCrossOriginProtection(), verifier: newVerifier(), sessions: newSessions(), refusals: newQuiet(),
	}
	g.Home = cmp.Or(c.Home, "/")
	if g.Error == nil {
		g.Error = WriteRefusal
	}
	g.Log = cmp.Or(c.Log, slog.Default())
	for _, text := range c.Hosts {
		name := hostName(text)
		if name == "" || strings.ContainsAny(text, "/*@ ") {
			return nil, fmt.Errorf("--host %q: give the name that is in the URL, as in sluice.example.com", text)
		}
		g.names = append(g.names, name)
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" && !strings.HasPrefix(c.Listen, unixPrefix) {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.IsUnspecified() {
			g.names = append(g.names, hostName(host))
		}
	}
	return g, nil
}

// A Code says for programs why a request was refused. Codes are in JSON, and are never renamed.
type Code string

// Why requests are refused.
const (
	CodeHost         Code = "host"         // 421: the name in the URL is none of the server's
	CodeCrossOrigin  Code = "cross_origin" // 403: a page of another site sent it
	CodeInvalid      Code = "invalid"      // 400: it contradicts itself
	CodeUnauthorized Code = "unauthorized" // 401: nobody known sent it
	CodeCSRF         Code = "csrf"         // 403: it lacks the token of its session
	CodeForbidden    Code = "forbidden"    // 403: who sent it may not
	CodeWait         Code = "wait"         // 429: too many passwords were wrong
	CodeBusy         Code = "busy"         // 503: too many passwords are being checked
)

// A Refusal is why a request does not reach its handler.
type Refusal struct {
	Status     int    // of HTTP
	Code       Code   // for programs
	Detail     string // for people, with what to do
	RetryAfter int    // seconds; 0: it would not help

	guess bool   // a secret was wrong: it is of interest whatever it was for
	name  string // of the account that it was tried for
}

// WriteRefusal answers with a refusal. Paths under /api/ get problem+json (RFC 9457), requests for
// a page get text, and others get {"error": …}, as in Disbatch 4.
func WriteRefusal(w http.ResponseWriter, r *http.Request, refused Refusal) {
	kind, body := "application/json", any(map[string]any{"error": refused.Detail, "code": refused.Code})
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/"):
		kind = "application/problem+json"
		body = map[string]any{"title": http.StatusText(refused.Status), "status": refused.Status, "detail": refused.Detail, "code": refused.Code}
	case wantsPage(r):
		http.Error(w, refused.Detail, refused.Status)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(refused.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // who hung up wants no answer
}

// Wrap returns the handler that passes permitted requests to h. need returns the scope of a
// request, by method and path alone; it may be called for any request. Wrap takes a request for a
// change if it needs more than Read, or if its method is not GET, HEAD or OPTIONS. A change may not
// come from a page of another site. Within a session it needs the session's token. It is in the
// audit log.
//
// The order is: Host, origin, identity, the session's token, scope. h finds who sent the request with From.
func (g *Guard) Wrap(h http.Handler, need func(*http.Request) Scope) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A page that shows ours in a frame, its own buttons above them, would have a person press ours.
		w.Header().Set("X-Frame-Options", "DENY")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		scope := need(r)
		changes := !safe(r.Method) || scope != Read && scope != Public
		var a *Access
		var proxy *Proxy
		if g.Access != nil {
			a = g.Access.Access()
			proxy = a.Proxy
		}
		c := from(r, proxy)
		done := &call{entry: &Entry{Time: time.Now().UTC(), From: c.String(), Method: r.Method, Path: shortened(r.URL.Path)}}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, done))
		refused := g.admit(w, r, scope, changes, a, c, done)
		if refused != nil {
			g.refuse(w, r, done, *refused, changes, c)
			return
		}
		if scope != Public {
			w.Header().Set("Cache-Control", "private") // a cache between gives it to nobody else; the handler may say more
			done.still = g.stillMay(r, a, done.who, scope, c)
		}
		if !changes {
			h.ServeHTTP(w, r)
			return
		}
		sw := &statusWriter{ResponseWriter: w}
		returned := false
		defer func() { // also if the handler panics
			if sw.status == 0 {
				if sw.status = http.StatusOK; !returned {
					sw.status = http.StatusInternalServerError
				}
			}
			g.record(r, done, sw.status, c)
		}()
		h.ServeHTTP(sw, r)
		returned = true
	})
}

// admit returns why a request is refused; nil if it is not. It puts into done who sent it.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, scope Scope, changes bool, a *Access, c caller, done *call) *Refusal {
	if !g.ours(r) {
		return &Refusal{Status: http.StatusMisdirectedRequest, Code: CodeHost,
			Detail: fmt.Sprintf("%.100q is not a name of this server; if it is, start it with --host %s", r.Host, cmp.Or(hostName(shortened(r.Host)), "NAME"))}
	}
	if changes {
		if err := g.sameOrigin(r); err != nil {
			return &Refusal{Status: http.StatusForbidden, Code: CodeCrossOrigin, Detail: err.Error()}
		}
	}
	who, refused := g.identifyFor(r, scope, a, c)
	if refused != nil {
		return refused
	}
	done.who = who
	if who.By == BySession && changes && scope != Public && !hasCSRF(w, r, who.CSRF) {
		return &Refusal{Status: http.StatusForbidden, Code: CodeCSRF,
			Detail: fmt.Sprintf("the request lacks the token of its session (header %s, or %s in a form); load the page again", CSRFHeader, CSRFField)}
	}
	if !slices.Contains(scopes, scope) && scope != Public {
		g.Log.Error("no scope is known for a request, which is refused", "method", r.Method, "path", r.URL.Path, "scope", scope)
		return &Refusal{Status: http.StatusForbidden, Code: CodeForbidden, Detail: "the server does not know who may do that"}
	}
	if !who.May(scope) {
		return &Refusal{Status: http.StatusForbidden, Code: CodeForbidden, Detail: fmt.Sprintf("this needs the scope %s; %s has %s", scope, who.Name, who.Scopes)}
	}
	return nil
}

// identifyFor is identify, except that a public request is never refused: its password or token is
// not checked.
func (g *Guard) identifyFor(r *http.Request, scope Scope, a *Access, c caller) (Identity, *Refusal) {
	if scope != Public {
		return g.identify(r, a, c)
	}
	if a == nil {
		who, _ := local(r, c)
		return who, nil
	}
	if who, refused, there := proxied(r, a, c); there && refused == nil {
		return who, nil
	}
	who, _ := g.bySession(r, a, c)
	return who, nil
}

// refuse answers a request that is refused.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, done *call, refused Refusal, changes bool, c caller) {
	if refused.name != "" {
		done.who.Name = refused.name
	}
	if done.refused = refused.Code; changes || refused.guess {
		g.record(r, done, refused.Status, c)
	}
	w.Header().Set("Cache-Control", "no-store")
	if refused.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(refused.RetryAfter))
	}
	if refused.Status == http.StatusUnauthorized {
		page := wantsPage(r)
		if page && g.LoginPath != "" && !refused.guess && safe(r.Method) && len(g.Access.Access().Users) > 0 {
			http.Redirect(w, r, g.loginPage(r.URL.RequestURI()), http.StatusSeeOther)
			return
		}
		w.Header().Add("WWW-Authenticate", `Bearer realm="sluice"`)
		// A browser that is asked so opens a window of its own, keeps what is typed there, and knows no way to log out.
		if !page && r.Header.Get("Sec-Fetch-Site") == "" {
			// Disbatch's command line sends its password to the realm disbatch alone; no other program asks for the name.
			w.Header().Add("WWW-Authenticate", `Basic realm="disbatch", charset="UTF-8"`)
		}
	}
	g.Error(w, r, refused)
}

// loginPage is where to log in, on the way to a path of this server.
func (g *Guard) loginPage(next string) string {
	if next = LocalPath(next, ""); next == "" {
		return g.LoginPath
	}
	return g.LoginPath + "?" + url.Values{"next": {next}}.Encode()
}

// safe reports whether a method is one that changes nothing.
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

var errOrigin = errors.New("a page of another site sent this request; open this server's own pages, or send it from a program")

// sameOrigin refuses what a page of another site had a browser send. It does so for any method: some old routes change things by GET.
func (g *Guard) sameOrigin(r *http.Request) error {
	if safe(r.Method) {
		as := *r
		as.Method = http.MethodPost
		r = &as
	}
	if g.origin.Check(r) != nil {
		return errOrigin
	}
	return nil
}

// ours reports whether the request is for a name or an address of this server. It stops DNS
// rebinding. A web page whose name leads to this machine has the same origin as its requests here,
// but it cannot change the name.
func (g *Guard) ours(r *http.Request) bool {
	name := hostName(r.Host)
	if name == "" {
		return false
	}
	if name == "localhost" || slices.Contains(g.names, name) {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return name == overUnix && local != nil && local.Network() == "unix" // as clients of sockets write, who have no name
	}
	if addr = addr.Unmap(); addr.IsLoopback() {
		return true
	}
	return local != nil && address(local.String()) == addr
}

// wantsPage reports whether the answer is for a person.
func wantsPage(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(accept, ",") {
			if kind, _, err := mime.ParseMediaType(part); err == nil && kind == "text/html" {
				return true
			}
		}
	}
	return false
}

// isForm reports whether a request has a form in it, as pages send them without files.
func isForm(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// shortened cuts what a caller may make as long as it likes.
func shortened(text string) string {
	const most = 512
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// A statusWriter knows how its request was answered.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController what is below.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
