package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// The limits of what a session keeps of texts.
const (
	// MaxWords is the most bytes of a text of the worker that a session hands on: of a MSG, an ERROR
	// or a FATAL, and of last words.
	MaxWords = 100 << 10

	// maxLocation is the most bytes of the location of an output.
	maxLocation = 64 << 10

	// maxFailed is the most inputs that an ending names as failed.
	maxFailed = 10
)

// A Conn is the host's end of the streams of a worker.
type Conn interface {
	// Read reads what the worker wrote to its standard output and its standard error. It returns
	// io.EOF when no process can write there any more, or the worker has exited and all is read.
	Read(p []byte) (int, error)

	// Write writes to the standard input of the worker.
	Write(p []byte) (int, error)

	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error

	// Exited returns a channel that is closed once the worker has exited; nil if that is not known.
	Exited() <-chan struct{}
}

// Outputs is where the outputs of a session go.
type Outputs interface {
	// Output takes an output, with the size that the worker says. An error ends the attempt.
	Output(label int64, location string, size int64) error

	// Done makes the outputs last: the worker is done. An error ends the attempt.
	Done() error
}

// Settings are the limits of time of sessions. A zero value means the default.
type Settings struct {
	First  time.Duration // from the start to the first byte; default 30 s
	Within time.Duration // between two bytes of one message; default 30 s
	Quiet  time.Duration // of silence after a wrong frame, before the attempt ends; default 10 s
	Window time.Duration // in which five MSG are answered at once; default 1 s
	Hold   time.Duration // by which the reply to any further MSG is held back; default 200 ms
}

func (s *Settings) fill() {
	for _, f := range []struct {
		of    *time.Duration
		usual time.Duration
	}{
		{&s.First, 30 * time.Second}, {&s.Within, 30 * time.Second}, {&s.Quiet, 10 * time.Second},
		{&s.Window, time.Second}, {&s.Hold, 200 * time.Millisecond},
	} {
		if *f.of == 0 {
			*f.of = f.usual
		}
	}
}

// An End is how an attempt ended.
type End int

const (
	Done  End = 1 + iota // the worker said so
	Error                // another attempt may end better
	Fatal                // no attempt would, and the job has failed
)

func (e End) String() string { return [...]string{Done: "done", Error: "error", Fatal: "fatal"}[e] }

// An Ending says how an attempt ended.
type Ending struct {
	End    End
	Detail string // for people: the text of the worker, or what was wrong
	Lost   []int  // the inputs of which all replicas failed, in order
	Died   bool   // the output of the worker ended before it said how the attempt ended; how it exited is not known here
}

// A Session is one attempt. Each field but Message and the Settings is needed.
type Session struct {
	Settings
	Task    Task
	Inputs  Inputs
	Outputs Outputs
	Message func(text string) // takes the texts of MSG, and what the worker says of inputs that failed
}

// Run speaks with the worker until the attempt has ended. It uses no other goroutine. When ctx ends,
// Run returns an Error with the cause of ctx. The caller ends the worker after that.
func (s *Session) Run(ctx context.Context, c Conn) Ending {
	r := run{Session: s, ctx: ctx, conn: c, limits: s.Settings, failed: failings{}}
	r.limits.fill()
	r.buf = make([]byte, smallBuffer)
	defer r.free()
	defer context.AfterFunc(ctx, func() {
		past := time.Unix(1, 0)
		_ = c.SetReadDeadline(past) // a stream without deadlines ends with the worker
		_ = c.SetWriteDeadline(past)
	})()
	e := r.talk()
	if ctx.Err() != nil && e.End != Done {
		return Ending{End: Error, Detail: strings.TrimSuffix(context.Cause(ctx).Error()+"; "+e.Detail, "; ")}
	}
	if len(r.failures) > 0 {
		e.Detail = strings.TrimPrefix(e.Detail+"\n", "\n") + "inputs that failed: " + strings.Join(r.failures, "; ")
		list, _, _ := r.Inputs.Inputs()
		for _, id := range slices.Sorted(maps.Keys(r.failed)) {
			if len(r.failed[id].order) == len(list[id].Replicas) {
				e.Lost = append(e.Lost, id)
			}
		}
	}
	return e
}

