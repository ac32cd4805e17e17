package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// An endpoint is what an operation says of itself.
type endpoint struct {
	method, path string // the path below the root
	root         string // default api.Root
	id, summary  string
	doc          string
	tag          string
	scope        auth.Scope
	status       int    // of success; default 200, or 204 without a body
	body         int64  // how large a request may be; default smallBody
	media        string // of what is sent as a stream; "": the answer is JSON
	pack         packBody
	programs     bool   // pages in a browser may not ask
	bodyless     string // the operation takes no body; the text says what to do instead
	errors       []int
	forms        map[string]*huma.Schema // what its body may be instead, by type
	answers      map[int][]any           // the types of answers by status, if the handler's type does not give them
}

// A stream is an answer that its handler writes itself.
type stream struct{ Body func(http.ResponseWriter) }

// serve registers an operation. A handler gets a struct whose fields are the parts of the request,
// by their tags path, query and header, and Body or RawBody. It returns the body of the answer; an
// empty struct is none. A struct with a Body may have a Status, an ETag and a Location as well.
func serve[I, O any](a *API, e endpoint, handle func(context.Context, *I) (*O, error)) {
	o := a.operation(&e, reflect.TypeFor[I](), reflect.TypeFor[O]())
	huma.Register(a.api, o.Operation, func(ctx context.Context, in *I) (*answer, error) {
		if of, ok := any(in).(interface{ changed() string }); ok && o.Method != http.MethodGet {
			auth.Changed(ctx, of.changed())
		}
		out, err := handle(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		return &answer{func(c huma.Context) { o.write(c, out) }}, nil
	})
}

// An answer is what huma is given: a function that writes it.
type answer struct{ Body func(huma.Context) }

// An operation is what serve knows of an endpoint.
type operation struct {
	huma.Operation
	a      *API
	parts  bool // what the handler returns has a Body
	silent bool // the answer has no body
}

func (a *API) operation(e *endpoint, in, out reflect.Type) *operation {
	o := &operation{a: a, Operation: huma.Operation{
		Method: e.method, Path: cmp.Or(e.root, api.Root) + e.path, OperationID: e.id, Summary: e.summary, Description: e.doc, Tags: []string{e.tag},
		DefaultStatus: e.status, MaxBodyBytes: cmp.Or(e.body, smallBody), BodyReadTimeout: bodyTime, Responses: map[string]*huma.Response{},
		Errors:      append([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable}, e.errors...),
		Security:    []map[string][]string{{"token": {string(e.scope)}}, {"basic": {string(e.scope)}}},
		Middlewares: huma.Middlewares{checkGiven},
	}}
	if e.programs {
		o.Middlewares = append(o.Middlewares, onlyPrograms)
	}
	if e.bodyless != "" {
		o.Middlewares = append(o.Middlewares, withoutBody(e.bodyless))
	}
	if e.pack != noPack {
		o.Middlewares = append(o.Middlewares, e.pack.receive)
	}
	if e.pack == alwaysIs {
		o.RequestBody = &huma.RequestBody{Content: packSchema()}
	}
	if e.body > smallBody {
		o.BodyReadTimeout += time.Duration(e.body/(16<<20)) * time.Minute
	}
	if _, raw := in.FieldByName("RawBody"); raw { // its handler reads it
		o.SkipValidateBody, o.RequestBody = true, &huma.RequestBody{Content: map[string]*huma.MediaType{}}
		for kind, schema := range e.forms {
			o.RequestBody.Content[kind] = &huma.MediaType{Schema: schema}
		}
	}
	o.gives(e, out)
	a.scopes[o.Method+" "+o.Path] = e.scope
	return o
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

// durationText is the schema of a plan.Duration. By the pattern, huma names the field of a text that is
// none; the decoder of JSON does not.
type durationText struct{}

// Schema implements huma.SchemaProvider.
func (durationText) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Pattern: `^[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w))+)$`, PatternDescription: "a duration, as in 90s, 10m, 1h30m or 1d",
	}
}

