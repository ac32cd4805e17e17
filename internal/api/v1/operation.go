package v1

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// An endpoint is what an operation says of itself.
type endpoint struct {
	method, path string // the path below api.Root
	id, summary  string
	doc          string
	tag          string
	scope        auth.Scope
	status       int    // of success; default 200, or 204 without a body
	body         int64  // how large a request may be; default smallBody
	media        string // of what is sent as a stream; "": the answer is JSON
	errors       []int
	forms        map[string]*huma.Schema // what its body may be instead, by type
	answers      map[int][]any           // the types of answers by status, if the handler's type does not give them
}

// A stream is an answer that its handler writes itself.
type stream struct{ Body func(http.ResponseWriter) }

// serve registers an operation. A handler gets a struct whose fields are the parts of the request,
// by their tags path, query and header, and Body or RawBody. It returns the body of the answer; an
// empty struct is none. A struct with a Body may have a Status, an ETag and a Location as well.
//
// serve does nothing but call register, because the compiler makes it anew for each operation.
// huma.Register would be made anew as well, at 30 KB for each type of request.
func serve[I, O any](a *API, e endpoint, handle func(context.Context, *I) (*O, error)) {
	a.register(&e, reflect.TypeFor[I](), reflect.TypeFor[O](), func(ctx context.Context, in any) (any, error) {
		return handle(ctx, in.(*I))
	})
}

// An operation reads requests, calls its handler, and writes the answers.
type operation struct {
	huma.Operation
	a      *API
	in     reflect.Type
	params []param
	body   []int        // the field for it; nil: none is read
	schema *huma.Schema // of the body; nil: it is not JSON
	parts  bool         // what the handler returns has a Body
	silent bool         // the answer has no body
	handle func(ctx context.Context, in any) (out any, err error)
}

// A param is a part of a request but for its body.
type param struct {
	huma.Param
	field   []int
	missing string // what it is when it is left out
	hidden  bool   // the document leaves it out, as a header of HTTP itself
}

func (p *param) explodes() bool { return p.Explode != nil && *p.Explode }

func (a *API) register(e *endpoint, in, out reflect.Type, handle func(context.Context, any) (any, error)) {
	o := &operation{a: a, in: in, handle: handle, Operation: huma.Operation{
		Method: e.method, Path: api.Root + e.path, OperationID: e.id, Summary: e.summary, Description: e.doc, Tags: []string{e.tag},
		DefaultStatus: e.status, MaxBodyBytes: e.body, BodyReadTimeout: bodyTime, Responses: map[string]*huma.Response{},
		Security: []map[string][]string{{"token": {string(e.scope)}}, {"basic": {string(e.scope)}}},
	}}
	switch {
	case e.body == 0:
		o.MaxBodyBytes = smallBody
	case e.body > smallBody:
		o.BodyReadTimeout += time.Duration(e.body/(16<<20)) * time.Minute
	}
	failures := append([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable, http.StatusInternalServerError}, e.errors...)
	if o.takes(e.forms); len(o.params) > 0 || o.schema != nil {
		failures = append(failures, http.StatusUnprocessableEntity)
	}
	o.gives(e, out)
	for _, status := range failures {
		o.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status), Content: map[string]*huma.MediaType{problemType: {Schema: a.schemaOf(reflect.TypeFor[api.Problem]())}},
		}
	}
	a.api.OpenAPI().AddOperation(&o.Operation)
	pattern := o.Method + " " + o.Path
	a.scopes[pattern] = e.scope
	a.mux.Handle(pattern, o)
}

func (a *API) schemaOf(t reflect.Type) *huma.Schema {
	return a.api.OpenAPI().Components.Schemas.Schema(t, true, "")
}

// schemaName names a type in the document.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if strings.HasSuffix(name, "Answer") {
		name += "Body"
	}
	return name
}

