package plugins

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// maxLog bounds the bytes of text that an attempt may print to its Log; a source has its own bound.
const maxLog = 1 << 20

// A Log collects what one attempt prints until the node drains it into the store. Any number of goroutines may use it.
type Log struct {
	mu      sync.Mutex
	entries []plan.LogEntry
	bytes   int
	full    bool
	source  func() []plan.LogEntry
	capture *Capture
}

// CaptureTo has the whole of what the task prints go to the capture too. It is called before the attempt begins.
func (l *Log) CaptureTo(c *Capture) { l.capture = c }

// Capture returns the Capture of everything that the task prints, or nil. A plugin that attaches a
// source, which may be bounded, also writes the source's output to it.
func (l *Log) Capture() *Capture { return l.capture }

// Print adds a line to what the task says on its standard output.
func (l *Log) Print(args ...any) { l.Append(plan.Stdout, fmt.Sprint(args...)) }

// Printf is Print with a format.
func (l *Log) Printf(format string, args ...any) { l.Append(plan.Stdout, fmt.Sprintf(format, args...)) }

// Append adds a line; text without a newline at its end gets one. Beyond one MiB an attempt's lines are dropped, and the last one
// says so.
func (l *Log) Append(s plan.Stream, text string) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if l.capture != nil {
		l.capture.Write(s, text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return
	}
	if l.bytes += len(text); l.bytes > maxLog {
		l.full, s, text = true, plan.System, "[more than 1 MiB of log: the rest is dropped]\n"
	}
	l.entries = append(l.entries, plan.LogEntry{At: time.Now(), Stream: s, Text: text})
}

// Attach lets Drain also take what source has: a command's captured output. Source returns each entry once.
func (l *Log) Attach(source func() []plan.LogEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source = source
}

// Drain returns what was printed since the last Drain.
func (l *Log) Drain() []plan.LogEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.entries
	l.entries = nil
	if l.source != nil {
		out = append(out, l.source()...)
	}
	return out
}
