package v1

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-1177d267/sluice/internal/api"
)

// huma has one function for the errors that it finds itself; they are problems as all others are.
func init() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		code := map[int]string{
			http.StatusRequestEntityTooLarge: api.CodeTooLarge, http.StatusRequestTimeout: api.CodeTimeout, http.StatusInternalServerError: api.CodeInternal,
			http.StatusUnsupportedMediaType: api.CodeUnsupported,
		}[status]
		if code == "" {
			code = api.CodeInvalid
		}
		p := api.NewProblem(status, code, "%s", message)
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
		}
		if len(p.Fields) > 0 {
			words := make([]string, len(p.Fields))
			for i, f := range p.Fields {
				words[i] = strings.TrimPrefix(f.Location+": "+f.Message, ": ")
			}
			p.Detail = message + ": " + strings.Join(words, "; ")
		}
		return p
	}
}

func isProblem(err error) bool {
	var p *api.Problem
	return errors.As(err, &p)
}

// schemaName names a type in the document by its own name, whatever package it is of.
func schemaName(t reflect.Type, hint string) string { return huma.DefaultSchemaNamer(t, hint) }
