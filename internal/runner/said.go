package runner

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/secret"
)

// mostSaid is the most characters of a line that a failure shows.
const mostSaid = 300

// lastWords pick the line of a stream that tells best why a command failed: the last one that is not known to tell nothing. They keep two lines.
type lastWords struct {
	line   string // the last line that may tell something
	noise  string // the last one of all, blank ones aside
	within bool   // the next bytes continue a line whose beginning is known
	trace  bool   // the trace of a Go program is being printed
}

// add takes the next piece of the stream.
func (s *lastWords) add(text string) {
	within := s.within
	if s.within = !strings.HasSuffix(text, "\n"); within {
		return
	}
	blank := strings.TrimSpace(text) == ""
	switch {
	case strings.HasPrefix(text, "goroutine ") && strings.HasSuffix(strings.TrimSpace(text), "]:"):
		s.trace = true
	case blank:
		s.trace = false
	}
	switch {
	case blank:
	case s.trace || saysNothing(text):
		s.noise = text
	default:
		s.line = text
	}
}

// saysNothing reports whether a line names no cause. Such a line is a program's comment on another
// one's failure, a trace, or the continuation of a line.
func saysNothing(line string) bool {
	switch line[0] {
	case ' ', '\t', '}', '^', '~': // of traces, and what points into a line above
		return true
	case '+': // of sh -x
		return strings.HasPrefix(strings.TrimLeft(line, "+"), " ")
	case 'm', 'g': // make: *** [Makefile:3: all] Error 1
		program, rest, ok := strings.Cut(line, ": ")
		return ok && strings.Contains(program, "make") && (strings.HasPrefix(rest, "*** [") || strings.HasPrefix(rest, "Entering directory") ||
			strings.HasPrefix(rest, "Leaving directory") || strings.HasPrefix(rest, "Waiting for unfinished jobs") || strings.HasPrefix(rest, "*** Waiting"))
	case 'e': // of go run
		return strings.HasPrefix(line, "exit status ")
	case 'n':
		return strings.HasPrefix(line, "note: run with ") || strings.HasPrefix(line, "npm ERR! A complete log") || strings.HasPrefix(line, "npm error A complete log") ||
			strings.HasPrefix(line, "npm ERR!     ") || strings.TrimSpace(line) == "npm ERR!"
	case 'N':
		return strings.HasPrefix(line, "Node.js v")
	case 'r', 'u', 's': // of time
		word, rest, ok := strings.Cut(line, "\t")
		return ok && (word == "real" || word == "user" || word == "sys") && strings.ContainsAny(rest, "0123456789")
	}
	return !strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// text returns the line for a message: one line, without colours and control characters, and
// bounded.
func (s *lastWords) text() string {
	line := s.line
	if line == "" {
		line = s.noise
	}
	line = strings.TrimRight(line, "\r\n")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 { // what a terminal shows of a line that was written over
		line = line[i+1:]
	}
	var b strings.Builder
	count := 0
	for at := 0; at < len(line); {
		if n, _ := secret.Sequence([]byte(line[at:])); n > 0 {
			at += n
			continue
		}
		r, n := utf8.DecodeRuneInString(line[at:])
		at += n
		if count++; count > mostSaid {
			b.WriteString("…")
			break
		}
		if unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// Said returns the last line that the ended command wrote to its standard error, with secrets
// hidden. It has at most 300 characters, without colours and control characters. Lines that name no
// cause, as make's "Error 1" and lines of traces, count only if there is no other. Said returns ""
// if there is no line.
func (o *Output) Said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said.text()
}
