package disbatch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// An extension adds routes of a site's own: a program answers each request as a CGI program does, or another server does.
type extension struct {
	Routes  []string        `json:"routes"`  // "GET /mine/{id}", as patterns of net/http
	Program []string        `json:"program"` // an absolute path and arguments,
	Proxy   string          `json:"proxy"`   // or the URL of a server, below which the request's path is asked for
	Timeout float64         `json:"timeout"` // seconds; 0: 60
	Options json.RawMessage `json:"options"` // any value, for the one that answers
}

// optionsHeader is where a server finds its options, and optionsVariable where a program does.
const (
	optionsHeader   = "X-Web-Extension-Options"
	optionsVariable = "WEB_EXTENSION_OPTIONS"
)

var extensionName = regexp.MustCompile(`\A[\w:]+\z`)

// extend adds the routes of an extension.
func (h *Handler) extend(name string, options json.RawMessage) error {
	switch name {
	case "Disbatch::Web::Files": // always there
		return nil
	case "Disbatch::Web::Tasks":
		h.addTasksRoutes()
		return nil
	case "Disbatch::Web::V3":
		h.addV3Routes()
		return nil
	}
	var x extension
	var fields params
	if first(options) != '{' || json.Unmarshal(options, &fields) != nil || fields["routes"] == nil {
		h.conf.Log.Warn("extension ignored: a Perl package cannot be run here; with routes and a program or proxy in its options it is one that can", "extension", name)
		return nil
	}
	if !extensionName.MatchString(name) {
		return errors.New("its name has to be of letters, digits, _ and colons")
	}
	dec := json.NewDecoder(bytes.NewReader(options))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&x); err != nil {
		// The decoder's words name keys and kinds, and no values.
		return fmt.Errorf("its options are not routes, program or proxy, timeout and options: %w", err)
	}
	answers, err := x.handler(h.conf.Log.With("extension", name))
	if err != nil {
		return err
	}
	if len(x.Routes) == 0 {
		return errors.New(`routes is empty; it is a list, as in ["GET /mine"]`)
	}
	for _, r := range x.Routes {
		method, path, is := strings.Cut(r, " ")
		if path = strings.TrimSpace(path); !is || method == "" || !strings.HasPrefix(path, "/") {
			return fmt.Errorf(`route %q has to be a method and a path, as in "GET /mine"`, r)
		}
		if err := handle(h.custom, method+" "+path, answers); err != nil {
			return fmt.Errorf("route %q: %w", r, err)
		}
		h.listRoute(method, path)
	}
	return nil
}

// handle registers a pattern, which a person wrote.
func handle(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() { // ServeMux has no other way to say it
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("%v", wrong)
		}
	}()
	mux.Handle(pattern, h)
	return nil
}

func (x *extension) handler(log *slog.Logger) (http.Handler, error) {
	if x.Timeout < 0 || x.Timeout > 24*60*60 {
		return nil, errors.New("timeout is a number of seconds, up to a day")
	}
	timeout := time.Duration(cmp.Or(x.Timeout, 60) * float64(time.Second))
	options := string(encode(x.Options, false))
	switch {
	case (len(x.Program) > 0) == (x.Proxy != ""):
		return nil, errors.New("it needs a program or a proxy, and not both")
	case len(x.Program) > 0:
		if !strings.HasPrefix(x.Program[0], "/") {
			return nil, fmt.Errorf("program %q has to be an absolute path", x.Program[0])
		}
		return &program{argv: x.Program, options: options, timeout: timeout, log: log}, nil
	}
	to, err := url.Parse(x.Proxy)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil, errors.New(`proxy has to be a URL, as in "http://127.0.0.1:3000"`)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
			for _, name := range []string{"Authorization", "Cookie"} { // they are for this server
				r.Out.Header.Del(name)
			}
			r.Out.Header.Set(optionsHeader, ascii(options))
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			log.Warn("no answer", "err", err)
			answer{code: http.StatusBadGateway, value: object{"error": "the extension did not answer"}}.write(w)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}), nil
}