// gives learns from the handler's type what an answer has.
func (o *operation) gives(e *endpoint, out reflect.Type) {
	for status, types := range e.answers {
		schemas := api.Each(types, func(t *any) *huma.Schema { return o.a.schemaOf(reflect.TypeOf(*t)) })
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

// write writes what a handler returned.
func (o *operation) write(c huma.Context, out any) {
	r, w := humago.Unwrap(c)
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
	if err := writeJSON(w, out); err != nil && r.Context().Err() == nil {
		o.a.log.Warn("an answer could not be written to its end", "path", r.URL.Path, "error", err)
		panic(http.ErrAbortHandler) // the client is to see that it is cut
	}
}

// asJSON is how huma reads bodies and writes problems.
var asJSON = huma.Format{
	Marshal: writeJSON,
	Unmarshal: func(text []byte, into any) error {
		text = textfile.WithoutMark(text)
		err := json.Unmarshal(text, into)
		if no, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && no.Field != "" { // a number that its Go type cannot hold
			return misfit(no)
		} else if ok { // a number that nothing holds, as 1e999
			if at := topNumber.FindSubmatch(text[:min(no.Offset, int64(len(text)))]); at != nil {
				no.Field = string(at[1])
			}
			return misfit(no)
		}
		if _, first := into.(*any); first && err == nil {
			if name := cmp.Or(jsontext.Twice(text), jsontext.TwiceInCase(text)); name != "" {
				return fmt.Errorf("it has %q twice in one object; give it once", name)
			}
		}
		return err
	},
}

// topNumber matches a text up to the end of a number that is a field of the whole body, or a byte more.
var topNumber = regexp.MustCompile(`^[^{]*\{(?:[^{\[]*,)?\s*"(\w+)"\s*:\s*[-+.\deE]*[,}\s]?$`)

// misfit is the error for a value that its Go type cannot hold, with its field where that is known. Fields of Go
// that are embedded are no part of the place.
func misfit(no *json.UnmarshalTypeError) error {
	place := strings.Split(no.Field, ".")
	last := len(place) - 1
	place = append(slices.DeleteFunc(place[:last:last], func(name string) bool { return name[0] <= 'Z' }), place[last])
	return errors.New(strings.TrimPrefix(strings.Join(place, ".")+": "+no.Value+unfit, ": "))
}

// unfit ends the message for a value that its field cannot hold. The field is before it.
const unfit = " does not fit"

// checkGiven refuses parameters that huma would ignore in part, and joins the values of lists.
func checkGiven(c huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(c)
	query := r.URL.Query()
	params := c.Operation().Parameters
	if p := repeated(params, query, r.Header); p != nil {
		WriteProblem(w, p)
		return
	}
	var unknown huma.ValidateResult
	for _, name := range slices.Sorted(maps.Keys(query)) {
		at := slices.IndexFunc(params, func(p *huma.Param) bool { return p.In == "query" && p.Name == name })
		if at < 0 {
			unknown.Add(huma.NewPathBuffer([]byte("query."+name), len("query."+name)), "", "unknown query parameter")
		} else if !*params[at].Explode {
			query[name] = []string{strings.Join(query[name], ",")}
		}
	}
	if len(unknown.Errors) > 0 {
		WriteProblem(w, refused(http.StatusUnprocessableEntity, "validation failed", unknown.Errors...))
		return
	}
	r.URL.RawQuery = query.Encode()
	next(c)
}

// withoutBody refuses a body, which huma would drop.
func withoutBody(instead string) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		if r, w := humago.Unwrap(c); r.ContentLength != 0 {
			WriteProblem(w, api.InvalidAt("body", "this request takes none; %s", instead))
			return
		}
		next(c)
	}
}

// repeated refuses a query parameter or a header that is given several times and is no list, or
// that is empty: a value or a condition would be ignored without notice. A script with an empty list
// of ids must not get all tasks, and one whose key is empty must not submit a plan twice. A cursor
// may be empty: that is the first page.
func repeated(params []*huma.Param, query map[string][]string, header http.Header) (p *api.Problem) {
	refuse := func(place, short, text string) {
		if p == nil {
			p = api.Invalid("%s: %s", place, text)
		}
		p.Fields = append(p.Fields, api.Field{Message: short, Location: place})
	}
	for _, param := range params {
		var values []string
		switch param.In {
		case "header":
			values = header.Values(param.Name)
		case "query":
			values = query[param.Name]
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

func init() {
	huma.NewErrorWithContext = func(c huma.Context, status int, message string, errs ...error) huma.StatusError {
		kind, _, _ := strings.Cut(c.Header("Content-Type"), ";")
		switch status {
		case http.StatusUnsupportedMediaType:
			errs = append(errs[:0], &huma.ErrorDetail{Location: "body", Message: "unknown content type: " + kind})
		case http.StatusRequestEntityTooLarge:
			message = fmt.Sprintf("the body of the request has to be smaller than %d MiB", c.Operation().MaxBodyBytes>>20)
		}
		return refused(status, message, errs...)
	}
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return refused(status, message, errs...)
	}
}

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
		if known, ok := errors.AsType[*api.Problem](err); ok {
			return known
		}
		if len(p.Fields) >= api.MostFields { // the answer only counts it
			p.Fields = append(p.Fields, api.Field{})
			continue
		}
		var f api.Field
		if d, ok := err.(huma.ErrorDetailer); !ok {
			f.Message = err.Error()
		} else { // its Error writes the whole value
			f.Message, f.Location = d.ErrorDetail().Message, d.ErrorDetail().Location
			if err := refusedNumber(d.ErrorDetail()); err != nil {
				f.Message = err.Error()
			} else if d.ErrorDetail().Value == "" && strings.HasPrefix(f.Message, "expected length >=") {
				f.Message = "it is empty; give one"
			} else if strings.HasPrefix(f.Message, "invalid date/time for format ") { // a layout of Go follows
				f.Message = "it is no instant of RFC 3339; give one, as 2027-12-24T18:00:00Z"
			}
			if place, what, ok := strings.Cut(f.Message, ": "); ok && strings.HasSuffix(what, unfit) {
				f.Message, f.Location = what, strings.TrimSuffix(f.Location+"."+place, ".")
			}
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

// refusedNumber returns what the rule of a setting says of a value in the body that its schema refuses; nil if no
// rule does.
func refusedNumber(d *huma.ErrorDetail) error {
	at := strings.LastIndexByte(d.Location, '.')
	if at < 0 || !strings.HasPrefix(d.Location, "body.") || d.Message == validation.MsgUnexpectedProperty {
		return nil
	}
	text, err := json.Marshal(d.Value)
	if f, is := d.Value.(float64); is {
		text = strconv.AppendFloat(nil, f, 'f', -1, 64) // JSON writes 1e+99
	}
	if err != nil || len(text) > mostNumber {
		return nil
	}
	return rules.CheckNumber(d.Location[at+1:], string(text))
}

// mostNumber is how many bytes of a value, in place of a number, an answer repeats at most.
const mostNumber = 40
