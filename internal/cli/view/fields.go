package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/plan"
)

// Fields are keys with what they say, each on a line or more.
type Fields struct {
	strings.Builder
	indent string // of the keys
}

// Add writes a field, unless it says nothing. Each line of it is clean: it may come from who wrote the plan, or from a command.
func (b *Fields) Add(key, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = cells.Clean(l)
	}
	b.Styled(key, strings.Join(lines, "\n"+strings.Repeat(" ", keyWidth)))
}

// Styled writes a field whose text is fit to be shown.
func (b *Fields) Styled(key, text string) {
	if text != "" {
		b.WriteString(cells.Pad(b.indent+cells.Clean(key), keyWidth-1) + " " + text + "\n")
	}
}

// Time writes a time by the clock on the wall, and how long ago it was, or in how long it will be.
func (b *Fields) Time(key string, t, now time.Time) {
	switch {
	case t.IsZero():
	case t.After(now):
		b.Add(key, fmt.Sprintf("%s (in %s)", t.Local().Format(time.DateTime), duration.Text(t.Sub(now))))
	default:
		b.Add(key, fmt.Sprintf("%s (%s)", t.Local().Format(time.DateTime), Ago(t, now)))
	}
}

// Value writes a JSON value: a text as it is, what fits on a line on one, and what does not indented.
func (b *Fields) Value(key string, value json.RawMessage) {
	var s string
	if len(value) == 0 || string(value) == "null" {
		return
	}
	if json.Unmarshal(value, &s) == nil {
		b.Add(key, cmp.Or(s, `""`))
		return
	}
	const oneLine = 80 // bytes
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return
	}
	if out.Len() > oneLine {
		out.Reset()
		_ = json.Indent(&out, value, "", "  ") // it compacted
	}
	b.Add(key, readable(out.String()))
}

// Members writes the members of a JSON object, each as a field of its own, in their order.
func (b *Fields) Members(key string, object json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil || !dec.More() {
		return
	}
	b.WriteString(key + "\n")
	b.indent = "  "
	defer func() { b.indent = "" }()
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return
		}
		if string(value) == "null" {
			b.Add(fmt.Sprint(name), "null")
		}
		b.Value(fmt.Sprint(name), value)
	}
}

// Foreach writes over what a task is repeated.
func (b *Fields) Foreach(f *plan.Foreach) {
	switch {
	case f == nil:
	case f.Value != "" && f.Group != "":
		b.Add("foreach", f.Group+" of ${{ "+f.Value+" }}")
	case f.Value != "":
		b.Add("foreach", "${{ "+f.Value+" }}")
	case f.Lines != "":
		b.Add("foreach", "lines: "+f.Lines)
	case f.Glob != "":
		b.Add("foreach", "glob: "+f.Glob)
	default:
		b.Value("foreach", f.List)
	}
}

const keyWidth = 19 // of the longest key and two spaces

// escaped is how encoders write what HTML would take for its own; the first alternative keeps an escaped backslash from beginning one.
var escaped = regexp.MustCompile(`\\\\|\\u00(?:3c|3e|26)`)

// readable returns JSON with < > & as themselves: commands are full of them.
func readable(s string) string {
	return escaped.ReplaceAllStringFunc(s, func(e string) string {
		switch e {
		case `\u003c`:
			return "<"
		case `\u003e`:
			return ">"
		case `\u0026`:
			return "&"
		}
		return e
	})
}
