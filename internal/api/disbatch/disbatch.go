// Package disbatch serves the routes of Disbatch 4's web server, its DCI, over any store, so that
// programs written for that server work unchanged. It owns the wire format: paths, parameters, and
// the words of answers and errors. Packages plan and store decide what follows from a request. The
// caller checks who may call, and from where.
package disbatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

// Config is what a handler serves.
type Config struct {
	// Store has to be a store.Documents, a store.Balance and a store.Results as well. It must not
	// show secrets.
	Store store.Store
	// Conf is what Disbatch's file says; nil: there is none, and all is as it is by default.
	Conf *config.Config
	// Plugins returns what queues may have, as it is now; nil: what Conf says.
	Plugins func() []string
	// Database is what GET /info calls the database; default: what Conf says.
	Database string
	// Check returns of which tasks plugins tell that no attempt could succeed; nil: of none.
	Check func(*plan.Spec) plan.Problems
	// Log is for what is refused by the store, and extensions that cannot be had; default slog.Default.
	Log *slog.Logger
}

// documents is a store that has all that the routes ask for.
type documents interface {
	store.Store
	store.Documents
	store.Balance
	store.Results
}

// A Handler serves the routes. Any number of goroutines may call it.
type Handler struct {
	conf      Config
	store     documents
	mux       *http.ServeMux // of Disbatch's own routes,
	custom    *http.ServeMux // of those that extensions add, which come after them,
	files     http.Handler   // and of what is left
	routes    map[string][]string
	answering map[string]bool // patterns of routes that change nothing, whatever their method
}

// New makes a handler. An extension whose options are wrong is an error; one in Perl is ignored, and logged.
func New(c Config) (*Handler, error) {
	s, ok := hiding.New(c.Store).(documents)
	if !ok {
		return nil, errors.New("this store has no documents, balance or results")
	}
	if c.Conf == nil {
		c.Conf = &config.Config{}
	}
	if c.Plugins == nil {
		c.Plugins = func() []string { return c.Conf.Plugins }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Database = cmp.Or(c.Database, c.Conf.Database)
	h := &Handler{conf: c, store: s, mux: http.NewServeMux(), custom: http.NewServeMux(), routes: map[string][]string{}, answering: map[string]bool{}}
	h.files = h.pages()
	if dir := c.Conf.ViewsDir; dir != "" && dir != config.DefaultViews {
		c.Log.Warn("templates ignored: they are Perl's, and the pages Sluice's own; files that browsers load, as scripts, may be in web_root, and pages of your own "+
			"are routes in web_extensions", "views_dir", dir)
	}
	for _, r := range []route{
		{"GET", "/{$}", h.index},
		{"GET", "/info", h.info},
		{"GET", "/nodes", h.getNodes},
		{"GET", "/nodes/{node...}", h.getNode},
		{"POST", "/nodes/{node...}", h.asked(smallBody, h.postNode)},
		{"GET", "/plugins", h.getPlugins},
		{"GET", "/queues", h.getQueues},
		{"GET", "/queues/{queue...}", h.getQueue},
		{"POST", "/queues", h.asked(smallBody, h.postQueues)},
		{"POST", "/queues/{queue...}", h.asked(smallBody, h.postQueue)},
		{"DELETE", "/queues/{queue...}", h.deleteQueue},
		{"POST", "/tasks", h.postTasks},
		{"GET", "/tasks", h.getTasks},
		{"GET", "/tasks/{id}", h.getTask},
		{"GET", "/balance", h.getBalance},
		{"POST", "/balance", h.postBalance},
		{"GET", "/monitoring", h.getMonitoring},
	} {
		h.add(r)
	}
	for _, name := range c.Conf.WebExtensions {
		if err := h.extend(name, c.Conf.Extensions[name]); err != nil {
			return nil, fmt.Errorf("web_extensions: %s: %w", name, err)
		}
	}
	return h, nil
}

// A route answers requests of a method and a path.
type route struct {
	method, path string
	answer       func(*http.Request) answer
}

// asked reads what a request gives, in a body of at most so many bytes, for what answers it.
func (h *Handler) asked(most int64, do func(*http.Request, params) answer) func(*http.Request) answer {
	return func(r *http.Request) answer {
		given, _, err := parse(r, most)
		if err != nil {
			return h.failed(r, err)
		}
		return do(r, given)
	}
}

// add adds a route of Disbatch's own.
func (h *Handler) add(r route) {
	h.listRoute(r.method, r.path)
	h.mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) { r.answer(req).write(w) })
}

