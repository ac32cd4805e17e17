package disbatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// The limits of a request.
const (
	maxBody    = 64 << 20 // bytes of a body that has tasks, or is an extension's: Disbatch's clients send 100,000 tasks at once
	smallBody  = 1 << 20  // bytes of any other body
	mostFields = 100      // fields that a search asks for
	mostValues = 10_000   // values of all of them, and pairs of a query or a form
)

// params are the parameters of a request: JSON values by name. Values from a form or a query string
// are texts. A name that occurs several times has a list of texts.
type params map[string]json.RawMessage

// A badRequest is the client's mistake; its text says what to do.
type badRequest struct {
	text string
	code int
}

func (b *badRequest) Error() string { return b.text }

func refusef(format string, args ...any) error {
	return &badRequest{fmt.Sprintf(format, args...), http.StatusBadRequest}
}

// parse reads what a request gives, from where Disbatch does: a body that is a form or JSON by its Content-Type, else the query string.
// Names that begin with a dot are options. A JSON array is the value of "params". The body has at most so many bytes.
func parse(r *http.Request, most int64) (given, options params, err error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/x-www-form-urlencoded", "application/json":
		body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			return nil, nil, &badRequest{fmt.Sprintf("the request has more than %d bytes; send it in parts", most), http.StatusRequestEntityTooLarge}
		}
		if err != nil {
			return nil, nil, refusef("the request's body did not come: %v", err)
		}
		if kind == "application/json" {
			given, err = parseJSON(textfile.WithoutMark(body))
		} else {
			given, err = parseForm(string(body))
		}
		if err != nil {
			return nil, nil, err
		}
	default:
		if given, err = parseForm(r.URL.RawQuery); err != nil {
			return nil, nil, err
		}
	}
	options = params{}
	for name, v := range given {
		if strings.HasPrefix(name, ".") {
			options[name] = v
			delete(given, name)
		}
	}
	return given, options, nil
}

func parseJSON(body []byte) (params, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || string(body) == "null" {
		return params{}, nil
	}
	valid := json.Valid(body)
	if valid {
		if name := jsontext.Twice(body); name != "" {
			return nil, refusef("the request's body has %q twice in one object; give it once", name)
		}
	}
	if body[0] == '[' && valid {
		return params{"params": body}, nil
	}
	given := params{}
	if err := json.Unmarshal(body, &given); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return nil, refusef("the request's JSON is no object")
		}
		return nil, refusef("the request's body is not JSON: %v", err)
	}
	return given, nil
}

// parseForm reads names and values of a form as Disbatch does: & and ; separate pairs, and an
// invalid escape stays as it is. A text that is not UTF-8 or has a NUL is refused, because stores
// and tasks would get something else.
func parseForm(text string) (params, error) {
	values, pairs := map[string][]string{}, 0
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '&' || r == ';' }) {
		if pairs++; pairs > mostValues {
			return nil, refusef("the request has more than %d parameters; ask in parts", mostValues)
		}
		name, value, _ := strings.Cut(pair, "=")
		name, value = unescape(name), unescape(value)
		if both := name + value; !utf8.ValidString(both) || strings.Contains(both, "\x00") {
			return nil, refusef("the parameter %q is not UTF-8, or has a NUL; send the bytes of its text in UTF-8, each as %%XX", strings.ToValidUTF8(name, "\uFFFD"))
		}
		values[name] = append(values[name], value)
	}
	given := params{}
	for name, v := range values {
		if len(v) == 1 {
			given[name] = encode(v[0], false)
		} else {
			given[name] = encode(v, false)
		}
	}
	return given, nil
}

