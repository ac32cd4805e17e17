package v1

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-1177d267/sluice/internal/api"
)

// repeated is huma middleware for what a query string gives several times, which huma takes the first of. Of a list all are meant, as if there
// were a comma between them; anything else is refused, since one of them would have no effect and nobody would be told.
func repeated(c huma.Context, next func(huma.Context)) {
	u := c.URL()
	given, lists := u.Query(), map[string]string{}
	var p *api.Problem
	for _, param := range c.Operation().Parameters {
		values := given[param.Name]
		if param.In != "query" || len(values) < 2 || param.Explode != nil && *param.Explode {
			continue
		}
		if param.Schema.Type == huma.TypeArray {
			lists[param.Name] = strings.Join(slices.DeleteFunc(values, func(v string) bool { return v == "" }), ",")
			continue
		}
		if p == nil {
			p = api.Invalid("query.%s: it is given %d times, and takes one value: ask once for each", param.Name, len(values))
		}
		p.Fields = append(p.Fields, api.Field{Message: "it is given several times", Location: "query." + param.Name})
	}
	switch {
	case p != nil:
		c.SetHeader("Content-Type", p.ContentType(""))
		c.SetStatus(http.StatusUnprocessableEntity)
		_ = jsonFormat.Marshal(c.BodyWriter(), p) // who asked is gone
	case len(lists) > 0:
		next(&joined{c, lists})
	default:
		next(c)
	}
}

// A request is huma's, under a name that an embedded field can have: it has a method Context.
type request = huma.Context

// joined is a request whose lists are told as one text each, however often they were given.
type joined struct {
	request
	lists map[string]string
}

// Unwrap is how huma finds the request behind it.
func (j *joined) Unwrap() huma.Context { return j.request }

// Query implements huma.Context.
func (j *joined) Query(name string) string {
	if all, ok := j.lists[name]; ok {
		return all
	}
	return j.request.Query(name)
}
