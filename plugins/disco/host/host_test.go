package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/internal/hosttest"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

// wire is the host's end of a worker that is a goroutine. It counts writes.
type wire struct {
	net.Conn
	exited chan struct{}
	writes []string
}

func (w *wire) Exited() <-chan struct{} { return w.exited }

func (w *wire) Write(p []byte) (int, error) {
	w.writes = append(w.writes, string(p))
	return w.Conn.Write(p)
}

// outputs keeps what it is told.
type outputs struct {
	said [][]any
	err  error
}

func (o *outputs) Output(label int64, location string, size int64) error {
	o.said = append(o.said, []any{label, location, size})
	return o.err
}

func (o *outputs) Done() error { return o.err }

// played is a worker that is a goroutine. A worker that ends itself ends the goroutine.
type played struct {
	conn net.Conn
	over chan struct{} // closed when the session has ended
}

func (p *played) Exit(int)                 { _ = p.conn.Close(); runtime.Goexit() }
func (p *played) Kill()                    { p.Exit(0) }
func (p *played) Stay()                    { <-p.over; runtime.Goexit() }
func (p *played) IgnoreTerm()              {}
func (p *played) Child()                   {}
func (p *played) Pause(d time.Duration)    { time.Sleep(d) }
func (p *played) WriteFile(string, string) {}

// stream is a pipe with room for everything that is written to it, as a worker expects of the
// pipes of a system.
type stream struct {
	mu   sync.Mutex
	more *sync.Cond
	b    []byte
	over bool
}

func newStream(from io.Reader) *stream {
	s := &stream{}
	s.more = sync.NewCond(&s.mu)
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := from.Read(buf)
			s.mu.Lock()
			s.b, s.over = append(s.b, buf[:n]...), err != nil
			s.more.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.b) == 0 && !s.over {
		s.more.Wait()
	}
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b)
	s.b = s.b[n:]
	return n, nil
}

// play runs a session of a worker that is a goroutine.
func play(t *testing.T, c *hosttest.Case) (host.Ending, *outputs, *wire) {
	t.Helper()
	ours, theirs := net.Pipe()
	w := &wire{Conn: ours, exited: make(chan struct{})}
	p := &played{conn: theirs, over: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(w.exited)
		c.Play(&hosttest.Worker{Within: 30 * time.Second, Process: p, In: newStream(theirs), Out: theirs, Failed: func(text string) { t.Errorf("the worker: %s", text) }})
	})
	inputs := &host.List{}
	later := c.Later
	feed := func(lines ...string) {
		if err := host.Feed(strings.NewReader(strings.Join(lines, "\n")), inputs); err != nil {
			t.Error(err)
		}
	}
	unfinished := func(lines ...string) { // as long as the end of the lines has not come
		for _, line := range lines {
			if line != "" {
				if err := host.FeedLine(line, inputs); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if unfinished(c.Lines...); len(later) == 0 && !c.Open {
		feed()
	}
	kept := &outputs{}
	s := host.Session{
		Task:   host.Task{ID: 1, JobName: "job@1", Host: "localhost", Master: "http://localhost:8989", DiscoPort: 8989, Stage: "map", Grouping: "split"},
		Inputs: inputs, Outputs: kept,
		Message: func(text string) {
			if text == hosttest.More {
				unfinished(later[0])
				if later = later[1:]; len(later) == 0 && !c.Open {
					feed()
				}
			}
		},
	}
	e := s.Run(t.Context(), w)
	close(p.over)
	_ = ours.Close()
	wg.Wait()
	return e, kept, w
}

func TestConformance(t *testing.T) {
	for _, c := range hosttest.Cases() {
		if c.Process {
			continue // through sluice disco run
		}
		t.Run(fmt.Sprintf("%02d %s", c.Number, c.Name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				e, kept, w := play(t, &c)
				if e.End != c.End {
					t.Errorf("it ended as %v, want %v: %s", e.End, c.End, e.Detail)
				}
				for _, want := range c.Detail {
					if !strings.Contains(e.Detail, want) {
						t.Errorf("the detail is %q, want %q in it", e.Detail, want)
					}
				}
				if took := time.Since(began); took < c.Over {
					t.Errorf("it took %v, want at least %v", took, c.Over)
				}
				if got, err := json.Marshal(append([][]any{}, kept.said...)); err != nil || c.Outputs != "" && string(got) != c.Outputs {
					t.Errorf("the outputs are %s, want %s", got, c.Outputs)
				}
				for _, reply := range w.writes {
					if !strings.HasSuffix(reply, "\n") || strings.Count(reply, "\n") != 1 {
						t.Errorf("a write is %q, want one whole reply", reply)
					}
				}
			})
		})
	}
	if n := len(hosttest.Cases()); n < 60 {
		t.Errorf("there are %d cases", n)
	}
}