// unescape returns the decoded text of a part of a form. The text may not be UTF-8.
func unescape(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			out = append(out, ' ')
		case c == '%' && i+2 < len(s):
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// names are those of what is given, in order.
func (p params) names() []string { return slices.Sorted(maps.Keys(p)) }

// unknown returns the first name that is none of those.
func (p params) unknown(known ...string) (name string, is bool) {
	for _, name := range p.names() {
		if !slices.Contains(known, name) {
			return name, true
		}
	}
	return "", false
}

// is reports whether a value is there, and not null.
func (p params) is(name string) bool {
	v, there := p[name]
	return there && !isNull(v)
}

func isNull(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }

// first returns the first byte of a value, which says what kind it is.
func first(v json.RawMessage) byte {
	if v = bytes.TrimLeft(v, " \t\r\n"); len(v) > 0 {
		return v[0]
	}
	return 0
}

// text returns a value as Perl has it as text: that of a text, or the digits of a number. Other kinds are none.
func (p params) text(name string) (s string, ok bool) {
	v := p[name]
	switch c := first(v); {
	case c == '"':
		err := json.Unmarshal(v, &s)
		return s, err == nil
	case c == '-' || c >= '0' && c <= '9':
		return string(bytes.TrimSpace(v)), true
	}
	return "", false
}

// truth is what Perl takes a value for: all is true but nothing, null, false, 0, "0" and "".
func (p params) truth(name string) bool {
	v, there := p[name]
	if !there || isNull(v) {
		return false
	}
	if s, ok := p.text(name); ok {
		if first(v) != '"' {
			f, err := strconv.ParseFloat(s, 64)
			return err != nil || f != 0
		}
		return s != "" && s != "0"
	}
	return string(bytes.TrimSpace(v)) != "false"
}

var digits = regexp.MustCompile(`^[0-9]+$`)

// count returns a number that is not negative, or a text that is one; at most plan.MaxThreads.
func (p params) count(name string) (n int, ok bool) {
	s, ok := p.text(name)
	if ok && first(p[name]) != '"' {
		if f, err := strconv.ParseFloat(s, 64); err == nil && f == math.Trunc(f) && f >= 0 && f <= plan.MaxThreads {
			return int(f), true
		}
	}
	if !ok || !digits.MatchString(s) {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= plan.MaxThreads
}

// number returns a whole number that is an option, 0 for what Perl takes for nothing.
func (p params) number(name string) (int, error) {
	if !p.truth(name) {
		return 0, nil
	}
	s, _ := p.text(name)
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || f != math.Trunc(f) || f < 0 || f > math.MaxInt32 {
		return 0, refusef("%s has to be a whole number that is not negative", name)
	}
	return int(f), nil
}

// items returns the elements of a list; of another value, that.
func items(v json.RawMessage) ([]json.RawMessage, error) {
	if first(v) != '[' {
		return []json.RawMessage{v}, nil
	}
	var list []json.RawMessage
	err := json.Unmarshal(v, &list)
	return list, err
}

// asID reads an id: 24 lower-case hex digits, or an object {"$oid"} of them.
func asID(v json.RawMessage) (id plan.ID, ok bool) {
	var s string
	if first(v) == '{' {
		var o map[string]json.RawMessage
		if json.Unmarshal(v, &o) != nil || len(o) != 1 {
			return id, false
		}
		v = o["$oid"]
	}
	if len(v) == 0 || json.Unmarshal(v, &s) != nil {
		return id, false
	}
	return parseID(s)
}

func parseID(s string) (id plan.ID, ok bool) {
	if !oidText.MatchString(s) {
		return id, false
	}
	id, err := plan.ParseID(s)
	return id, err == nil
}

var oidText = regexp.MustCompile(`\A[0-9a-f]{24}\z`)

// numeric is what Perl takes for a number, but for infinities and what is none.
var numeric = regexp.MustCompile(`\A\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*\z`)

// asNumber makes a number of a text that looks like one.
func asNumber(s string) (json.Number, bool) {
	if !numeric.MatchString(s) {
		return "", false
	}
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return json.Number(strconv.FormatInt(n, 10)), true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "", false
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), true
}

// oidFields are the fields whose values are always ids.
var oidFields = []string{"_id", "queue"}

// tooMany refuses a search for so many fields and values: stores look at each for every task, and no index serves them all.
func tooMany(fields, values int) error {
	switch {
	case fields > mostFields:
		return refusef("the search names %d fields; it may name %d", fields, mostFields)
	case values > mostValues:
		return refusef("the search has more than %d values; ask for some of them at a time", mostValues)
	}
	return nil
}

// query makes conditions of parameters. Several values mean any of them. Texts that look like
// numbers are numbers. An empty text and null are no condition. Operators of a database are
// refused, except for those in allowed.
func (p params) query() (where []store.Condition, err error) {
	if err := tooMany(len(p), 0); err != nil {
		return nil, err
	}
	all := 0
	for _, name := range p.names() {
		v := p[name]
		if s, ok := p.text(name); isNull(v) || ok && s == "" {
			continue
		}
		field := name
		if name == "id" {
			field = "_id"
		}
		some, is, err := operators(field, v)
		if err != nil {
			return nil, err
		}
		if is {
			where = append(where, some...)
			continue
		}
		values, err := items(v)
		if err != nil || len(values) == 0 {
			return nil, refusef("%s has no values", name)
		}
		if all += len(values); all > mostValues {
			return nil, tooMany(0, all)
		}
		c := store.Condition{Field: field}
		first, _ := params{"": values[0]}.text("")
		_, numbers := asNumber(first)
		for _, v := range values {
			value, err := comparable(c.Field, v, false)
			if err != nil {
				return nil, err
			}
			if s, ok := value.(string); ok && numbers && !slices.Contains(oidFields, c.Field) {
				if n, ok := asNumber(s); ok {
					value = n
				}
			}
			c.Any = append(c.Any, value)
		}
		where = append(where, c)
	}
	return where, nil
}

// filter makes conditions of a filter, a JSON object: each field is to have that value. Objects are compared as such, {"$oid"} is an id, and
// what would be an operator of a database is refused, but for those in allowed.
func filter(v json.RawMessage) (where []store.Condition, err error) {
	fields := params{}
	if first(v) != '{' || json.Unmarshal(v, &fields) != nil {
		return nil, refusef("the filter must be a JSON object")
	}
	return filterOf(fields)
}

func filterOf(fields params) (where []store.Condition, err error) {
	if err := tooMany(len(fields), 0); err != nil {
		return nil, err
	}
	for _, name := range fields.names() {
		if strings.HasPrefix(name, "$") || strings.Contains(name, ".$") || name == "" {
			return nil, refusef("%q cannot be a field of a filter; operators are not allowed", name)
		}
		some, is, err := operators(name, fields[name])
		if err != nil {
			return nil, err
		}
		if is {
			where = append(where, some...)
			continue
		}
		value, err := comparable(name, fields[name], true)
		if err != nil {
			return nil, err
		}
		where = append(where, store.Condition{Field: name, Any: []any{value}})
	}
	return where, nil
}

// allowed are the operators of a database that a search may have.
var allowed = map[string]store.Op{
	"$eq": store.AnyOf, "$in": store.AnyOf, "$ne": store.NoneOf, "$nin": store.NoneOf, "$gt": store.Above, "$gte": store.AtLeast, "$lt": store.Below,
	"$lte": store.AtMost, "$exists": store.Exists,
}

// operators makes conditions of an object whose keys are operators; is says that the value is one. Any operator that is not allowed is
// refused.
func operators(field string, v json.RawMessage) (where []store.Condition, is bool, err error) {
	given := params{}
	if first(v) != '{' || json.Unmarshal(v, &given) != nil {
		return nil, false, nil
	}
	if _, id := asID(v); id || !slices.ContainsFunc(given.names(), func(n string) bool { return strings.HasPrefix(n, "$") }) {
		return nil, false, nil
	}
	for _, name := range given.names() {
		op, known := allowed[name]
		if !known {
			return nil, true, refusef("%s: %q is no operator of a search here; there are %s", field, name, strings.Join(slices.Sorted(maps.Keys(allowed)), " "))
		}
		c := store.Condition{Field: field, Op: op}
		values := []json.RawMessage{given[name]}
		if name == "$in" || name == "$nin" {
			if first(given[name]) != '[' || json.Unmarshal(given[name], &values) != nil || len(values) == 0 {
				return nil, true, refusef("%s: %s has to have a list of values", field, name)
			}
		}
		if err := tooMany(0, len(values)); err != nil {
			return nil, true, err
		}
		for _, v := range values {
			var value any
			if op == store.Exists {
				value = given.truth(name)
			} else if value, err = comparable(field, v, true); err != nil {
				return nil, true, err
			}
			c.Any = append(c.Any, value)
		}
		switch c.Any[0].(type) {
		case string, json.Number, time.Time, plan.ID:
		default:
			if op != store.AnyOf && op != store.NoneOf && op != store.Exists {
				return nil, true, refusef("%s: %s has to have a number, a text or an id", field, name)
			}
		}
		where = append(where, c)
	}
	return where, true, nil
}

// sortable are the fields of tasks that a search may be sorted by: none of them holds a secret.
var sortable = []string{"_id", "ctime", "mtime", "node", "queue", "status"}

// sortKeys reads the option that sorts: an object of fields with 1 or -1, in their order.
func (p params) sortKeys(name string) (keys []store.SortKey, err error) {
	if !p.truth(name) {
		return nil, nil
	}
	wrong := refusef(`%s has to be an object of fields with 1 or -1, as in {"_id":-1}; the fields are %s`, name, strings.Join(sortable, ", "))
	dec := json.NewDecoder(bytes.NewReader(p[name]))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, wrong
	}
	for dec.More() {
		field, err := dec.Token()
		if err != nil {
			return nil, wrong
		}
		var direction float64
		if dec.Decode(&direction) != nil || direction != 1 && direction != -1 || !slices.Contains(sortable, field.(string)) || len(keys) == len(sortable) {
			return nil, wrong
		}
		keys = append(keys, store.SortKey{Field: field.(string), Down: direction < 0})
	}
	return keys, nil
}

