package runner

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// DefaultLimit is how many bytes of a command's output are kept.
const DefaultLimit = 1 << 20

// minLimit keeps room for a few lines in either half.
const minLimit = 1 << 10

// entryCost is what an entry counts beyond its text, so that a flood of empty lines is bounded too.
const entryCost = 32

// Stream says where a piece of output came from.
type Stream uint8

const (
	Stdout Stream = 1
	Stderr Stream = 2
	Note   Stream = 3 // a line of this package, on the dropped bytes
)

// Log is what a task's log calls the stream.
func (s Stream) Log() plan.Stream {
	return [...]plan.Stream{Stdout: plan.Stdout, Stderr: plan.Stderr, Note: plan.System}[s]
}

// An Entry is a line that a command printed, with its newline if it had one. A line longer than 16
// KiB, or than a sixteenth of the limit, comes in several entries. Only the last of them has the
// newline.
//
// Text is valid UTF-8 without NUL, so that any store takes it: other bytes are written as \xNN. Secrets in it are ***.
type Entry struct {
	At     time.Time // when the first byte of it was read
	Stream Stream
	Text   string
}

// An Output is the output of one command, up to a limit. Beyond it, the first and the last half
// remain, with a Note of the number of dropped bytes between them. Within a stream the order is
// exact. Between the two streams it is the order of reading. That can differ from the order of
// writing within about a millisecond.
type Output struct {
	secrets *secret.Values
	half    int // the limit of head and of tail
	tee     func(Stream, string)

	mu       sync.Mutex
	head     []Entry // what Drain returns at any time
	headSize int     // of all that ever was in head
	headFull bool
	tail     []Entry // the end so far, from first on
	first    int
	tailSize int
	dropped  int64     // bytes of text that were pushed out of tail
	closed   bool      // nothing more comes, tail may go
	said     lastWords // of the standard error
}

// NewOutput returns an empty Output for one command. It keeps up to limit bytes; 0 means
// DefaultLimit, and less than 1 KiB counts as 1 KiB. A line counts 32 bytes more than its text.
// Output replaces each secret by ***, and each line of four bytes or more of a secret of several
// lines. It also finds a secret as JSON writes it, and with escape sequences or control characters
// inside it, which displays drop. Blank space around a secret does not count as part of it.
func NewOutput(limit int, secretValues ...string) *Output {
	if limit == 0 {
		limit = DefaultLimit
	}
	return &Output{half: max(limit, minLimit) / 2, secrets: secret.NewValues(secretValues)}
}

// Tee also hands over everything that the command prints, before anything is dropped. The lines of
// one stream keep their order. Take must not wait for the Output. It is called before the command
// is started.
func (o *Output) Tee(take func(s Stream, text string)) { o.tee = take }

// Entries is Drain for a task's log.
func (o *Output) Entries() []plan.LogEntry {
	captured := o.Drain()
	out := make([]plan.LogEntry, len(captured))
	for i, e := range captured {
		out[i] = plan.LogEntry{At: e.At, Stream: e.Stream.Log(), Text: e.Text}
	}
	return out
}

// Drain returns the entries since the last Drain, each once, and never waits for the command. While
// the command runs, Drain returns only the first half of the limit. It returns the rest after Run
// has returned, because only then the last half is known.
func (o *Output) Drain() []Entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.head
	o.head = nil
	if !o.closed {
		return out
	}
	tail := o.tail[o.first:]
	o.tail, o.first = nil, 0
	if o.dropped > 0 {
		at := time.Now()
		if len(tail) > 0 {
			at = tail[0].At
		}
		out = append(out, Entry{at, Note, fmt.Sprintf("[%d bytes dropped here]\n", o.dropped)})
		o.dropped = 0
	}
	return append(out, tail...)
}

// add takes the entries, in their order; it does not keep the slice.
func (o *Output) add(entries []Entry) {
	if o.tee != nil {
		for i := range entries {
			o.tee(entries[i].Stream, entries[i].Text)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range entries {
		if entries[i].Stream == Stderr {
			o.said.add(entries[i].Text)
		}
	}
	for i, e := range entries {
		cost := len(e.Text) + entryCost
		if !o.headFull && o.headSize+cost > o.half {
			o.headFull = true
			o.head = append(o.head, Entry{e.At, Note, fmt.Sprintf(
				"[%d bytes kept so far; of what follows the last %d are kept, and shown when the command has ended]\n", o.headSize, o.half)})
		}
		if o.headFull {
			o.addToTail(entries[i:])
			return
		}
		o.head = append(o.head, e)
		o.headSize += cost
	}
}

func (o *Output) addToTail(entries []Entry) {
	for _, e := range entries {
		o.tail = append(o.tail, e)
		o.tailSize += len(e.Text) + entryCost
	}
	for o.tailSize > o.half {
		e := &o.tail[o.first]
		o.tailSize -= len(e.Text) + entryCost
		o.dropped += int64(len(e.Text))
		*e = Entry{} // frees the text
		o.first++
	}
	if o.first > len(o.tail)/2 { // moved so seldom that it costs each entry a constant
		o.tail = slices.Delete(o.tail, 0, o.first)
		o.first = 0
	}
}

// close says that nothing more comes.
func (o *Output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}