func TestNumbersOfCasesAreUnique(t *testing.T) {
	seen := map[int]bool{}
	for _, c := range hosttest.Cases() {
		if seen[c.Number] {
			t.Errorf("there are two cases %d", c.Number)
		}
		seen[c.Number] = true
	}
}

func TestTheEndOfTheContextEndsASession(t *testing.T) {
	why := errors.New("a person cancelled it")
	for name, write := range map[string]string{
		"that waits for a message":     "",
		"in the middle of a message":   "MSG 10 ",
		"that waits for more inputs":   hosttest.Frame("INPUT", `""`),
		"that holds a reply back":      strings.Repeat(hosttest.Frame("MSG", `"a"`), 6),
		"that collects the last words": "Traceback of something",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				ours, theirs := net.Pipe()
				go io.Copy(io.Discard, theirs)
				go func() {
					_, _ = io.WriteString(theirs, write)
					time.Sleep(time.Millisecond)
					cancel(why)
				}()
				s := host.Session{Inputs: &host.List{}, Outputs: &outputs{}}
				if e := s.Run(ctx, &wire{Conn: ours}); e.End != host.Error || !strings.HasPrefix(e.Detail, why.Error()) {
					t.Errorf("it ended as %+v, want %v", e, why)
				}
				_ = ours.Close()
			})
		})
	}
	t.Run("whose worker reads no replies", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			ours, theirs := net.Pipe()
			go func() {
				_, _ = io.WriteString(theirs, hosttest.Frame("PING", `""`))
				time.Sleep(time.Hour)
				cancel(why)
			}()
			s := host.Session{Inputs: &host.List{}, Outputs: &outputs{}}
			if e := s.Run(ctx, &wire{Conn: ours}); e.Detail != why.Error() {
				t.Errorf("it ended as %+v, want %v", e, why)
			}
		})
	})
}

func TestAnOutputThatIsRefusedEndsTheAttempt(t *testing.T) {
	for _, message := range []string{hosttest.Frame("OUTPUT", `[0,"x",1]`), hosttest.Frame("DONE", `""`)} {
		c := hosttest.Case{Play: func(w *hosttest.Worker) { w.Raw(message); w.Stay() }}
		ours, theirs := net.Pipe()
		p := &played{conn: theirs, over: make(chan struct{})}
		go c.Play(&hosttest.Worker{Process: p, In: theirs, Out: theirs})
		s := host.Session{Inputs: host.NewList(), Outputs: &outputs{err: errors.New("the disk is full")}}
		if e := s.Run(t.Context(), &wire{Conn: ours}); e.End != host.Error || !strings.Contains(e.Detail, "the disk is full") {
			t.Errorf("%q: it ended as %+v", message, e)
		}
		close(p.over)
	}
}

// A worker asks for what would be a reply of many times its size.
// An input is lost when the worker has tried all of its replicas, one after the other or at once.
func TestInputsWithoutAReplicaAreLost(t *testing.T) {
	for number, want := range map[int][]int{53: nil, 54: {1}, 55: nil, 56: {0}, 57: {0}, 58: nil} {
		for _, c := range hosttest.Cases() {
			if c.Number != number {
				continue
			}
			if e, _, _ := play(t, &c); !slices.Equal(e.Lost, want) {
				t.Errorf("case %d, %s: inputs %v are lost, want %v", c.Number, c.Name, e.Lost, want)
			}
		}
	}
}

