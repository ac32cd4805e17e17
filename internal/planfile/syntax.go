package planfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parse reads the one document of the source; nil with a fault noted if it cannot.
func parse(f *faults) *yaml.Node {
	src := f.src
	if at, message := unreadable(src.Text); message != "" {
		f.add(fault{at: at, text: message})
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(src.Text))
	doc, err := decode(dec)
	if errors.Is(err, io.EOF) || err == nil && isEmpty(doc) {
		f.add(fault{text: "the file is empty; a plan needs a name and a task, as in {plan: hello, tasks: {greet: {run: echo hello}}}"})
		return nil
	}
	if err != nil {
		f.add(syntaxFault(src, err))
		return nil
	}
	switch second, err := decode(dec); {
	case errors.Is(err, io.EOF):
		return doc.Content[0]
	case err != nil:
		f.add(syntaxFault(src, err))
	default:
		f.add(fault{at: src.Offset(second.Line, second.Column), text: "a second document begins here; a plan file holds one plan, so drop the --- or make two files"})
	}
	return nil
}

// isEmpty reports whether a document has nothing but comments.
func isEmpty(doc *yaml.Node) bool {
	n := doc.Content[0]
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0
}

// decode reads the next document. The library's own mistakes come out as its errors do: no file may end the program.
func decode(dec *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the YAML reader fails here: %v", p)
		}
	}()
	doc = &yaml.Node{}
	return doc, dec.Decode(doc)
}

// advice says in a user's words what the parser says in its own; the first entry whose words are in the parser's message holds.
var advice = []struct{ message, says string }{
	{"found character that cannot start any token", "a value cannot begin with this character; put the value in quotes"},
	{"mapping values are not allowed", "a second \": \" in one line, the line above lacks its colon, or this one is indented too far; put a text with \": \" in it in quotes"},
	{"block sequence entries are not allowed", "a list item cannot stand here; begin it in a line of its own"},
	{"mapping keys are not allowed", "a value cannot begin with \"? \"; put it in quotes"},
	{"alphabetic or numeric character", "* and & at the start of a value mean an alias and an anchor to YAML; put all of the value in quotes"},
	{"unknown anchor", "no anchor of this name stands above; to mean the text itself put it in quotes"},
	{"could not find expected ':'", "this line is neither KEY: VALUE nor part of the value above; is a colon missing, or is it indented too little?"},
	{"did not find expected key", "this does not fit what is around it; is it indented otherwise than its neighbours, or does text follow a closed quote or bracket?"},
	{"did not find expected '-' indicator", "this is not an item of the list above; begin it with \"- \", or indent it otherwise"},
	{"did not find expected ',' or ']'", "a list that begins with [ is not closed with ] before this, or a comma is missing"},
	{"did not find expected ',' or '}'", "a mapping that begins with { is not closed with } before this, or a comma is missing"},
	{"did not find expected node content", "a value is missing here"},
	{"found unexpected end of stream", "a text that begins with a quote here is not closed before the end of the file"},
	{"found unexpected document indicator", "a text that begins with a quote here is not closed before the end of the document"},
	{"unknown escape character", "\"\\\" begins an escape in double quotes, and this is none; use single quotes, or write \\\\"},
	{"tab character", "a tab in the indentation; YAML takes only spaces there"},
	{"expected <document start>", "text after the end of the document"},
	{"max depth", "the file is nested too deeply"},
}

var parserLine = regexp.MustCompile(`^line (\d+): `)

// syntaxFault makes a fault of the parser's error. The parser names at most a line, and often the
// line at which it began to read. So syntaxFault parses the text once more, byte by byte, to see
// how far the parser came.
func syntaxFault(src *source, err error) fault {
	line, message := parserMessage(err)
	at := stoppedAt(src)
	text := "this is not YAML: " + message
	for _, a := range advice {
		if strings.Contains(message, a.message) {
			text = "this is not YAML: " + a.says
			break
		}
	}
	has := func(words string) bool { return strings.Contains(message, words) }
	for _, place := range []int{at, src.wordBefore(at), src.firstOfLine(max(line, 1))} {
		if from, ok := src.longKey(place); ok {
			return fault{at: from, text: fmt.Sprintf("this is not YAML: a key has at most %d characters", longestKey)}
		}
	}
	switch {
	case has("expected ':'"):
		at = src.firstOfLine(line)
	case has("unexpected end of stream"), has("unexpected document indicator"):
		// On the first line the parser forgets where the quote was, and names the end.
		if line == 0 || line >= src.LastLine() {
			line = 1
		}
		at = src.openQuote(line)
	case has("tab character"), has("cannot start any token") && at < len(src.Text) && src.Text[at] == '\t':
		text = "this is not YAML: a tab in the indentation; YAML takes only spaces there"
		if tab := bytes.IndexByte(src.Text[at:min(len(src.Text), at+lookahead+1)], '\t'); tab >= 0 {
			at += tab
		}
	case has("unknown anchor"):
		if name := strings.Split(message, "'"); len(name) > 1 {
			at = max(0, bytes.LastIndex(src.Text[:at], []byte("*"+name[1])))
		}
	case has("did not find expected"):
		if from, expr := src.bareExpression(at); expr != "" {
			return fault{at: from, text: fmt.Sprintf("this is not YAML: between [ ] and { } braces mean something else; put the value in quotes, as in \"%s\"", expr)}
		}
		at = src.earliest(src.wordBefore(at), message)
	}
	return fault{at: min(at, len(src.Text)), text: text}
}