// takes learns from the handler's type what a request has.
func (o *operation) takes(forms map[string]*huma.Schema) {
	all := o.a.api.OpenAPI().Components.Schemas
	for _, f := range reflect.VisibleFields(o.in) {
		switch {
		case f.Anonymous: // its fields follow
		case f.Name == "Body":
			hint := o.OperationID + "Request"
			if o.in.Name() != "" {
				hint = o.in.Name() + "Body"
			}
			o.body, o.schema = f.Index, huma.SchemaFromField(all, f, hint)
			o.schema.PrecomputeMessages()
			o.RequestBody = &huma.RequestBody{Required: f.Type.Kind() != reflect.Pointer, Content: map[string]*huma.MediaType{"application/json": {Schema: o.schema}}}
		case f.Name == "RawBody":
			o.body = f.Index
			o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
				f.Tag.Get("contentType"): {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
			}}
			for kind, schema := range forms {
				o.RequestBody.Content[kind] = &huma.MediaType{Schema: schema}
			}
		default:
			p := param{field: f.Index, missing: f.Tag.Get("default"), hidden: f.Tag.Get("hidden") != ""}
			for _, p.In = range []string{"path", "query", "header"} {
				if p.Name = f.Tag.Get(p.In); p.Name != "" {
					break
				}
			}
			if p.Required = p.In == "path"; p.In == "query" {
				name, explode, _ := strings.Cut(p.Name, ",")
				explodes := explode != ""
				p.Name, p.Explode = name, &explodes
			}
			p.Schema = huma.SchemaFromField(all, f, "")
			p.Description = p.Schema.Description
			o.params = append(o.params, p)
			if !p.hidden {
				o.Parameters = append(o.Parameters, &o.params[len(o.params)-1].Param)
			}
		}
	}
}

// gives learns from the handler's type what an answer has.
func (o *operation) gives(e *endpoint, out reflect.Type) {
	for status, types := range e.answers {
		schemas := make([]*huma.Schema, len(types))
		for i, t := range types {
			schemas[i] = o.a.schemaOf(reflect.TypeOf(t))
		}
		schema := schemas[0]
		if len(schemas) > 1 {
			schema = &huma.Schema{OneOf: schemas}
		}
		o.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status), Content: map[string]*huma.MediaType{"application/json": {Schema: schema}},
		}
	}
	o.silent = out.NumField() == 0
	var headers map[string]*huma.Param
	if body, ok := out.FieldByName("Body"); ok {
		for _, name := range answerHeaders {
			if _, ok := out.FieldByName(name); ok {
				if headers == nil {
					headers = map[string]*huma.Param{}
				}
				headers[name] = &huma.Header{Schema: &huma.Schema{Type: huma.TypeString}}
			}
		}
		o.parts, out = true, body.Type
	}
	if o.DefaultStatus == 0 {
		if o.DefaultStatus = http.StatusOK; o.silent {
			o.DefaultStatus = http.StatusNoContent
		}
	}
	success := o.Responses[strconv.Itoa(o.DefaultStatus)]
	if success == nil {
		success = &huma.Response{Description: http.StatusText(o.DefaultStatus)}
		o.Responses[strconv.Itoa(o.DefaultStatus)] = success
		switch {
		case e.media != "":
			success.Content = map[string]*huma.MediaType{e.media: {Schema: &huma.Schema{Type: huma.TypeString}}}
		case !o.silent:
			success.Content = map[string]*huma.MediaType{"application/json": {Schema: o.a.schemaOf(out)}}
		}
	}
	success.Headers = headers
}

// answerHeaders are the headers of answers that handlers give.
var answerHeaders = []string{"ETag", "Location"}

