package host

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
)

// schemes are those that a replica may have.
var schemes = []string{"disco", "dir", "http", "https", "raw"}

// CheckReplica refuses a URL that no worker can read here.
func CheckReplica(replica string) error {
	scheme, rest, ok := strings.Cut(replica, ":")
	switch scheme = strings.ToLower(scheme); {
	case ok && (scheme == "ddfs" || scheme == "tag"):
		return fmt.Errorf("replica %q: there is no DDFS here; give the URLs of the files, as disco://, dir://, http(s):// or raw://", replica)
	case !ok || !slices.Contains(schemes, scheme):
		return fmt.Errorf("replica %q: its scheme is unknown; a replica begins with disco://, dir://, http://, https:// or raw://", replica)
	case !strings.HasPrefix(rest, "//"):
		return fmt.Errorf("replica %q has no // after %s; write %s://", replica, scheme, scheme)
	case scheme == "raw":
		return nil
	}
	if u, err := url.Parse(replica); err != nil {
		return fmt.Errorf("replica %q is no URL: %w", replica, errors.Unwrap(err))
	} else if u.Host == "" {
		return fmt.Errorf("replica %q names no host; write %s://HOST/PATH", replica, scheme)
	}
	return nil
}

// CheckReplicas refuses the replicas of an input: none at all, or one that no worker can read here.
func CheckReplicas(replicas []string) error {
	if len(replicas) == 0 {
		return errors.New("an input without replicas: give at least one URL in urls")
	}
	for _, r := range replicas {
		if err := CheckReplica(r); err != nil {
			return err
		}
	}
	return nil
}

// ParseLabel reads the label of an input: an integer, or the text "all". Nothing is 0.
func ParseLabel(raw json.RawMessage) (int, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return 0, nil
	}
	if valid(raw) {
		c := cursor{b: raw}
		if text, ok := c.text(); ok && short(text) == "all" {
			return AllLabels, nil
		}
		if n, ok := c.integer(); ok && c.end() && 0 <= n && n <= MaxLabel {
			return int(n), nil
		}
	}
	return 0, fmt.Errorf("label %.60s: a label is an integer from 0 to %d, or \"all\"", raw, MaxLabel)
}

// A line is one line of Feed.
type line struct {
	Label json.RawMessage
	Input *int
	URLs  []string
	Busy  *bool
}

// longestLine is the most bytes of a line of Feed.
const longestLine = 16 << 20

// Feed reads inputs for the list, one JSON object a line, and completes the list at the end:
//
//	{"label": 0, "urls": ["http://…"]}    an input; the label may be "all"
//	{"input": 0, "urls": ["http://…"]}    another replica of input 0
//	{"input": 0, "busy": true}            another replica of input 0 is being made
//
// Feed ends with the first line that is wrong, and names it. The list is not complete then.
func Feed(from io.Reader, to *List) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longestLine)
	number := 0
	for lines.Scan() {
		number++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		if err := feedLine(text, to); err != nil {
			return fmt.Errorf("line %d of the inputs: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d of the inputs: %w", number+1, err)
	}
	to.Complete()
	return nil
}

// FeedLine reads one line of Feed.
func FeedLine(text string, to *List) error { return feedLine([]byte(text), to) }

func feedLine(text []byte, to *List) error {
	var l line
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
			err = fmt.Errorf("%.60s is no such object", text)
		}
		return fmt.Errorf("%w; write {\"label\": 0, \"urls\": [\"http://…\"]}", err)
	}
	if dec.More() {
		return errors.New("more than one JSON value; write each on a line of its own")
	}
	if l.Input == nil {
		if l.Busy != nil {
			return errors.New("busy without input: say which input, as in {\"input\": 0, \"busy\": true}")
		}
		label, err := ParseLabel(l.Label)
		if err == nil {
			err = CheckReplicas(l.URLs)
		}
		if err == nil {
			to.Add(Input{Label: label, Replicas: l.URLs})
		}
		return err
	}
	if l.Label != nil {
		return errors.New("both label and input: a new input has a label, and input names one that is there")
	}
	if len(l.URLs) == 0 && l.Busy == nil {
		return errors.New("neither urls nor busy: say what is new of the input")
	}
	if len(l.URLs) > 0 {
		if err := CheckReplicas(l.URLs); err != nil {
			return err
		}
		if err := to.AddReplicas(*l.Input, l.URLs); err != nil {
			return err
		}
	}
	if l.Busy != nil {
		return to.SetBusy(*l.Input, *l.Busy)
	}
	return nil
}