// longestKey is how many characters YAML allows a key that does not begin with a question mark.
const longestKey = 1024

// longKey returns where the word at, or just before, a place begins, if it is too long for a key.
func (s *source) longKey(at int) (from int, ok bool) {
	const ends = " \t\r\n{}[],:"
	at = min(at, len(s.Text))
	from = bytes.LastIndexAny(bytes.TrimRight(s.Text[:at], ": \t"), ends) + 1
	to := bytes.IndexAny(s.Text[from:], ends)
	if to < 0 {
		to = len(s.Text) - from
	}
	return from, utf8.RuneCount(s.Text[from:from+to]) > longestKey
}

// parserMessage takes the line, 0 if there is none, off the parser's message.
func parserMessage(err error) (line int, message string) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := parserLine.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits; one that is too large is no line
		message = message[len(m[0]):]
	}
	return line, message
}

// earliest goes back from the line where the parser stopped. It returns the first line at whose end
// the parser stops for the same reason. The parser may have read on, to see whether the next line
// still belongs to text that it could not parse.
func (s *source) earliest(at int, message string) int {
	const lines, most = 20, 64 << 20 // that are tried, and bytes that are parsed for it
	for tried, parsed := 0, 0; tried < lines && parsed < most; tried++ {
		from := bytes.LastIndexByte(s.Text[:at], '\n') + 1
		parsed += from
		_, err := decode(yaml.NewDecoder(bytes.NewReader(s.Text[:from])))
		if err == nil {
			return at
		}
		if _, same := parserMessage(err); same != message {
			return at
		}
		at = s.wordBefore(from)
	}
	return at
}

// bareExpression returns the expression at whose braces the parser gave up, and where it begins.
// Quotes around the expression would avoid the mistake.
func (s *source) bareExpression(at int) (from int, expr string) {
	const open, end = "${{", "}}"
	from = bytes.LastIndex(s.Text[:min(at+len(open), len(s.Text))], []byte(open))
	if from < 0 {
		return 0, ""
	}
	line, _, _ := bytes.Cut(s.Text[from:], []byte("\n"))
	before := s.Text[bytes.LastIndexByte(s.Text[:from], '\n')+1 : from]
	length := bytes.Index(line, []byte(end)) + len(end)
	if length < len(end) || at > from+length || bytes.Count(before, []byte(`"`))%2 > 0 || bytes.Count(before, []byte("'"))%2 > 0 {
		return 0, ""
	}
	return from, string(line[:length])
}

// The parser keeps this many characters ahead of where it is.
const lookahead = 4

// stoppedAt returns the byte at which the parser gave up.
func stoppedAt(src *source) int {
	slow := &byteReader{text: append(bytes.Clone(src.Text), strings.Repeat("\n", 2*lookahead)...)}
	dec := yaml.NewDecoder(slow)
	if _, err := decode(dec); err == nil {
		_, _ = decode(dec) // the mistake is in the second document
	}
	at := slow.read
	for range lookahead {
		at = max(0, at-1)
		for at > 0 && at < len(slow.text) && slow.text[at]&0xC0 == 0x80 {
			at--
		}
	}
	return min(at, len(src.Text))
}

// A byteReader gives a byte a time, and so knows how far its reader came.
type byteReader struct {
	text []byte
	read int
}

func (b *byteReader) Read(p []byte) (int, error) {
	if b.read == len(b.text) {
		return 0, io.EOF
	}
	p[0] = b.text[b.read]
	b.read++
	return 1, nil
}

// firstOfLine returns the first byte of a line, as YAML counts them, that is no space.
func (s *source) firstOfLine(line int) int {
	at := s.Offset(max(line, 1), 1)
	for at < len(s.Text) && s.Text[at] == ' ' {
		at++
	}
	return at
}

// openQuote returns where in the line a text in quotes begins that the line does not end.
func (s *source) openQuote(line int) int {
	at := s.firstOfLine(line)
	rest := s.Text[at:]
	if end := bytes.IndexAny(rest, "\r\n"); end >= 0 {
		rest = rest[:end]
	}
	if i := bytes.LastIndexAny(rest, `"'`); i >= 0 {
		return at + i
	}
	return at
}

// wordBefore goes back from a byte to the beginning of the last word that is no comment.
func (s *source) wordBefore(at int) int {
	for {
		at = len(bytes.TrimRight(s.Text[:min(at+1, len(s.Text))], " \t\r\n"))
		from := bytes.LastIndexByte(s.Text[:at], '\n') + 1
		if line := bytes.TrimLeft(s.Text[from:at], " \t"); len(line) == 0 || line[0] != '#' || from == 0 {
			return max(from, bytes.LastIndexAny(s.Text[:max(0, at-1)], " \t\n")+1)
		}
		at = from - 1
	}
}