// ascii writes JSON so that it can be a header: other characters stand only in texts, where they can be escapes.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// A program answers one request each time it is started, by CGI/1.1 (RFC 3875). Headers are
// variables, and the body is standard input. The program prints headers, an empty line and a body.
type program struct {
	argv    []string
	options string
	timeout time.Duration
	log     *slog.Logger
}

// A program gets these variables from the environment of this process. They let it find programs,
// and hold no secrets.
var inherited = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"}

// ServeHTTP implements http.Handler.
func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, header, err := p.run(w, r)
	if err != nil {
		p.log.Warn("no answer", "program", p.argv[0], "err", err)
		answer{code: http.StatusBadGateway, value: object{"error": "the extension did not answer"}}.write(w)
		return
	}
	for name, values := range header {
		if !slices.Contains([]string{"Status", "Content-Length", "Connection", "Transfer-Encoding"}, name) {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.code)
	_, _ = w.Write(a.text)
}

func (p *program) run(w http.ResponseWriter, r *http.Request) (a answer, header textproto.MIMEHeader, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return a, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), p.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	inGroup(cmd)
	cmd.WaitDelay = time.Second // a child of the program may keep its output open
	cmd.Env, cmd.Stdin = p.environment(r, len(body)), bytes.NewReader(body)
	stdout, stderr := limited{left: maxAnswer}, limited{left: 4 << 10}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err = cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) { // which is of one that ended well, and left something running
		return a, nil, fmt.Errorf("%w: %s", err, stderr.kept.String())
	}
	if stdout.left < 0 {
		return a, nil, fmt.Errorf("it printed more than %d bytes", maxAnswer)
	}
	in := bufio.NewReader(&stdout.kept)
	if header, err = textproto.NewReader(in).ReadMIMEHeader(); err != nil || len(header) == 0 {
		return a, nil, fmt.Errorf("it did not print headers and an empty line: %w", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	a.code = http.StatusOK
	if header.Get("Location") != "" {
		a.code = http.StatusFound
	}
	if status, _, _ := strings.Cut(header.Get("Status"), " "); status != "" {
		if a.code, err = strconv.Atoi(status); err != nil || a.code < 200 || a.code > 599 {
			return a, nil, fmt.Errorf("its status is %q", status)
		}
	}
	a.text, err = io.ReadAll(in)
	return a, header, err
}

func (p *program) environment(r *http.Request, length int) []string {
	var env []string
	for _, name := range inherited {
		if v, there := os.LookupEnv(name); there {
			env = append(env, name+"="+v)
		}
	}
	host, port, is := strings.Cut(r.Host, ":")
	if !is {
		port = "80"
	}
	add := func(name, value string) { env = append(env, name+"="+strings.ReplaceAll(value, "\x00", "")) }
	add("GATEWAY_INTERFACE", "CGI/1.1")
	add("SERVER_SOFTWARE", "sluice")
	add("SERVER_PROTOCOL", r.Proto)
	add("SERVER_NAME", host)
	add("SERVER_PORT", port)
	add("REQUEST_METHOD", r.Method)
	add("REQUEST_URI", r.URL.RequestURI())
	add("SCRIPT_NAME", "")
	add("PATH_INFO", r.URL.Path)
	add("QUERY_STRING", r.URL.RawQuery)
	add("CONTENT_LENGTH", strconv.Itoa(length))
	add("CONTENT_TYPE", r.Header.Get("Content-Type"))
	address := r.RemoteAddr
	if i := strings.LastIndexByte(address, ':'); i > 0 {
		address = address[:i]
	}
	add("REMOTE_ADDR", address)
	add(optionsVariable, p.options)
	for name, values := range r.Header {
		// A variable called HTTP_PROXY would send the program's own requests elsewhere; the others are for this server.
		if !slices.Contains([]string{"Proxy", "Authorization", "Cookie", "Content-Length", "Content-Type"}, name) && !strings.Contains(name, "_") {
			add("HTTP_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_")), strings.Join(values, ", "))
		}
	}
	return env
}

// limited keeps so many bytes, and takes the others for nothing.
type limited struct {
	kept bytes.Buffer
	left int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if kept := p[:min(len(p), max(l.left, 0))]; len(kept) > 0 {
		_, _ = l.kept.Write(kept) // a buffer takes everything
	}
	l.left -= len(p)
	return len(p), nil
}