func TestALargeReply(t *testing.T) {
	inputs := make([]host.Input, 60_000)
	for i := range inputs {
		inputs[i] = host.Input{Label: i, Replicas: []string{fmt.Sprintf("disco://host/disco/%d/%s", i, strings.Repeat("x", 30))}}
	}
	c := hosttest.Case{Play: func(w *hosttest.Worker) {
		for range 2 {
			w.Send("INPUT", `""`)
			name, body := w.Next()
			var reply [2]json.RawMessage
			var rows [][]any
			if err := json.Unmarshal([]byte(body), &reply); err != nil || name != "INPUT" {
				w.Fail(fmt.Sprintf("%s: %v", name, err))
			}
			if err := json.Unmarshal(reply[1], &rows); err != nil || len(rows) != len(inputs) {
				w.Fail(fmt.Sprintf("%d rows: %v", len(rows), err))
			}
		}
		w.Send("INPUT", `["include",[`+strings.Repeat("77,", 400_000)+`77]]`)
		w.Stay()
	}}
	ours, theirs := net.Pipe()
	p := &played{conn: theirs, over: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		c.Play(&hosttest.Worker{Process: p, In: theirs, Out: theirs, Failed: func(text string) { t.Error(text) }})
	})
	s := host.Session{Inputs: host.NewList(inputs...), Outputs: &outputs{}}
	if e := s.Run(t.Context(), &wire{Conn: ours}); e.End != host.Error || !strings.Contains(e.Detail, "a reply has at most") {
		t.Errorf("it ended as %+v", e)
	}
	close(p.over)
	wg.Wait()
}

// hostile writes large messages without having them, and looks at the memory of the process while
// they are read.
type hostile struct {
	messages []string // a name, a length, and a body; … stands for as many digits as the length needs
	left     int      // of the body
	tail     string
	pending  string
	peak     uint64
	wrote    int
}

func (h *hostile) look() {
	objects := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(objects)
	h.peak = max(h.peak, objects[0].Value.Uint64())
}

func (h *hostile) Read(b []byte) (int, error) {
	switch {
	case h.pending != "":
		n := copy(b, h.pending)
		h.pending = h.pending[n:]
		return n, nil
	case h.left > 0:
		n := min(h.left, len(b), 1<<20)
		for i := range b[:n] {
			b[i] = '1'
		}
		h.left -= n
		if h.look(); h.left == 0 {
			h.pending = h.tail
		}
		return n, nil
	case len(h.messages) == 0:
		return 0, io.EOF
	}
	var size int
	name, rest, _ := strings.Cut(h.messages[0], " ")
	length, rest, _ := strings.Cut(rest, " ")
	head, tail, _ := strings.Cut(rest, "…")
	h.messages = h.messages[1:]
	_, _ = fmt.Sscan(length, &size)
	h.pending, h.tail, h.left = fmt.Sprintf("%s %d %s", name, size, head), tail+"\n", size-len(head)-len(tail)
	if h.left == 0 {
		h.pending += h.tail
	}
	return h.Read(b)
}

func (h *hostile) Write(b []byte) (int, error) {
	h.look()
	h.wrote += len(b)
	return len(b), nil
}
func (h *hostile) SetReadDeadline(time.Time) error  { return nil }
func (h *hostile) SetWriteDeadline(time.Time) error { return nil }
func (h *hostile) Exited() <-chan struct{}          { return nil }

