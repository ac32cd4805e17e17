package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/source"
)

// The time that one request may take.
const (
	defaultTimeout = time.Minute
	mostTimeout    = 24 * time.Hour
)

// methods says of each method whether it sends the body.
var methods = map[string]bool{http.MethodGet: false, http.MethodDelete: false, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true}

// own are the params that the plugin reads itself, in this order. All others may fill the url.
var own = []string{"body", "headers", "method", "query", "sign", "timeout", "url"}

// settings are what a task's params say.
type settings struct {
	method  string
	url     *url.URL        // filled; of a draft, with samples
	body    json.RawMessage // nil: none
	headers map[string]source.Value
	query   map[string]source.Value
	keys    []source.Value // of sign
	timeout time.Duration
}

// readSettings reads params, the url last, and says which of them is wrong. A draft may still have
// expressions, and then gets further params, given. It passes where an expression hides what there
// will be.
func readSettings(params json.RawMessage, given map[string]json.RawMessage, draft bool) (s *settings, key string, err error) {
	all, err := jsontext.Object(params)
	if err != nil {
		return nil, "", fmt.Errorf("params of %s: %w", Name, err)
	}
	s = &settings{method: http.MethodGet, body: all.Get("body"), timeout: defaultTimeout}
	if s.body != nil {
		s.method = http.MethodPost
	}
	from := &fields{body: s.body, params: all, given: given}
	for _, name := range own {
		raw := all.Get(name)
		if raw == nil && name != "url" || draft && hidden(raw) {
			continue
		}
		switch name {
		case "headers":
			s.headers, err = readHeaders(raw)
		case "query":
			s.query, err = readValues(raw, nil)
		case "method":
			err = readMethod(s, raw)
		case "sign":
			err = readKeys(s, raw)
		case "timeout":
			s.timeout, err = readTimeout(raw)
		case "url":
			err = readURL(s, raw, from, draft)
		}
		if err != nil {
			return s, name, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, "", nil
}

// hidden reports whether an expression stands for a value of a draft.
func hidden(raw json.RawMessage) bool {
	return len(raw) > 0 && raw[0] == '"' && bytes.Contains(raw, []byte("${{"))
}

// fields are what may fill the url: the fields of the body, then the params of the task but for
// those that the plugin reads itself, and then further params.
type fields struct {
	body   json.RawMessage
	inBody jsontext.Members // nil: not read yet
	params jsontext.Members
	given  map[string]json.RawMessage
}

func (f *fields) get(name string) (raw json.RawMessage, ok bool) {
	if raw = f.ofTask(name); raw != nil || slices.Contains(own, name) {
		return raw, raw != nil
	}
	if raw, ok = f.given[name]; ok && len(raw) == 0 { // a draft may lack the value
		raw = json.RawMessage(`""`)
	}
	return raw, ok
}

// ofTask returns what the task itself has as a field, or nil.
func (f *fields) ofTask(name string) json.RawMessage {
	if f.inBody == nil && len(f.body) > 0 && f.body[0] == '{' {
		f.inBody = jsontext.ObjectOf(f.body) // which is a part of the params
	}
	raw := f.inBody.Get(name)
	if raw == nil && !slices.Contains(own, name) {
		raw = f.params.Get(name)
	}
	return raw
}

// fixed reports whether the task itself has the value of a field, without an expression.
func (f *fields) fixed(name string) bool {
	raw := f.ofTask(name)
	return raw != nil && !hidden(raw)
}

func readMethod(s *settings, raw json.RawMessage) error {
	s.method, _ = jsontext.TextOf(raw)
	if _, known := methods[s.method]; !known {
		return fmt.Errorf("%s is not GET, POST, PUT, PATCH or DELETE", source.Brief(raw))
	}
	return nil
}

func readURL(s *settings, raw json.RawMessage, from *fields, draft bool) error {
	if raw == nil {
		return errors.New("there is none; write the address, as in https://example.com/songs/{id}")
	}
	text, ok := jsontext.TextOf(raw)
	if !ok {
		return fmt.Errorf("%s is not a text", source.Brief(raw))
	}
	t, err := readTemplate(text, from, draft && hidden(s.body))
	if errors.Is(err, errUserName) {
		return fmt.Errorf("%w, and give it by headers: {Authorization: {from_env: NAME}}", err)
	}
	if err != nil {
		return err
	}
	if draft { // what the author wrote between fields that may still change has to be good
		for name := range t.values {
			if !from.fixed(name) {
				t.values[name] = "x"
			}
		}
	}
	s.url, err = t.expand()
	return err
}

// readTimeout reads a text as in "1m30s", or a number of seconds.
func readTimeout(raw json.RawMessage) (d time.Duration, err error) {
	var seconds float64
	if text, ok := jsontext.TextOf(raw); ok {
		d, err = time.ParseDuration(text)
	} else if err = json.Unmarshal(raw, &seconds); err == nil {
		d = time.Duration(min(seconds, 2*mostTimeout.Seconds()) * float64(time.Second))
	}
	if err != nil || d <= 0 || d > mostTimeout {
		return 0, fmt.Errorf(`%s is not a time as in "30s", or a number of seconds, above 0 and of at most a day`, source.Brief(raw))
	}
	return d, nil
}

func readKeys(s *settings, raw json.RawMessage) error {
	all := []json.RawMessage{raw}
	if raw[0] == '[' {
		all = nil
		if err := json.Unmarshal(raw, &all); err != nil {
			return err
		}
		if len(all) == 0 {
			return errors.New("the list is empty, and nothing would be signed; give a secret, or leave sign out")
		}
	}
	for _, raw := range all {
		v, ok := source.Parse(raw)
		if !ok {
			return errors.New("a secret is a text, {from_env: NAME} or {from_file: PATH}")
		}
		if !v.Secret() && !strings.Contains(v.Text, "${{") {
			if _, err := decodeKey(v.Text); err != nil {
				return err
			}
		}
		s.keys = append(s.keys, v)
	}
	return nil
}

// readHeaders reads headers. It refuses two whose names differ only by case: one would be lost.
func readHeaders(raw json.RawMessage) (map[string]source.Value, error) {
	all, err := readValues(raw, checkHeader)
	seen := make(map[string]string, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lower := strings.ToLower(name)
		if first, twice := seen[lower]; twice {
			return nil, fmt.Errorf("%s and %s are the same header; leave one out", first, name)
		}
		seen[lower] = name
	}
	return all, err
}

// readValues reads a mapping of names to values.
func readValues(raw json.RawMessage, check func(name, text string) error) (map[string]source.Value, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%s is not a mapping of names to values", source.Brief(raw))
	}
	out := make(map[string]source.Value, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v, ok := source.Parse(all[name])
		if !ok {
			return nil, fmt.Errorf("%s: %s is not a text, a number, a boolean, {from_env: NAME} or {from_file: PATH}", name, source.Brief(all[name]))
		}
		if check != nil {
			if err := check(name, v.Text); err != nil {
				return nil, err
			}
		}
		out[name] = v
	}
	return out, nil
}

var token = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$") // RFC 9110, section 5.6.2

// taken are the headers that the plugin or the connection sets.
var taken = regexp.MustCompile(`(?i)^(host|content-length|transfer-encoding|connection|te|trailer|upgrade|expect|idempotency-key|sluice-.*|webhook-(id|timestamp|signature))$`)

// checkHeader refuses a header that cannot be sent, or that is not the author's.
func checkHeader(name, text string) error {
	switch {
	case !token.MatchString(name):
		return fmt.Errorf("%q cannot be the name of a header", name)
	case taken.MatchString(name):
		return fmt.Errorf("%s is set by the plugin; leave it out", name)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return fmt.Errorf("%s: its value has a line break or another control character", name)
	}
	return nil
}

// all returns each value that may be a secret, under the name that errors give it.
func (s *settings) all() iter.Seq2[string, source.Value] {
	return func(yield func(string, source.Value) bool) {
		for _, of := range [...]struct {
			kind   string
			values map[string]source.Value
		}{{"headers.", s.headers}, {"query.", s.query}} {
			if len(of.values) == 0 {
				continue // mostly; to sort nothing takes memory too
			}
			for _, name := range slices.Sorted(maps.Keys(of.values)) {
				if !yield(of.kind+name, of.values[name]) {
					return
				}
			}
		}
		for _, v := range s.keys {
			if !yield("sign", v) {
				return
			}
		}
	}
}

// shortestMask is how many bytes a text has at least that is masked: less is in too much else. It
// is the rule of secret.Holds.
const shortestMask = 4

// values are what the settings say, with the secrets in them.
type values struct {
	header  http.Header
	query   url.Values
	keys    [][]byte
	secrets []string
	masks   []string // the texts by which the secrets can be seen, the longest first
}

// read reads the secrets where they are on this node. known are the values of secret params.
func (s *settings) read(ctx context.Context, known []string) (*values, error) {
	v := &values{header: http.Header{}, secrets: slices.Clone(known)}
	if len(s.query) > 0 {
		v.query = url.Values{}
	}
	for name, from := range s.all() {
		text, err := from.Read(ctx)
		if err == nil && from.Secret() {
			v.secrets = append(v.secrets, text)
		}
		if err == nil {
			err = v.put(name, text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, text := range v.secrets {
		v.masks = append(append(v.masks, text), secret.Spellings(text)...)
	}
	v.masks = secret.LongestFirst(slices.DeleteFunc(v.masks, func(m string) bool { return len(m) < shortestMask }))
	return v, nil
}

// put puts a value in its place.
func (v *values) put(name, text string) error {
	kind, name, _ := strings.Cut(name, ".")
	switch kind {
	case "headers":
		if err := checkHeader(name, text); err != nil {
			return err
		}
		v.header.Set(name, text)
	case "query":
		v.query.Set(name, text)
	default:
		key, err := decodeKey(text)
		if err != nil {
			return err
		}
		v.keys = append(v.keys, key)
	}
	return nil
}

// sent returns the bytes of the body that is sent.
func (s *settings) sent() []byte {
	if methods[s.method] {
		return s.body
	}
	return nil
}

// request returns the request.
func (s *settings) request(ctx context.Context, v *values) (*http.Request, error) {
	to := s.url
	if more := v.query.Encode(); more != "" {
		to.RawQuery = strings.TrimPrefix(to.RawQuery+"&"+more, "&")
	}
	req, err := http.NewRequestWithContext(ctx, s.method, "", bytes.NewReader(s.sent()))
	if err != nil {
		return nil, err
	}
	req.URL, req.Host = to, strings.TrimSuffix(to.Host, ":") // as if the address were parsed again
	if req.Header = v.header; s.sent() != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "Sluice")
	}
	return req, nil
}
