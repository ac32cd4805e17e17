package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	stduritemplate "github.com/std-uritemplate/std-uritemplate/go/v2"

	"github.com/seed-1177d267/sluice/internal/source"
)

// A url is an RFC 6570 template. Its expressions stand behind the host, so that no field chooses
// the receiver, and each field is a scalar: a field of the body, or else a param.
var (
	authority  = regexp.MustCompile(`^(?i:https?)://[^/?#{}@\\\s]+`)
	expression = regexp.MustCompile(`\{([^{}]*)\}`)
	variable   = regexp.MustCompile(`^([A-Za-z0-9_%.]+)(\*|:[1-9][0-9]{0,3})?$`)
)

// checkTemplate refuses a template that no fields fill, or whose fields are missing. With open
// there may be more fields than are known.
func checkTemplate(template string, fields map[string]json.RawMessage, open bool) error {
	host := authority.FindString(template)
	rest := template[len(host):]
	switch {
	case host == "":
		return hostError(template)
	case strings.HasPrefix(rest, "@"):
		return errors.New("a user name in it would be stored and shown; give it by headers: {Authorization: {from_env: NAME}}")
	case rest != "" && !strings.ContainsAny(rest[:1], "/?#{"):
		return fmt.Errorf("%q cannot be in a host", rest[:1])
	case strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, "{/") && !strings.HasPrefix(rest, "{?"):
		return fmt.Errorf("%s stands in the host, and a field must not choose the receiver; write a / before it", expression.FindString(rest))
	}
	if left := expression.ReplaceAllString(rest, ""); strings.ContainsAny(left, "{}") {
		return errors.New("a { or } in it has no partner; write %7B or %7D for one that is sent")
	}
	for _, m := range expression.FindAllStringSubmatch(rest, -1) {
		if err := checkExpression(m[0], m[1], fields, open); err != nil {
			return err
		}
	}
	return nil
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

// checkExpression refuses an expression whose fields are not there, or are no scalars.
func checkExpression(e, inner string, fields map[string]json.RawMessage, open bool) error {
	switch {
	case strings.HasPrefix(inner, "+"), strings.HasPrefix(inner, "#"):
		return fmt.Errorf("%s would put a field into it as it is, and so anywhere; write {%s}", e, inner[1:])
	case inner != "" && strings.ContainsAny(inner[:1], "./;?&"):
		inner = inner[1:]
	}
	for _, spec := range strings.Split(inner, ",") {
		m := variable.FindStringSubmatch(spec)
		if m == nil {
			return fmt.Errorf("%s: %q is not the name of a field", e, spec)
		}
		raw, ok := fields[m[1]]
		if !ok && open {
			continue
		}
		if !ok {
			return fmt.Errorf("%s: there is no field %q in the body, and no such param", e, m[1])
		}
		text, ok := source.Scalar(raw)
		if !ok {
			return fmt.Errorf("%s: the field %q is %s, and has to be a text, a number or a boolean", e, m[1], source.Brief(raw))
		}
		if strings.HasPrefix(m[2], ":") && strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
			return fmt.Errorf("%s: the field %q has other letters than those of ASCII, and no beginning of it can be taken", e, m[1])
		}
	}
	return nil
}

// expand fills a template that was checked.
func expand(template string, fields map[string]json.RawMessage) (*url.URL, error) {
	values := stduritemplate.Substitutions{}
	for name, raw := range fields {
		if text, ok := source.Scalar(raw); ok {
			values[name] = text
		}
	}
	text, err := stduritemplate.Expand(template, values)
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(text)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	host := authority.FindString(template)
	if _, host, _ = strings.Cut(host, "://"); to.Host != host || to.Hostname() == "" || to.User != nil {
		return nil, fmt.Errorf("%q has no host, or another one than is written there", text)
	}
	for segment := range strings.SplitSeq(to.Path, "/") {
		if segment == "." || segment == ".." {
			return nil, fmt.Errorf("%q has a path that leads upwards", text)
		}
	}
	return to, nil
}
