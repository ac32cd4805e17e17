// Package v1 is the server of Sluice's own REST API: a route for each thing that a store can tell or do, over one store. The OpenAPI
// document is made from the routes and internal/api's types, so that it cannot say anything else than what is served. Handlers decide
// nothing: they read the request, ask the store or package plan, and write the answer. Any number of requests may run at once.
//
// The API does not decide who may call it. Each operation names the scope that it needs (see
// [API.Scope]), and the server puts a guard before the API.
package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// The limits of a request's body, and of the time for it.
const (
	smallBody = 1 << 20          // of what is not a list of tasks or a plan file
	tasksBody = api.TasksBody    // of tasks that are added
	fileBody  = 64 << 20         // of a plan file
	savedBody = 4 << 20          // of a schedule, whose plan file has plan.MaxFile bytes at most
	bodyTime  = 30 * time.Second // for a small body; larger ones have a minute more per 16 MiB
	pageSize  = 100              // of a list, where no limit is asked for
	mostPage  = api.MostPage     // of a list
)

// The scopes that routes need; what each allows is internal/auth's.
const (
	Read    = auth.Read
	Operate = auth.Operate
	Approve = auth.Approve
	Submit  = auth.Submit
	Admin   = auth.Admin
)

// Config is what the API serves.
type Config struct {
	Store   store.Store                            // what is secret in it is not shown
	Plugins func() []Plugin                        // that this program has; nil: none
	Check   func(*plan.Spec) plan.Problems         // of which tasks plugins say that no attempt could succeed; nil: of none
	Notes   func(*plan.Spec) plan.Problems         // what plugins say of a plan that is valid, and probably not meant; nil: nothing
	End     func(context.Context, plan.Plan) error // ends a plan that was cancelled, if no live node does; nil: nobody ends it then
	URI     string                                 // of the store, for commands that need it; shown only if it holds no secret
	Version string
	Log     *slog.Logger // of what is the server's fault; default: none

	Receiver func(uri string) error // returns why nodes could hand over nothing there; nil: it is not asked
}

// A Plugin is what a task can be for.
type Plugin struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// An API is the handler of everything under api.Root. Run must be running while it serves.
type API struct {
	mux      *http.ServeMux
	api      huma.API
	c        Config
	st       store.Store
	log      *slog.Logger
	events   *hub
	tallies  *tallies
	ender    *ender
	outdated outdated
	scopes   map[string]auth.Scope // by pattern of mux
}

// unknown answers what no route does.
func (a *API) unknown(w http.ResponseWriter, r *http.Request) {
	if there := a.methods(r); len(there) > 0 {
		w.Header().Set("Allow", strings.Join(there, ", "))
		WriteProblem(w, api.NewProblem(http.StatusMethodNotAllowed, "method_not_allowed", "%s is not for %s, which takes %s%s", r.URL.Path, r.Method, strings.Join(there, ", "), osteInstead(r)))
		return
	}
	WriteProblem(w, api.NewProblem(http.StatusNotFound, "not_found", "there is no %s; %s/openapi.json lists what there is", r.URL.Path, api.Root))
}

// methods returns those that the request's path has a route for.
func (a *API) methods(r *http.Request) (there []string) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := a.mux.Handler(&other); pattern != "/" {
			there = append(there, method)
		}
	}
	return there
}

// Run tells listeners what changes, and ends cancelled plans that no node does, until the context ends.
func (a *API) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { a.ender.run(ctx) })
	a.events.run(ctx)
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if err := cmp.Or(wellFormed(r.URL.RawQuery), decoded(r)); err != nil {
		WriteProblem(w, api.ProblemOf(err))
		return
	}
	outer := r
	r = r.WithContext(context.WithValue(r.Context(), placeKey{}, PlaceOf(r, a.c.URI)))
	defer func() { outer.Pattern = r.Pattern }() // for who counts requests by route
	if !acceptsGzip(r) {
		a.mux.ServeHTTP(w, r)
		return
	}
	z := &gzipWriter{ResponseWriter: w}
	a.mux.ServeHTTP(z, r)
	z.close() // not where the handler panics: what is cut off is not to look whole
}

// Scope says what a request needs; Admin of one that no route serves.
func (a *API) Scope(r *http.Request) auth.Scope {
	_, pattern := a.mux.Handler(r)
	if s, ok := a.scopes[pattern]; ok {
		return s
	}
	if strings.Contains(pattern, "/openapi") || pattern == "/" {
		return Read
	}
	return Admin
}

// OpenAPI returns the document, as JSON.
func (a *API) OpenAPI() ([]byte, error) { return json.MarshalIndent(a.api.OpenAPI(), "", "  ") }

// problem turns an error into its form on the wire. It logs an error of the server, with the parts
// that the answer leaves out.
func (a *API) problem(ctx context.Context, err error) *api.Problem {
	if ctx.Err() != nil && !errors.As(err, new(*api.Problem)) { // the caller is gone, or the server stops
		return api.NewProblem(http.StatusServiceUnavailable, "unavailable", "the request was given up")
	}
	p := api.ProblemOf(err)
	if p.Status == http.StatusInternalServerError {
		a.log.Error("a request met an error that it should not meet", "error", err)
	}
	return p
}

// WriteProblem writes a problem as the API does, for who refuses a request before it gets here.
func WriteProblem(w http.ResponseWriter, p *api.Problem) {
	w.Header().Set("Content-Type", api.ProblemType)
	w.WriteHeader(p.Status)
	_ = writeJSON(w, p) // the caller is gone
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// IfMatch is the ETag of what a change is for. "" and * are any.
type IfMatch string

func (m IfMatch) any() bool { return m == "" || m == "*" }

func (m IfMatch) has(tag string) bool { return m.any() || string(m) == tag }

// unmatched is the problem of what was changed between the read and the write of a request; any other error is returned as it is.
func (m IfMatch) unmatched(err error, what, name string) error {
	if errors.Is(err, plan.ErrConflict) && !m.any() {
		return unlike(what, name)
	}
	return err
}

func unlike(what, name string) error {
	return api.NewProblem(http.StatusPreconditionFailed, api.CodePrecondition, "%s %q is not as If-Match has it: it was set otherwise since, or never had that version; look at it again", what, name)
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
