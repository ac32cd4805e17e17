package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/textfile"
)

// relax makes strict JSON of text that Perl's JSON->relaxed accepts. It replaces comments from # to
// the end of the line, a comma after the last item of a list or an object, and tabs in texts by
// blanks. Every byte keeps its place. It also returns the places of the comments.
func relax(text []byte) (strict []byte, comments []span) {
	strict = bytes.Clone(text)
	at := 0
	if bytes.HasPrefix(strict, []byte(textfile.Mark)) {
		at = copy(strict, "   ")
	}
	var before byte // the last one that is neither blank nor in a comment
	comma := -1     // where it is, if it is a comma after a value
	for at < len(strict) {
		c := strict[at]
		switch c {
		case ' ', '\t', '\r', '\n':
			at++
			continue
		case '#':
			from := at
			for ; at < len(strict) && strict[at] != '\n' && strict[at] != '\r'; at++ {
				strict[at] = ' '
			}
			comments = append(comments, span{from, at})
			continue
		case '"':
			end := textEnd(strict, at)
			for i := at; i < end; i++ {
				if strict[i] == '\t' {
					strict[i] = ' '
				}
			}
			at = end - 1
		case ',':
			if comma = at; before == 0 || strings.IndexByte("[{,:", before) >= 0 {
				comma = -1
			}
		case ']', '}':
			if before == ',' && comma >= 0 {
				strict[comma] = ' '
			}
		}
		before = c
		at++
	}
	return strict, comments
}

// textEnd returns the byte after the text in quotes that begins at a byte; where its line ends, if the text does not.
func textEnd(strict []byte, at int) int {
	for at++; at < len(strict); at++ {
		switch strict[at] {
		case '\n', '\r':
			return at
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(strict)
}

// A kind is what a value of JSON is.
type kind string

const (
	null    kind = "null"
	boolean kind = "true or false"
	number  kind = "a number"
	text    kind = "a text"
	list    kind = "a list"
	object  kind = "an object"
)

// A node is a value and where it stands.
type node struct {
	kind
	span
	word    string   // the decoded text; "" for a list or an object; else the word as it is written
	items   []node   // of a list
	members []member // of an object, in the order of the file
}

type member struct {
	name  string
	at    int
	value node
}

// A span is from its first byte to before its last.
type span struct{ from, to int }

// parse reads a relaxed JSON text. A mistake has its byte.
func parse(relaxed, strict []byte) (root node, wrong string, at int) {
	if err := json.Unmarshal(strict, &json.RawMessage{}); err != nil {
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) {
			return node{}, err.Error(), 0
		}
		if at = int(syntax.Offset); at > 0 && !strings.HasPrefix(err.Error(), "unexpected end") {
			at--
		}
		return node{}, remedy(strict, at, err.Error()), at
	}
	w := walker{relaxed, strict, json.NewDecoder(bytes.NewReader(strict))}
	w.UseNumber()
	return w.value(), "", 0
}

// remedy says in the words of a person who edits the file what encoding/json found.
func remedy(strict []byte, at int, found string) string {
	has := func(part string) bool { return strings.Contains(found, part) }
	var c byte
	if at < len(strict) {
		c = strict[at]
	}
	switch {
	case has("unexpected end"):
		return "the file ends before all is closed; add the }, ] or quote that is missing"
	case has("in string literal") && (c == '\n' || c == '\r'):
		return "the text has no end on its line; close it with a double quote, or write the line's end in it as \\n"
	case has("in string literal"):
		return "a control character in a text; write it as an escape, such as \\u001b"
	case has("in string escape code"), has(`in \u`):
		return `there is no such escape; a backslash is written as \\`
	case c == '\'':
		return "texts and keys stand in double quotes"
	case c == '/':
		return "this is no value; a comment begins with #"
	case c == ',' && (has("beginning of object key string") || has("beginning of value")):
		return "a comma too many; take it out"
	case has("beginning of object key string"):
		return "a key in double quotes is to stand here"
	case has("after object key:value pair"), has("after array element"):
		return "a comma, or the end of the list or object, is missing before this"
	case has("after object key"):
		return "a colon is missing between a key and its value"
	case has("after top-level value"):
		return "the file goes on after its end; it is one object, so take this out, or close the object behind it"
	case (has("looking for beginning of value") || has("in literal")) && slices.Contains([]string{"true", "false", "null"}, strings.ToLower(wordAt(strict, at))):
		return "this is no value; write it in small letters"
	case has("looking for beginning of value"), has("in literal"):
		return "this is no value; write true, false, null, a number, or a text in double quotes"
	}
	return found
}

// wordAt returns the letters around a byte.
func wordAt(strict []byte, at int) string {
	isLetter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	from, to := at, at
	for from > 0 && isLetter(strict[from-1]) {
		from--
	}
	for to < len(strict) && isLetter(strict[to]) {
		to++
	}
	return string(strict[from:to])
}

// A walker makes nodes of JSON that is known to be valid.
type walker struct {
	relaxed, strict []byte
	*json.Decoder   // of strict
}

// token returns the next token, and where it stands.
func (w *walker) token() (t json.Token, at span) {
	at.from = int(w.InputOffset())
	for strings.IndexByte(" \t\r\n,:", w.strict[at.from]) >= 0 {
		at.from++
	}
	t, _ = w.Token() // it is valid
	at.to = int(w.InputOffset())
	return t, at
}

func (w *walker) value() (n node) {
	t, at := w.token()
	n.span, n.kind, n.word = at, number, string(w.strict[at.from:at.to])
	switch t := t.(type) {
	case nil:
		n.kind = null
	case bool:
		n.kind = boolean
	case string:
		n.kind, n.word = text, w.text(at)
	case json.Delim:
		for n.kind, n.word = list, ""; w.More(); {
			if t == '[' {
				n.items = append(n.items, w.value())
				continue
			}
			_, key := w.token()
			n.members = append(n.members, member{name: w.text(key), at: key.from, value: w.value()})
		}
		if t == '{' {
			n.kind = object
		}
		_, end := w.token()
		n.to = end.to
	}
	return n
}

// text reads a text with the tabs that strict JSON has no place for.
func (w *walker) text(at span) (s string) {
	quoted := bytes.ReplaceAll(w.relaxed[at.from:at.to], []byte("\t"), []byte(`\t`))
	_ = json.Unmarshal(quoted, &s) // it is valid
	return s
}
