package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	stduritemplate "github.com/std-uritemplate/std-uritemplate/go/v2"

	"github.com/seed-1177d267/sluice/internal/source"
)

// A url is an RFC 6570 template. Its expressions stand behind the host, so that no field chooses
// the receiver, and each field is a scalar: a field of the body, or else a param.
var (
	expression = regexp.MustCompile(`\{([^{}]*)\}`)
	variable   = regexp.MustCompile(`^([A-Za-z0-9_%.]+)(\*|:[1-9][0-9]{0,3})?$`)
)

// Letters of RFC 6570 and RFC 3986: those of a name, and those that a value keeps.
const (
	letters    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
	unreserved = letters + "-.~"
)

// A template is a url whose fields were found.
type template struct {
	host, rest  string   // the host begins with the scheme
	expressions [][2]int // where they begin and end in the rest
	values      stduritemplate.Substitutions
}

// cutHost divides a template behind its host, which is empty if there is none.
func cutHost(text string) (host, rest string) {
	scheme, after, _ := strings.Cut(text, "://")
	end := strings.IndexAny(after, "/?#{}@\\ \t\n\f\r")
	if end < 0 {
		end = len(after)
	}
	if s := strings.ToLower(scheme); s != "http" && s != "https" || end == 0 {
		return "", text
	}
	end = len(text) - len(after) + end
	return text[:end], text[end:]
}

// errUserName is the error of an address with a user name, which is before the host.
var errUserName = errors.New("a user name in it would be stored and shown; leave it out")

// readTemplate refuses a template that no fields fill, or whose fields are missing. With open
// there may be more fields than are known.
func readTemplate(text string, fields *fields, open bool) (*template, error) {
	host, rest := cutHost(text)
	switch {
	case host == "":
		return nil, hostError(text)
	case strings.HasPrefix(rest, "@"):
		return nil, errUserName
	case rest != "" && !strings.ContainsAny(rest[:1], "/?#{"):
		return nil, fmt.Errorf("%q cannot be in a host", rest[:1])
	case strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, "{/") && !strings.HasPrefix(rest, "{?"):
		return nil, fmt.Errorf("%s stands in the host, and a field must not choose the receiver; write a / before it", expression.FindString(rest))
	}
	t := &template{host: host, rest: rest}
	for done := 0; ; {
		n := strings.IndexAny(rest[done:], "{}")
		if n < 0 {
			break
		}
		begin := done + n
		n = strings.IndexAny(rest[begin+1:], "{}")
		if done = begin + n + 2; rest[begin] == '}' || n < 0 || rest[done-1] == '{' {
			return nil, errors.New("a { or } in it has no partner; write %7B or %7D for one that is sent")
		}
		t.expressions = append(t.expressions, [2]int{begin, done})
	}
	for _, e := range t.expressions {
		if err := t.find(rest[e[0]:e[1]], fields, open); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// hostError says why a template has no host.
func hostError(template string) error {
	_, host, ok := strings.Cut(template, "://")
	if end := strings.IndexAny(host, "/?#"); end >= 0 {
		host = host[:end]
	}
	if !ok && strings.HasPrefix(template, "{") {
		host = template
	}
	if e := expression.FindString(host); e != "" {
		return fmt.Errorf("%s stands before the end of the host, and a field must not choose the receiver; write the host itself", e)
	}
	return fmt.Errorf("%q does not begin with http:// or https:// and a host", source.Brief([]byte(template)))
}

// find finds the fields of an expression. It refuses one whose fields are not there, or are no
// scalars.
func (t *template) find(e string, fields *fields, open bool) error {
	inner := e[1 : len(e)-1]
	switch {
	case strings.HasPrefix(inner, "+"), strings.HasPrefix(inner, "#"):
		return fmt.Errorf("%s would put a field into it as it is, and so anywhere; write {%s}", e, inner[1:])
	case inner != "" && strings.ContainsAny(inner[:1], "./;?&"):
		inner = inner[1:]
	}
	for spec := range strings.SplitSeq(inner, ",") {
		name, modifier := spec, ""
		if spec == "" || strings.Trim(spec, letters) != "" { // else it is a name alone, as mostly
			m := variable.FindStringSubmatch(spec)
			if m == nil {
				return fmt.Errorf("%s: %q is not the name of a field", e, spec)
			}
			name, modifier = m[1], m[2]
		}
		raw, ok := fields.get(name)
		if !ok && open {
			raw, ok = json.RawMessage(`"x"`), true
		}
		if !ok {
			return fmt.Errorf("%s: there is no field %q in the body, and no such param", e, name)
		}
		text, ok := source.Scalar(raw)
		if !ok {
			return fmt.Errorf("%s: the field %q is %s, and has to be a text, a number or a boolean", e, name, source.Brief(raw))
		}
		if strings.HasPrefix(modifier, ":") && strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
			return fmt.Errorf("%s: the field %q has other letters than those of ASCII, and no beginning of it can be taken", e, name)
		}
		if t.values == nil {
			t.values = stduritemplate.Substitutions{}
		}
		t.values[name] = text
	}
	return nil
}

// expand fills the template.
func (t *template) expand() (*url.URL, error) {
	text, done := t.host, 0
	for _, e := range t.expressions {
		value, plain := t.values[t.rest[e[0]+1:e[1]-1]].(string)
		if !plain || strings.Trim(value, unreserved) != "" {
			var err error
			if value, err = stduritemplate.Expand(t.rest[e[0]:e[1]], t.values); err != nil {
				return nil, err
			}
		}
		text, done = text+t.rest[done:e[0]]+value, e[1]
	}
	text += t.rest[done:]
	to, err := url.Parse(text)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	if _, host, _ := strings.Cut(t.host, "://"); to.Host != host || to.Hostname() == "" || to.User != nil {
		return nil, fmt.Errorf("%q has no host, or another one than is written there", text)
	}
	if port := to.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%q: the port %s is not 1 to 65535", text, port)
		}
	}
	for segment := range strings.SplitSeq(to.Path, "/") {
		if segment == "." || segment == ".." {
			return nil, fmt.Errorf("%q has a path that leads upwards", text)
		}
	}
	return to, nil
}
