package v1

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-1177d267/sluice/internal/api"
)

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

func isProblem(err error) bool {
	var p *api.Problem
	return errors.As(err, &p)
}
