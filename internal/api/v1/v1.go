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
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strconv"
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
	bodyTime  = 30 * time.Second // for a small body; larger ones have a minute more per 16 MiB
	pageSize  = 100              // of a list, where no limit is asked for
	mostPage  = api.MostPage     // of a list
)

// The scopes that routes need; what each allows is internal/auth's.
const (
	Read    = auth.Read
	Operate = auth.Operate
	Submit  = auth.Submit
	Admin   = auth.Admin
)

// Config is what the API serves.
type Config struct {
	Store   store.Store                            // what is secret in it is not shown
	Plugins func() []Plugin                        // that this program has; nil: none
	Notes   func(*plan.Spec) plan.Problems         // what plugins say of a plan that is valid, and probably not meant; nil: nothing
	End     func(context.Context, plan.Plan) error // ends a plan that was cancelled, if no live node does; nil: nobody ends it then
	URI     string                                 // of the store, for commands that need it; shown only if it holds no secret
	Version string
	Log     *slog.Logger // of what is the server's fault; default: none
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
		WriteProblem(w, api.NewProblem(http.StatusMethodNotAllowed, "method_not_allowed", "%s is not for %s, which takes %s", r.URL.Path, r.Method, strings.Join(there, ", ")))
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

// An endpoint is what an operation says of itself.
type endpoint struct {
	method, path string // the path below api.Root
	id, summary  string
	doc          string
	tag          string
	scope        auth.Scope
	status       int    // of success; default 200
	body         int64  // how large a request may be; default smallBody
	media        string // of what is sent as a stream; "": the answer is JSON
	errors       []int
	forms        map[string]*huma.Schema // what its body may be instead, by type
	answers      map[int][]any           // the types of answers by status, if the handler's type does not give them
}

// serve registers an operation. It is compiled for each operation, so that it leaves to others what is no matter of their types.
func serve[I, O any](a *API, e endpoint, handle func(context.Context, *I) (*O, error)) {
	op := a.begin(&e)
	form := a.formOf(op, reflect.TypeFor[O]())
	huma.Register(a.api, *op, func(ctx context.Context, in *I) (*answer, error) {
		a.note(ctx, op, in)
		out, err := handle(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		return form.answer(out), nil
	})
	form.mend(op)
	a.end(&e, op)
}

// serveStream is serve for an operation that writes its answer itself.
func serveStream[I any](a *API, e endpoint, handle func(context.Context, *I) (*huma.StreamResponse, error)) {
	op := a.begin(&e)
	huma.Register(a.api, *op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		a.note(ctx, op, in)
		out, err := handle(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		return out, nil
	})
}

// begin says what an endpoint is, but for what follows from its types.
func (a *API) begin(e *endpoint) *huma.Operation {
	op := e.operation()
	for status, types := range e.answers {
		if op.Responses == nil {
			op.Responses = map[string]*huma.Response{}
		}
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status), Content: map[string]*huma.MediaType{"application/json": {Schema: a.oneOf(types)}},
		}
	}
	a.scopes[op.Method+" "+op.Path] = e.scope
	return &op
}

// note tells the audit log what a request changes.
func (a *API) note(ctx context.Context, op *huma.Operation, in any) {
	if of, ok := in.(interface{ changed() string }); ok && op.Method != http.MethodGet {
		auth.Changed(ctx, of.changed())
	}
}

// end adds what a body may be instead.
func (a *API) end(e *endpoint, op *huma.Operation) {
	for kind, schema := range e.forms { // afterwards: huma holds no body against a schema that it did not make
		a.api.OpenAPI().Paths[op.Path].Post.RequestBody.Content[kind] = &huma.MediaType{Schema: schema}
	}
}

// oneOf is the schema of what is of one of these types.
func (a *API) oneOf(types []any) *huma.Schema {
	schemas := make([]*huma.Schema, len(types))
	for i, t := range types {
		schemas[i] = a.api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(t), true, "")
	}
	if len(schemas) == 1 {
		return schemas[0]
	}
	return &huma.Schema{OneOf: schemas}
}

func (e *endpoint) operation() huma.Operation {
	op := huma.Operation{
		Method: e.method, Path: api.Root + e.path, OperationID: e.id, Summary: e.summary, Description: e.doc, Tags: []string{e.tag},
		DefaultStatus: e.status, MaxBodyBytes: e.body, BodyReadTimeout: bodyTime,
		Errors:   append([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable}, e.errors...),
		Security: []map[string][]string{{"token": {string(e.scope)}}, {"basic": {string(e.scope)}}},
	}
	if e.media != "" {
		op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{e.media: {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	}
	switch {
	case e.body == 0:
		op.MaxBodyBytes = smallBody
	case e.body > smallBody:
		op.BodyReadTimeout += time.Duration(e.body/(16<<20)) * time.Minute
	}
	return op
}

// problem turns an error into its form on the wire. It logs an error of the server, with the parts
// that the answer leaves out.
func (a *API) problem(ctx context.Context, err error) error {
	if ctx.Err() != nil && !isProblem(err) { // who asked is gone, or the server stops
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
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = jsonFormat.Marshal(w, p) // who asked is gone
}

var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	},
	Unmarshal: json.Unmarshal,
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
