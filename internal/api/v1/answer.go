package v1

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// An answer is the value that huma gets from every operation that does not stream. huma.Register is
// compiled for each pair of types, at 30 KB each. With one answer type, all operations with the
// same input share that code.
type answer struct {
	Status   int
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Body     any
}

// A form says how an answer is made from the value that a handler returns. That value is a struct
// with some of these fields, and a body of its own type.
type form struct {
	of     reflect.Type
	body   bool
	status int // where the handler says none
	told   bool
}

// formOf adds to an operation what its answers are, as huma would do it for the type.
func (a *API) formOf(op *huma.Operation, of reflect.Type) *form {
	f := &form{of: of, status: op.DefaultStatus}
	body, ok := of.FieldByName("Body")
	if f.body = ok; f.status == 0 {
		if f.status = http.StatusNoContent; ok {
			f.status = http.StatusOK
		}
	}
	op.DefaultStatus = f.status
	if ok && body.Type.Kind() == reflect.Func {
		panic(op.OperationID + " is for serveStream")
	}
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	if _, f.told = op.Responses[strconv.Itoa(f.status)]; ok && !f.told {
		hint := op.OperationID + "Response"
		if of.Name() != "" {
			hint = of.Name() + "Body"
		}
		schema := huma.SchemaFromField(a.api.OpenAPI().Components.Schemas, body, hint)
		op.Responses[strconv.Itoa(f.status)] = &huma.Response{Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
	}
	return f
}

// mend takes from the document what an answer has and the form has not.
func (f *form) mend(op *huma.Operation) {
	r := op.Responses[strconv.Itoa(f.status)]
	if !f.body {
		r.Content = nil
	}
	for _, header := range []string{"ETag", "Location"} {
		if _, ok := f.of.FieldByName(header); !ok {
			delete(r.Headers, header)
		}
	}
}

// answer makes one of what a handler returned, a pointer; nil, which is the status alone, where that has no body.
func (f *form) answer(out any) *answer {
	v := reflect.ValueOf(out)
	if v.IsNil() || !f.body {
		return nil
	}
	v = v.Elem()
	made := &answer{Status: f.status, Body: v.FieldByName("Body").Interface()}
	if s := v.FieldByName("Status"); s.IsValid() {
		made.Status = int(s.Int())
	}
	if s := v.FieldByName("ETag"); s.IsValid() {
		made.ETag = s.String()
	}
	if s := v.FieldByName("Location"); s.IsValid() {
		made.Location = s.String()
	}
	return made
}