// comparable makes of a JSON value what a condition compares with.
func comparable(field string, v json.RawMessage, objects bool) (any, error) {
	id, isID := asID(v)
	switch c := first(v); {
	case isID && (c == '{' || slices.Contains(oidFields, field)):
		return id, nil
	case field == "queue" && c != 'n', field == "_id" && !objects:
		return nil, refusef("%s has to be an id of 24 lower-case hex digits", strings.TrimPrefix(field, "_"))
	case c == '[':
		return nil, refusef("%s: a list cannot be compared with", field)
	case c == '{':
		inner, err := jsontext.Decode(v)
		if err != nil || !objects || hasOperator(inner) {
			return nil, refusef("%s: an object cannot be compared with; operators are not allowed", field)
		}
		return v, nil
	}
	value, err := jsontext.Decode(v)
	if err != nil {
		return nil, refusef("%s: %v", field, err)
	}
	if n, ok := value.(json.Number); ok {
		f, err := n.Float64()
		if err != nil {
			return nil, refusef("%s: %s is too large a number", field, n)
		}
		if field == "ctime" || field == "mtime" { // with that many digits they are milliseconds
			if f > 9_999_999_999 && f < 1e15 {
				return time.UnixMilli(int64(f)).UTC(), nil
			}
		}
	}
	return value, nil
}

