package v1

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/api"
)

// wellFormed refuses a query string that net/url would read in part, or otherwise than it was
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

// cursors are the parameters that continue a list or a stream.
var cursors = []string{"after", "before", "Last-Event-ID"}
