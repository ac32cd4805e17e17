package v1

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-1177d267/sluice/internal/api"
)

// wellFormed refuses a query string that net/url would read only partly, or differently than it was
// meant. net/url drops a pair with a wrong escape or a ;. Text that is not UTF-8 or has a NUL
// reaches stores and tasks as something else. A problem names the pair without its value, which may
// be a secret. wellFormed runs before any route reads the query.
func wellFormed(query string) error {
	at := 0
	for pair := range strings.SplitSeq(query, "&") {
		if at++; pair == "" {
			continue
		}
		if wrong := wrongOf(pair); wrong != "" {
			p := api.Invalid("query: pair %d, %s: %s", at, pairName(pair), wrong)
			p.Fields = []api.Field{{Message: wrong, Location: "query." + strings.TrimSuffix(pairName(pair), "=…")}}
			return p
		}
	}
	return nil
}

// wrongOf says what is wrong with a pair of a query string, and what to do about it.
func wrongOf(pair string) string {
	if strings.Contains(pair, ";") {
		return "it has a ;, which separates no pairs: write & between them, and a ; that is meant as itself as %3B"
	}
	text, err := url.QueryUnescape(pair)
	name, _, _ := strings.Cut(text, "=")
	switch {
	case err != nil:
		return "it has a % without two hex digits after it: write a % that is meant as itself as %25"
	case slices.Contains(cursors, name): // who reads it knows what is one
	case !utf8.ValidString(text):
		return "it is not UTF-8: write the bytes of its text in UTF-8, each as %XX"
	case strings.Contains(text, "\x00"):
		return "it has a NUL, which no text may have: leave out the %00"
	}
	return ""
}

// pairName is a pair of a query string without its value: name=…, and for a param of a plan param=NAME=….
func pairName(pair string) string {
	name, value, is := strings.Cut(pair, "=")
	if param, _, ok := strings.Cut(value, "="); ok && name == "param" {
		name += "=" + param
	}
	if is {
		name += "=…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// cursors are the parameters that continue a list.
var cursors = []string{"after", "before"}

// asked is huma middleware for repeated and empty parameters. huma takes the first of repeated
// ones, and takes an empty one as missing. asked joins the values of a list, as if there were a
// comma between them. It refuses anything else: a value or a condition would be ignored without
// notice. A script with an empty list of ids must not get all tasks. A cursor may be empty: that is
// the first page.
func asked(c huma.Context, next func(huma.Context)) {
	u := c.URL()
	given, lists := u.Query(), map[string]string{}
	var p *api.Problem
	refuse := func(name, short, text string) {
		if p == nil {
			p = api.Invalid("query.%s: %s", name, text)
		}
		p.Fields = append(p.Fields, api.Field{Message: short, Location: "query." + name})
	}
	for _, param := range c.Operation().Parameters {
		values := given[param.Name]
		if param.In != "query" || len(values) == 0 || param.Explode != nil && *param.Explode {
			continue
		}
		isList := param.Schema.Type == huma.TypeArray
		switch {
		case len(values) > 1 && !isList:
			refuse(param.Name, "it is given several times", fmt.Sprintf("it is given %d times, and takes one value: ask once for each", len(values)))
		case slices.Contains(values, "") && !slices.Contains(cursors, param.Name):
			refuse(param.Name, "it has no value", "it has no value, and would be no condition: give it one, or leave it out")
		case len(values) > 1:
			lists[param.Name] = strings.Join(values, ",")
		}
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

// joined is a request whose lists are one text each, however often they were given.
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