// ServeHTTP implements http.Handler.
func (o *operation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := reflect.New(o.in)
	if p := o.read(w, r, in.Elem()); p != nil {
		WriteProblem(w, p)
		return
	}
	ctx := r.Context()
	if of, ok := in.Interface().(interface{ changed() string }); ok && o.Method != http.MethodGet {
		auth.Changed(ctx, of.changed())
	}
	out, err := o.handle(ctx, in.Interface())
	if err != nil {
		WriteProblem(w, o.a.problem(ctx, err))
		return
	}
	status := o.DefaultStatus
	if o.silent {
		w.WriteHeader(status)
		return
	}
	if o.parts {
		v := reflect.ValueOf(out).Elem()
		out = v.FieldByName("Body").Interface()
		if send, ok := out.(func(http.ResponseWriter)); ok {
			send(w)
			return
		}
		for _, name := range answerHeaders {
			if s := v.FieldByName(name); s.IsValid() && s.String() != "" {
				w.Header().Set(name, s.String())
			}
		}
		if s := v.FieldByName("Status"); s.IsValid() {
			status = int(s.Int())
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := writeJSON(w, out); err != nil && ctx.Err() == nil {
		o.a.log.Warn("an answer could not be written to its end", "path", r.URL.Path, "error", err)
		panic(http.ErrAbortHandler) // the client is to see that it is cut
	}
}

// read fills in what the handler gets. A problem names each mistake of the request.
func (o *operation) read(w http.ResponseWriter, r *http.Request, in reflect.Value) *api.Problem {
	query := r.URL.Query()
	if p := o.repeated(query, r.Header); p != nil {
		return p
	}
	var wrong huma.ValidateResult
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.ContainsFunc(o.params, func(p param) bool { return p.In == "query" && p.Name == name }) {
			wrong.Add(at("query."+name), "", "unknown query parameter")
		}
	}
	status := http.StatusUnprocessableEntity
	if len(wrong.Errors) > 0 {
		return refused(status, "validation failed", wrong.Errors...)
	}
	for i := range o.params {
		p := &o.params[i]
		place, values := at(p.In+"."+p.Name), p.values(r, query)
		switch value, err := p.set(in.FieldByIndex(p.field), values); {
		case len(values) == 0 && p.Required:
			wrong.Add(place, "", "required "+p.In+" parameter is missing")
		case err != nil:
			wrong.Add(place, values[0], err.Error())
		case len(values) > 0:
			o.validate(p.Schema, place, value, &wrong)
		}
	}
	if o.body != nil {
		text, p := o.readBody(w, r)
		switch {
		case p != nil:
			return p
		case len(text) == 0 && o.RequestBody.Required:
			return refused(http.StatusBadRequest, "request body is required", wrong.Errors...)
		case o.schema == nil:
			in.FieldByIndex(o.body).SetBytes(text)
		case len(text) > 0:
			status = o.decode(r.Header.Get("Content-Type"), text, in.FieldByIndex(o.body), &wrong)
		}
	}
	if len(wrong.Errors) > 0 {
		return refused(status, "validation failed", wrong.Errors...)
	}
	return nil
}

// at is a place in a request, as in query.limit.
func at(place string) *huma.PathBuffer { return huma.NewPathBuffer([]byte(place), len(place)) }

func (o *operation) validate(s *huma.Schema, place *huma.PathBuffer, value any, wrong *huma.ValidateResult) {
	huma.Validate(o.a.api.OpenAPI().Components.Schemas, s, place, huma.ModeWriteToServer, value, wrong)
}

// decode reads a body that is JSON into a field, and returns the status of what is wrong with it.
func (o *operation) decode(kind string, text []byte, into reflect.Value, wrong *huma.ValidateResult) (status int) {
	kind, _, _ = strings.Cut(kind, ";")
	if kind = strings.TrimSpace(kind); kind != "" && kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		wrong.Add(at("body"), "", "unknown content type: "+kind)
		return http.StatusUnsupportedMediaType
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		wrong.Add(at("body"), "", err.Error())
		return http.StatusBadRequest
	}
	if name := jsontext.Twice(text); name != "" {
		wrong.Add(at("body"), "", fmt.Sprintf("it has %q twice in one object; give it once", name))
		return http.StatusBadRequest
	}
	before := len(wrong.Errors)
	if o.validate(o.schema, at("body"), value, wrong); len(wrong.Errors) == before {
		err := json.Unmarshal(text, into.Addr().Interface())
		if no, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // a number that its Go type cannot hold
			embedded := func(name string) bool { return name[0] <= 'Z' }
			place := slices.DeleteFunc(strings.Split("body."+no.Field, "."), embedded)
			wrong.Add(at(strings.Join(place, ".")), "", no.Value+" does not fit")
		} else if err != nil {
			wrong.Add(at("body"), "", err.Error())
		}
	}
	return http.StatusUnprocessableEntity
}