func TestAHostileWorkerCostsAtMost128MiB(t *testing.T) {
	inputs := make([]host.Input, 5000)
	for i := range inputs {
		inputs[i] = host.Input{Replicas: []string{"raw://" + strings.Repeat("x", 4000)}}
	}
	list := host.NewList(inputs...)
	runtime.GC()
	before := &hostile{}
	before.look()
	h := &hostile{messages: []string{
		`MSG 20971520 "…"`, `INPUT 2 ""`, `INPUT 2 ""`, `ERROR 104857600 "…"`,
	}}
	s := host.Session{Inputs: list, Outputs: &outputs{}}
	e := s.Run(t.Context(), h)
	if e.End != host.Error || !strings.HasSuffix(e.Detail, "bytes more]") || len(e.Detail) > host.MaxWords+100 {
		t.Errorf("it ended as %v: %.100s", e.End, e.Detail)
	}
	if h.wrote < 40_000_000 {
		t.Errorf("the replies have %d bytes", h.wrote)
	}
	cost := int64(h.peak) - int64(before.peak)
	t.Logf("it cost %d MiB", cost>>20)
	if cost > 128<<20 {
		t.Errorf("it cost %d MiB", cost>>20)
	}
}

// FuzzFrames writes anything to a session in two pieces, and the same in one. Both end alike, and
// each reply is a whole one.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"", "PING 2 \"\"\n", "PING +2 \"\"\nDONE 2 \"\"\n", "MSG 6 \"\xc3\xa4\xc3\xb6\"\n", "HelloWorld! 2", " PING 2 \"\"\n", "PING -1 \"\"", "MSG 104857601 ",
		`WORKER 28 {"version":"1.1","pid":4711}` + "\n", `INPUT 19 ["include",[1,0]]` + "\n" + `INPUT 15 ["exclude",[1]]`, `INPUT_ERR 7 [0,[0]]` + "\n" + `INPUT_ERR 9 [0,[1,0]]` + "\n",
		`OUTPUT 9 [0,"x",1]` + "\n" + `ERROR 3 "a"` + "\n", `OUTPUT 12 [-3,"\u00e",1]` + "\n", "TASK 2 \"\"\nFATAL 8 \"\\ud83dx\"\n", "PING 4 [[]]\nPING 2 \"\"\r\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		at = min(max(at, 0), len(text))
		whole, replies := fuzzed(t, text, nil)
		parts, again := fuzzed(t, text[:at], text[at:])
		if !reflect.DeepEqual(whole, parts) || !bytes.Equal(replies, again) {
			t.Errorf("in one piece: %+v, %q\nin two: %+v, %q", whole, replies, parts, again)
		}
		for rest := replies; len(rest) > 0; {
			name, after, _ := bytes.Cut(rest, []byte(" "))
			var n int
			if _, err := fmt.Sscanf(string(after[:min(len(after), 20)]), "%d ", &n); err != nil {
				t.Fatalf("a reply %q has no length", rest)
			}
			_, body, _ := bytes.Cut(after, []byte(" "))
			if len(body) <= n || body[n] != '\n' || !json.Valid(body[:n]) || bytes.ContainsFunc(body[:n], func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("the reply %s has the body %q", name, body)
			}
			rest = body[n+1:]
		}
	})
}

// pieces is a worker that writes some pieces, exits, and takes all replies.
type pieces struct {
	left    [][]byte
	replies bytes.Buffer
}

func (p *pieces) Read(b []byte) (int, error) {
	for len(p.left) > 0 && len(p.left[0]) == 0 {
		p.left = p.left[1:]
	}
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[0])
	p.left[0] = p.left[0][n:]
	return n, nil
}
func (p *pieces) Write(b []byte) (int, error)      { return p.replies.Write(b) }
func (p *pieces) SetReadDeadline(time.Time) error  { return nil }
func (p *pieces) SetWriteDeadline(time.Time) error { return nil }
func (p *pieces) Exited() <-chan struct{}          { return nil }

func fuzzed(t *testing.T, texts ...[]byte) (host.Ending, []byte) {
	p := &pieces{}
	for _, text := range texts {
		p.left = append(p.left, bytes.Clone(text))
	}
	list := host.NewList(host.Input{Replicas: []string{"http://a", "http://b"}}, host.Input{Label: host.AllLabels, Replicas: []string{"raw://ä"}, Busy: true})
	s := host.Session{Settings: host.Settings{Hold: time.Nanosecond}, Task: host.Task{Stage: "ä"}, Inputs: list, Outputs: &outputs{}}
	return s.Run(t.Context(), p), p.replies.Bytes()
}