// The sizes of the buffer of a session. It is as large as a message needs.
const (
	smallBuffer  = 16 << 10
	middleBuffer = 1 << 20
	largeBuffer  = MaxMessage + longestHead + 1
)

// A session has at most one of each, which later sessions use again.
var (
	large   = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
	replies = sync.Pool{New: func() any { return new([MaxReply + longestHead + 1]byte) }}
)

// A run is the state of a session.
type run struct {
	*Session
	ctx    context.Context
	conn   Conn
	limits Settings

	large    *[largeBuffer]byte // nil: no message was so large
	buf      []byte
	from, to int  // what is unread in it
	heard    bool // the worker has written something

	failed   failings
	failures []string    // for the ending: one for each input that failed
	messages []time.Time // when the last five MSG came

	ending *Ending                           // set by a message that ends the attempt
	whole  *[MaxReply + longestHead + 1]byte // of a large reply; nil: there was none

	untimed bool // reads have no deadline
}

// talk answers messages until the attempt has ended.
func (r *run) talk() Ending {
	for {
		f, ok, wrong := parse(r.buf[r.from:r.to])
		switch {
		case wrong != "":
			return r.lastWords(wrong)
		case !ok:
			if e := r.more(f.size); e != nil {
				return *e
			}
			continue
		}
		reply := r.judge(f)
		if r.ctx.Err() != nil && (r.ending == nil || r.ending.End != Done) {
			return Ending{End: Error}
		}
		// A worker that has exited, or closed its input, need not hear of it.
		if reply != nil {
			_, _ = r.conn.Write(reply)
		}
		if r.ending != nil {
			return *r.ending
		}
		r.consume(f.size)
	}
}

// consume drops a message.
func (r *run) consume(size int) {
	r.from += size
	if r.from == r.to {
		r.from, r.to = 0, 0
	}
}

// free gives the large buffers back.
func (r *run) free() {
	if r.large != nil {
		large.Put(r.large)
	}
	if r.whole != nil {
		replies.Put(r.whole)
	}
}

// more reads more of a message. size is the size of the whole of it, or 0 while that is not known.
// It returns an ending if nothing more can come.
func (r *run) more(size int) *Ending {
	r.makeRoom(max(size, longestHead))
	var limit time.Duration
	switch {
	case !r.heard:
		limit = r.limits.First
	case r.to > r.from:
		limit = r.limits.Within
	}
	n, err := r.read(limit)
	if n > 0 {
		return nil
	}
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return r.died()
	case r.ctx.Err() != nil && r.to > r.from:
		return &Ending{End: Error, Detail: "the worker was in the middle of a message: " + excerpt(r.buf[r.from:r.to])}
	case r.ctx.Err() != nil:
		return &Ending{End: Error}
	case !r.heard:
		return &Ending{End: Error, Detail: fmt.Sprintf("Worker did not send its PID: it wrote nothing within %v of its start", limit)}
	}
	return &Ending{End: Error, Detail: fmt.Sprintf("Worker stuck in the middle of a message: nothing followed within %v of %s", limit, excerpt(r.buf[r.from:r.to]))}
}

// read reads once, for at most the limit; 0 is none.
func (r *run) read(limit time.Duration) (n int, err error) {
	if limit > 0 || !r.untimed {
		var deadline time.Time
		if limit > 0 {
			deadline = time.Now().Add(limit)
		}
		if err := r.conn.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
		r.untimed = limit == 0
		if r.ctx.Err() != nil { // it may have ended before the deadline was set
			return 0, os.ErrDeadlineExceeded
		}
	}
	n, err = r.conn.Read(r.buf[r.to:])
	r.to += n
	r.heard = r.heard || n > 0
	return n, err
}

// makeRoom makes the buffer so large that a message of that size fits at its beginning, and leaves
// room to read.
func (r *run) makeRoom(size int) {
	if r.to < len(r.buf) && r.from+size <= len(r.buf) {
		return
	}
	old := r.buf[r.from:r.to]
	switch {
	case size <= len(r.buf) && len(old) < len(r.buf):
	case size <= middleBuffer && len(old) < middleBuffer:
		r.buf = make([]byte, middleBuffer)
	default:
		r.large = large.Get().(*[largeBuffer]byte)
		r.buf = r.large[:]
	}
	r.from, r.to = 0, copy(r.buf, old)
}