// hasOperator reports whether there is a key in a value that a database may take for an operator.
func hasOperator(v any) bool {
	switch v := v.(type) {
	case object:
		for name, inner := range v {
			if strings.HasPrefix(name, "$") || hasOperator(inner) {
				return true
			}
		}
	case list:
		return slices.ContainsFunc(v, hasOperator)
	}
	return false
}

// fields reads the option .fields: an object of names with 1 or 0, a list of names, or either as JSON in a text.
func (p params) fields(name string) (map[string]bool, error) {
	wrong := refusef(`%s has to be a list of names, as in ["status","params"], or an object, as in {"stdout":0}`, name)
	if !p.truth(name) {
		return nil, nil
	}
	v := p[name]
	if s, ok := p.text(name); ok {
		if v = json.RawMessage(s); !json.Valid(v) {
			return nil, wrong
		}
	}
	out := map[string]bool{}
	switch first(v) {
	case '[':
		var names []string
		if json.Unmarshal(v, &names) != nil {
			return nil, wrong
		}
		for _, n := range names {
			out[n] = true
		}
	case '{':
		given := params{}
		if json.Unmarshal(v, &given) != nil {
			return nil, wrong
		}
		for n, v := range given {
			if c := first(v); c == '{' || c == '[' {
				return nil, wrong
			}
			out[n] = given.truth(n)
		}
	default:
		return nil, wrong
	}
	in, left := 0, 0
	for n, is := range out {
		if !fieldName(n) {
			return nil, refusef("%s: %q cannot be a field's name", name, n)
		}
		if n != "_id" && is {
			in++
		} else if n != "_id" {
			left++
		}
	}
	if in > 0 && left > 0 {
		return nil, refusef("%s names what is to be had and what is to be left out; it can be either", name)
	}
	return overlap(out), nil
}

// overlap leaves out what is below a field that is named itself, which a database may refuse.
func overlap(fields map[string]bool) map[string]bool {
	for n := range fields {
		for i, c := range n {
			if _, there := fields[n[:i]]; c == '.' && there {
				delete(fields, n)
				break
			}
		}
	}
	return fields
}

func fieldName(n string) bool {
	for part := range strings.SplitSeq(n, ".") {
		if part == "" || part[0] == '$' || strings.ContainsRune(part, 0) {
			return false
		}
	}
	return len(n) <= 1000
}