// repeated refuses a query parameter or a header that is given several times and is no list, or
// that is empty: a value or a condition would be ignored without notice. A script with an empty list
// of ids must not get all tasks, and one whose key is empty must not submit a plan twice. A cursor
// may be empty: that is the first page.
func (o *operation) repeated(query map[string][]string, header http.Header) (p *api.Problem) {
	refuse := func(place, short, text string) {
		if p == nil {
			p = api.Invalid("%s: %s", place, text)
		}
		p.Fields = append(p.Fields, api.Field{Message: short, Location: place})
	}
	for i := range o.params {
		param := &o.params[i]
		values := query[param.Name]
		switch {
		case param.In == "header" && !param.hidden:
			values = header.Values(param.Name)
		case param.In != "query" || param.explodes():
			continue
		}
		place := param.In + "." + param.Name
		switch {
		case len(values) > 1 && param.Schema.Type != huma.TypeArray:
			refuse(place, "it is given several times", fmt.Sprintf("it is given %d times, and takes one value: ask once for each", len(values)))
		case !slices.Contains(values, "") || slices.Contains(cursors, param.Name):
		case param.In == "header":
			refuse(place, "it has no value", "it has no value, perhaps from a variable that is not set: give it one, or leave it out")
		default:
			refuse(place, "it has no value", "it has no value, and would be no condition: give it one, or leave it out")
		}
	}
	return p
}

// values returns what a request has for a param, or what it is when it is left out.
func (p *param) values(r *http.Request, query map[string][]string) []string {
	value := ""
	switch p.In {
	case "path":
		value = r.PathValue(p.Name)
	case "header":
		value = r.Header.Get(p.Name)
	default:
		if p.explodes() {
			return query[p.Name]
		}
		value = strings.Join(query[p.Name], ",")
	}
	if value == "" {
		value = p.missing
	}
	switch {
	case value == "":
		return nil
	case p.Schema.Type == huma.TypeArray:
		return strings.Split(value, ",")
	}
	return []string{value}
}

// set reads values into a field, and returns what is held against the param's schema.
func (p *param) set(f reflect.Value, values []string) (any, error) {
	if len(values) == 0 {
		return nil, nil
	}
	switch f.Kind() {
	case reflect.String:
		f.SetString(values[0])
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return nil, errors.New("invalid integer")
		}
		f.SetInt(n)
		return n, nil
	case reflect.Bool:
		b, err := strconv.ParseBool(values[0])
		if err != nil {
			return nil, errors.New("invalid boolean")
		}
		f.SetBool(b)
		return b, nil
	case reflect.Slice:
		f.Set(reflect.ValueOf(values))
		return values, nil
	default:
		if err := f.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(values[0])); err != nil {
			return nil, fmt.Errorf("invalid value: %w", err)
		}
	}
	return values[0], nil
}

// readBody reads a body that is not too large and not too slow.
func (o *operation) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *api.Problem) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(o.BodyReadTimeout)) // not every connection has one
	text, err := io.ReadAll(io.LimitReader(r.Body, o.MaxBodyBytes))
	var slow net.Error
	switch {
	case int64(len(text)) == o.MaxBodyBytes:
		return nil, refused(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body of the request has to be smaller than %d MiB", o.MaxBodyBytes>>20))
	case errors.As(err, &slow) && slow.Timeout():
		return nil, refused(http.StatusRequestTimeout, "request body read timeout")
	case err != nil:
		return nil, refused(http.StatusInternalServerError, "cannot read request body", err)
	}
	return textfile.WithoutMark(text), nil
}

const problemType = "application/problem+json"

// refused makes the problem of a request that cannot be read, with each mistake and its place.
func refused(status int, message string, errs ...error) *api.Problem {
	code := map[int]string{
		http.StatusRequestEntityTooLarge: api.CodeTooLarge, http.StatusRequestTimeout: api.CodeTimeout, http.StatusInternalServerError: api.CodeInternal,
		http.StatusUnsupportedMediaType: api.CodeUnsupported,
	}[status]
	if code == "" {
		code = api.CodeInvalid
	}
	p := api.NewProblem(status, code, "%s", message)
	var words []string
	for _, err := range errs {
		var known *api.Problem
		if errors.As(err, &known) {
			return known
		}
		f := api.Field{Message: err.Error()}
		if d, ok := err.(huma.ErrorDetailer); ok {
			f.Message, f.Location = d.ErrorDetail().Message, d.ErrorDetail().Location
		}
		if f.Location == "path.plan" { // see ByPlanID
			f.Message += fmt.Sprintf("; what changes a plan is given its id, which GET %s/plans/NAME tells", api.Root)
		}
		p.Fields = append(p.Fields, f)
		words = append(words, strings.TrimPrefix(f.Location+": "+f.Message, ": "))
	}
	if len(words) > 0 {
		p.Detail = message + ": " + strings.Join(words, "; ")
	}
	return p
}