// died is the ending of a worker whose output ended before it said how the attempt ended.
func (r *run) died() *Ending { return &Ending{End: Error, Died: true, Detail: r.unread()} }

// unread says what the worker wrote that was not answered.
func (r *run) unread() string {
	if r.from == r.to {
		return "Worker died without output"
	}
	return "Worker died. Last words: " + words(r.buf[r.from:r.to])
}

// words returns what a worker wrote that is no message, as text.
func words(b []byte) string {
	cut := ""
	if len(b) > MaxWords {
		b, cut = b[:MaxWords-len("...")], "..."
	}
	return strings.ToValidUTF8(string(b), "\uFFFD") + cut
}

// lastWords reads what a worker writes after a wrong frame, until it is quiet, or exits, or has
// written 100 KiB. There is no reply any more.
func (r *run) lastWords(wrong fault) Ending {
	e := Ending{End: Error}
	for r.to-r.from < MaxWords {
		r.makeRoom(min(r.to-r.from+smallBuffer, middleBuffer))
		if _, err := r.read(r.limits.Quiet); err != nil {
			e.Died = !errors.Is(err, os.ErrDeadlineExceeded)
			break
		}
	}
	e.Detail = fmt.Sprintf("Could not parse worker event: %s. %s", wrong, r.unread())
	return e
}

// judge returns the reply to a message, nil for none. It sets the ending if the message ends the
// attempt.
func (r *run) judge(f frame) (reply []byte) {
	name := string(f.name)
	if !valid(f.body) {
		return r.fatal("Payload is not valid JSON: type %q, body: %s", name, excerpt(f.body))
	}
	fits := true
	switch name {
	case "WORKER":
		var version string
		if version, fits = greeting(f.body); fits && version != "1.1" {
			return r.fatal("Invalid worker version: %q; the host speaks 1.1", version)
		}
		reply = okReply
	case "PING":
		reply = okReply
	case "TASK":
		if fits = isText(f.body); fits {
			reply = r.Task.reply()
		}
	case "MSG":
		if fits = isText(f.body); fits {
			r.tell(decoded(bytes.TrimSpace(f.body), MaxWords))
			r.hold()
			reply = okReply
		}
	case "INPUT":
		var ch choice
		if ch, fits = choiceOf(f.body); fits {
			reply = r.input(ch)
		}
	case "INPUT_ERR":
		reply, fits = r.inputFailed(f.body)
	case "OUTPUT":
		reply, fits = r.output(f.body)
	case "DONE":
		if fits = isText(f.body); fits {
			reply = r.done()
		}
	case "ERROR", "FATAL":
		if fits = isText(f.body); fits {
			r.ending = &Ending{End: Error, Detail: decoded(bytes.TrimSpace(f.body), MaxWords)}
			if name == "FATAL" {
				r.ending.End = Fatal
			}
			reply = okReply
		}
	default:
		return r.fatal("Unknown message type %q, body: %s", name, excerpt(f.body))
	}
	if !fits {
		return r.fatal("Invalid message body (type %q): %s", name, excerpt(f.body))
	}
	return reply
}

// fatal ends the attempt as fatal, without a reply.
func (r *run) fatal(format string, args ...any) []byte {
	r.ending = &Ending{End: Fatal, Detail: fmt.Sprintf(format, args...)}
	return nil
}

// failure ends the attempt as an error, without a reply.
func (r *run) failure(format string, args ...any) []byte {
	r.ending = &Ending{End: Error, Detail: fmt.Sprintf(format, args...)}
	return nil
}

func (r *run) tell(text string) {
	if r.Message != nil {
		r.Message(text)
	}
}

// hold waits before the reply to a MSG if five others came within a second before it.
func (r *run) hold() {
	const most = 5
	now := time.Now()
	busy := len(r.messages) == most && now.Sub(r.messages[0]) <= r.limits.Window
	if len(r.messages) == most {
		r.messages = slices.Delete(r.messages, 0, 1)
	}
	r.messages = append(r.messages, now)
	if !busy {
		return
	}
	t := time.NewTimer(r.limits.Hold)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.ctx.Done():
	case <-r.conn.Exited():
	}
}