// listRoute shows a route in GET /info, with names as Disbatch's documents write them.
func (h *Handler) listRoute(method, path string) {
	path = strings.NewReplacer("{$}", "", "...}", "", "{", ":", "}", "").Replace(path)
	h.routes[method] = append(h.routes[method], path)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.Changes(r) {
		auth.Unchanged(r.Context()) // a search is no change, whatever its method
	}
	h.serving(r).ServeHTTP(w, r)
}

// serving returns who answers a request.
func (h *Handler) serving(r *http.Request) http.Handler {
	for _, mux := range []*http.ServeMux{h.mux, h.custom} {
		if _, pattern := mux.Handler(r); pattern != "" {
			// ServeMux would send POST /nodes to /nodes/, where nothing is.
			if _, path, _ := strings.Cut(pattern, " "); strings.HasPrefix(path, r.URL.Path+"/{") && strings.HasSuffix(path, "...}") {
				return http.NotFoundHandler()
			}
			return mux
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return h.files
	}
	return h.mux // which says that there is no such path, or what methods it has
}

// Changes reports whether a request may change something, and so needs more than permission to
// read. Every method does but GET, HEAD and OPTIONS, except for searches. A route of an extension
// is judged by its method, too, because its effect is unknown.
func (h *Handler) Changes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	_, pattern := h.mux.Handler(r)
	if h.answering[pattern] {
		return false
	}
	// The whole of the path: a queue may be called x/search, which a path has as x%2Fsearch.
	return pattern != "POST /tasks/{queue}" || r.URL.Path != "/tasks/"+search
}

// An answer is what goes back.
type answer struct {
	code   int // 0: 200
	value  any // as JSON
	pretty bool
	text   []byte // JSON that is made already, where there is no value
	page   string // HTML, in the place of JSON
}

func (a answer) write(w http.ResponseWriter) {
	body, kind := a.text, "application/json"
	switch {
	case a.page != "":
		body, kind = []byte(a.page), "text/html"
	case body == nil:
		body = encode(a.value, a.pretty)
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(cmp.Or(a.code, http.StatusOK))
	_, _ = w.Write(body) // who does not wait for it does not miss it
}

func ok(value any) answer { return answer{value: value} }

func bad(value object) answer { return answer{code: http.StatusBadRequest, value: value} }

// failed is the answer to an error: its text, or another value.
func (h *Handler) failed(r *http.Request, err error, instead ...any) answer {
	a := bad(object{"error": err.Error()})
	if len(instead) > 0 {
		a.value = instead[0]
	}
	var mistake *badRequest
	if errors.As(err, &mistake) {
		a.code = mistake.code
	} else if !errors.Is(err, context.Canceled) {
		h.conf.Log.WarnContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	return a
}

// failedTo is failed with words before the error.
func (h *Handler) failedTo(r *http.Request, what string, err error) answer {
	return h.failed(r, err, object{"error": what + ": " + err.Error()})
}

// wantsPage reports whether a browser asks. HTML is the answer only if Accept names text/html with
// at least the weight of JSON. JSON counts as 1 if Accept does not name it.
func wantsPage(r *http.Request) bool {
	weight := func(kind string, otherwise float64) float64 {
		for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
			name, rest, _ := strings.Cut(part, ";")
			if !strings.EqualFold(strings.TrimSpace(name), kind) {
				continue
			}
			for p := range strings.SplitSeq(rest, ";") {
				if q, is := strings.CutPrefix(strings.ToLower(strings.TrimSpace(p)), "q="); is {
					f, err := strconv.ParseFloat(q, 64)
					if err != nil {
						return 0
					}
					return f
				}
			}
			return 1
		}
		return otherwise
	}
	return weight("text/html", 0) >= weight("application/json", 1)
}

// info is GET /info.
func (h *Handler) info(*http.Request) answer {
	routes := object{}
	for method, paths := range h.routes {
		routes[method] = paths
	}
	extensions := slices.Sorted(slices.Values(h.conf.Conf.WebExtensions))
	return ok(object{"database": h.conf.Database, "routes": routes, "web_extensions": append([]string{}, extensions...)})
}