// input returns the reply to INPUT. While it would have no inputs, and more may come, it waits.
func (r *run) input(ch choice) []byte {
	for {
		list, complete, changed := r.Inputs.Inputs()
		length := len(`["done",[]]`)
		n := r.failed.rows(list, ch, func(row []byte) { length += len(row) + 1 })
		if n > 0 || complete {
			if n > 0 {
				length-- // the last row has no comma
			}
			return r.inputReply(list, complete, ch, length)
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return nil
		case <-r.conn.Exited():
			r.ending = r.died() // what it wrote behind the INPUT is not read
			return nil
		}
	}
}

// inputReply writes a reply whose length is known.
func (r *run) inputReply(list []Input, complete bool, ch choice, length int) []byte {
	if length > MaxReply {
		return r.failure("The reply to INPUT would have %d bytes, and a reply has at most %d: ask for fewer inputs at once, by include", length, MaxReply)
	}
	var b []byte
	if length > middleBuffer {
		if r.whole == nil {
			r.whole = replies.Get().(*[MaxReply + longestHead + 1]byte)
		}
		b = r.whole[:0]
	} else {
		b = make([]byte, 0, length+longestHead+1)
	}
	b = appendHead(b, "INPUT", length)
	if complete {
		b = append(b, `["done",[`...)
	} else {
		b = append(b, `["more",[`...)
	}
	first := true
	r.failed.rows(list, ch, func(row []byte) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, row...)
	})
	return append(b, "]]\n"...)
}

// inputFailed returns the reply to INPUT_ERR.
func (r *run) inputFailed(body []byte) (reply []byte, fits bool) {
	list, _, _ := r.Inputs.Inputs()
	var named []bool // by replica
	var in *Input
	id, fits := failedReplicas(body, func(int64) {})
	if !fits {
		return nil, false
	}
	if id < 0 || id >= int64(len(list)) {
		r.noteFailed(fmt.Sprintf("input %d, which is not there", id))
		return failReply, true
	}
	in = &list[id]
	named = make([]bool, len(in.Replicas))
	var failed []int
	_, _ = failedReplicas(body, func(replica int64) {
		if replica >= 0 && replica < int64(len(named)) && !named[replica] {
			named[replica] = true
			failed = append(failed, int(replica))
		}
	})
	r.failed.fail(int(id), in, failed)
	urls := make([]string, len(failed))
	for i, replica := range failed {
		urls[i] = in.Replicas[replica]
	}
	r.noteFailed(fmt.Sprintf("input %d: %s", id, strings.Join(urls, ", ")))
	b := []byte{'['}
	r.failed.replicas(int(id), in, func(replica int) {
		if named[replica] {
			return
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendReplica(b, replica, in.Replicas[replica])
	})
	switch {
	case len(b) > 1:
		return message("RETRY", append(b, ']')), true
	case in.Busy:
		return message("WAIT", fmt.Append(nil, r.failed.wait(int(id)))), true
	}
	return failReply, true
}

// noteFailed notes an input that the worker could not read.
func (r *run) noteFailed(text string) {
	if len(text) > 1000 {
		text = strings.ToValidUTF8(text[:1000], "") + "…"
	}
	r.tell("INPUT_ERR: " + text)
	switch {
	case len(r.failures) == maxFailed:
		r.failures = append(r.failures, "and others")
	case len(r.failures) < maxFailed && !slices.Contains(r.failures, text):
		r.failures = append(r.failures, text)
	}
}

// output returns the reply to OUTPUT.
func (r *run) output(body []byte) (reply []byte, fits bool) {
	label, raw, size, fits := outputOf(body)
	if !fits {
		return nil, false
	}
	if label < AllLabels || label > MaxLabel {
		return r.failure("OUTPUT: label %d: a label is an integer from 0 to %d, or %d for \"all\"", label, MaxLabel, AllLabels), true
	}
	if len(raw) > maxLocation {
		return r.failure("The location of an OUTPUT has %d bytes, and may have %d", len(raw), maxLocation), true
	}
	location := decoded(raw, maxLocation)
	if err := r.Outputs.Output(label, location, size); err != nil {
		return r.failure("OUTPUT %q: %v", location, err), true
	}
	return okReply, true
}

// done returns the reply to DONE.
func (r *run) done() []byte {
	if err := r.Outputs.Done(); err != nil {
		return r.failure("DONE: %v", err)
	}
	r.ending = &Ending{End: Done}
	return okReply
}
