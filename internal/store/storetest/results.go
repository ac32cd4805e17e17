package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A ResultsDriver is what the suite of store.Results is run on.
type ResultsDriver struct {
	Driver

	// Forgets is set by drivers where a task that is queued again has no results, since another program may run it and put none.
	Forgets bool
	// Place says where a task's result lies, "document" or "file", or that it is "null". Given by drivers to which protocol.GFS means something.
	Place func(t testing.TB, s store.Store, id plan.TaskID, stream plan.Stream) string
	// Rows counts what is kept of results beside tasks, whether anything leads to it or not. Nil: nothing is.
	Rows func(t testing.TB, s store.Store) int
}

// Results runs the suite of store.Results.
func Results(t *testing.T, d ResultsDriver) {
	for _, c := range resultCases {
		t.Run(c.name, func(t *testing.T) {
			w := &resultWorld{world: newWorld(t, &d.Driver), driver: &d}
			c.run(w)
			w.check()
		})
	}
}

type resultWorld struct {
	*world
	driver *ResultsDriver
}

var resultCases = []struct {
	name string
	run  func(w *resultWorld)
}{
	{"what was put is read back, whatever its size", resultSizes},
	{"large ones lie where the mode says", resultPlaces},
	{"null is not empty", resultNull},
	{"what is no UTF-8 can be kept", resultNotUTF8},
	{"what comes with an ending is kept in the same write", resultAlong},
	{"a claim that is lost keeps nothing", resultFence},
	{"another put replaces the first", resultReplaced},
	{"a put that died is made again", resultDeaths},
	{"a reader gets all of what it opened, or an error", resultReader},
	{"results go with their task", resultDeleted},
	{"a retry drops them", resultRetried},
}

const resultChunk = 255 << 10 // of GridFS, and of others

// claimed returns a task of no plan that a node runs.
func (w *resultWorld) claimed() (*node, protocol.ClaimedTask) {
	w.Helper()
	w.no(w.s.AddTasks(w.ctx, plan.PlanID{}, []plan.Task{w.newTask(w.queue("results", 0), "a")}))
	n := w.node("n1")
	return n, n.one()
}

func section(text string) *io.SectionReader {
	return io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
}

func (w *resultWorld) put(c protocol.Claim, stdout, stderr string, mode protocol.GFS) {
	w.Helper()
	w.no(w.s.(store.Results).PutResults(w.ctx, c, section(stdout), section(stderr), mode))
}

// keeps wants a result to be that text.
func (w *resultWorld) keeps(id plan.TaskID, stream plan.Stream, want string) {
	w.Helper()
	r, size, err := w.s.(store.Results).OpenResult(w.ctx, id, stream)
	w.no(err)
	got, err := io.ReadAll(r)
	w.no(errors.Join(err, r.Close()))
	if size != int64(len(want)) || string(got) != want {
		w.Errorf("stream %d: %d bytes, said to be %d, want %d; they differ from byte %d on", stream, len(got), size, len(want), differ(string(got), want))
	}
}

func (w *resultWorld) none(id plan.TaskID, stream plan.Stream) {
	w.Helper()
	r, size, err := w.s.(store.Results).OpenResult(w.ctx, id, stream)
	w.no(err)
	got, err := io.ReadAll(r)
	w.no(errors.Join(err, r.Close()))
	if size != -1 || len(got) > 0 {
		w.Errorf("stream %d: size %d, %d bytes; want null", stream, size, len(got))
	}
}

func differ(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// rows wants so many rows or documents of results.
func (w *resultWorld) rows(when string, want int) {
	w.Helper()
	if w.driver.Rows != nil {
		w.equal("rows "+when, w.driver.Rows(w.T, w.s), want)
	}
}

// printed is a text of so many bytes, in which there are characters of one to four bytes at whatever place it is cut, but at its end.
func printed(size int) string {
	const line = "a line: é€𝄞ü\n"
	var b bytes.Buffer
	for i := 0; b.Len()+len(line)+8 <= size; i++ {
		fmt.Fprintf(&b, "%07x ", i)
		b.WriteString(line)
	}
	for b.Len() < size {
		b.WriteByte('.')
	}
	return b.String()
}

func resultSizes(w *resultWorld) {
	_, c := w.claimed()
	euros := strings.Repeat("€", resultChunk) // which no chunk has a whole number of, if it begins with another byte
	for _, text := range []string{
		"", "x", "a\x00b\n", printed(resultChunk - 1), printed(resultChunk), printed(resultChunk + 1),
		euros[:2*resultChunk-resultChunk%3], "x" + euros[:resultChunk/3*3], "xy" + euros[:resultChunk/3*3+3],
	} {
		for _, mode := range []protocol.GFS{protocol.GFSAlways, protocol.GFSAuto, protocol.GFSNever} {
			w.put(c.Claim, text, "of "+text, mode)
			w.keeps(c.Task, plan.Stdout, text)
			w.keeps(c.Task, plan.Stderr, "of "+text)
		}
	}
}

func resultPlaces(w *resultWorld) {
	_, c := w.claimed()
	const most = 15 << 20
	large := printed(40 << 20)
	sized := func(n int) string {
		cut := n
		for !utf8.RuneStart(large[cut]) {
			cut--
		}
		return large[:cut] + "..."[:n-cut]
	}
	for _, x := range []struct {
		name           string
		mode           protocol.GFS
		stdout, stderr string
		out, err       string
	}{
		{"15 MiB together, but one byte", protocol.GFSAuto, sized(most - 5), "1234", "document", "document"},
		{"15 MiB together", protocol.GFSAuto, "x", sized(most - 1), "document", "document"},
		{"a byte more", protocol.GFSAuto, "", sized(most + 1), "file", "file"},
		{"a byte more, not all of it on one stream", protocol.GFSAuto, "x", sized(most), "file", "document"},
		{"40 MiB", protocol.GFSAuto, large, "", "file", "document"},
		{"always", protocol.GFSAlways, "", "", "file", "file"},
		{"never", protocol.GFSNever, "x", "", "document", "document"},
	} {
		began := time.Now()
		w.put(c.Claim, x.stdout, x.stderr, x.mode)
		w.keeps(c.Task, plan.Stdout, x.stdout)
		w.keeps(c.Task, plan.Stderr, x.stderr)
		w.Logf("%s: put and read in %v", x.name, time.Since(began).Round(time.Millisecond))
		if w.driver.Place != nil {
			w.equal(x.name+": stdout", w.driver.Place(w.T, w.s, c.Task, plan.Stdout), x.out)
			w.equal(x.name+": stderr", w.driver.Place(w.T, w.s, c.Task, plan.Stderr), x.err)
		}
	}
}

func resultNull(w *resultWorld) {
	n, c := w.claimed()
	w.none(c.Task, plan.Stdout)
	for _, mode := range []protocol.GFS{protocol.GFSAuto, protocol.GFSAlways} {
		w.put(c.Claim, "", "", mode)
		w.keeps(c.Task, plan.Stdout, "")
		w.keeps(c.Task, plan.Stderr, "")
	}
	w.no(w.s.(store.Results).PutResults(w.ctx, c.Claim, section("x"), nil, protocol.GFSAuto))
	n.end(ok(c))
	w.keeps(c.Task, plan.Stdout, "x")
	w.none(c.Task, plan.Stderr)
	_, _, err := w.s.(store.Results).OpenResult(w.ctx, plan.TaskID{ID: plan.NewID(time.Now())}, plan.Stdout)
	w.is(err, plan.ErrNotFound)
}

// printing is an ending that says what was printed.
func printing(e protocol.Ending, stdout, stderr []byte) protocol.Ending {
	e.Printed = &protocol.Printed{Stdout: stdout, Stderr: stderr}
	return e
}

func resultAlong(w *resultWorld) {
	for _, c := range []struct {
		name           string
		stdout, stderr []byte
		put            bool // another put came before
	}{
		{name: "nothing"},
		{name: "one stream", stdout: []byte("out\n")},
		{name: "both", stdout: []byte("out €\x00\n"), stderr: []byte("err")},
		{name: "nothing, where more was put before", put: true},
		{name: "one stream, where more was put before", stderr: []byte("err"), put: true},
	} {
		for _, end := range []func(protocol.ClaimedTask) protocol.Ending{ok, fail} {
			n, claimed := w.claimed()
			if c.put {
				w.put(claimed.Claim, printed(resultChunk+1), "before", protocol.GFSAuto)
			}
			stale := printing(end(claimed), []byte("stale"), []byte("stale"))
			stale.Attempt++
			w.equal(c.name+": lost", len(n.end(stale).Lost), 1)
			n.end(printing(end(claimed), c.stdout, c.stderr))
			for stream, want := range map[plan.Stream][]byte{plan.Stdout: c.stdout, plan.Stderr: c.stderr} {
				if want == nil {
					w.none(claimed.Task, stream)
				} else {
					w.keeps(claimed.Task, stream, string(want))
				}
			}
			again := printing(end(claimed), []byte("late"), []byte("late")) // as of an answer that was lost
			w.equal(c.name+": lost", len(n.end(again).Lost), 1)
			if c.stdout == nil {
				w.none(claimed.Task, plan.Stdout)
			} else {
				w.keeps(claimed.Task, plan.Stdout, string(c.stdout))
			}
		}
	}
	_, c := w.claimed()
	open := printing(giveBack(c), []byte("x"), nil)
	if _, err := w.s.Turn(w.ctx, protocol.Turn{Instance: w.node("n2").id, Ended: []protocol.Ending{open}}); err == nil {
		w.Error("a task that goes on has results")
	}
}

func resultNotUTF8(w *resultWorld) {
	_, c := w.claimed()
	for _, mode := range []protocol.GFS{protocol.GFSAuto, protocol.GFSAlways} {
		for _, text := range []string{
			"a\xffb", "\xe2\x82", strings.Repeat("x", resultChunk-1) + "\xe2\x82", strings.Repeat("\xff", resultChunk+2), printed(resultChunk-2) + "\xf0\x9d\x84x",
		} {
			w.put(c.Claim, text, "", mode)
			r, size, err := w.s.(store.Results).OpenResult(w.ctx, c.Task, plan.Stdout)
			w.no(err)
			got, err := io.ReadAll(r)
			w.no(errors.Join(err, r.Close()))
			want := strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\ufffd", "")
			if string(got) != text && strings.ReplaceAll(string(got), "\ufffd", "") != want || size != int64(len(got)) {
				w.Errorf("%.20q came back as %.20q, %d bytes, said to be %d", text, got, len(got), size)
			}
		}
	}
}

// keepsQueued is keeps of a task that was queued again since its results were put.
func (w *resultWorld) keepsQueued(id plan.TaskID, stream plan.Stream, want string) {
	w.Helper()
	if w.driver.Forgets {
		w.none(id, stream)
	} else {
		w.keeps(id, stream, want)
	}
}

func resultFence(w *resultWorld) {
	n, c := w.claimed()
	w.put(c.Claim, printed(resultChunk+1), "err", protocol.GFSAlways)
	before := 0
	if w.driver.Rows != nil {
		before = w.driver.Rows(w.T, w.s)
	}
	keeps := w.keeps
	lost := func(what string, stale protocol.Claim) {
		w.Helper()
		err := w.s.(store.Results).PutResults(w.ctx, stale, section("stale"), section(printed(resultChunk+1)), protocol.GFSAlways)
		if !errors.Is(err, plan.ErrClaimLost) {
			w.Errorf("%s: %v, want ErrClaimLost", what, err)
		}
		keeps(c.Task, plan.Stderr, "err")
		w.rows("after "+what, before)
	}
	stale := c.Claim
	stale.Attempt++
	lost("a claim of another attempt", stale)
	n.end(giveBack(c))
	keeps = w.keepsQueued
	lost("a claim that was given back", c.Claim)
	again := n.one()
	if again.Token == c.Token {
		w.Fatal("two claims with one token")
	}
	lost("a claim before the present one", c.Claim)
	n.end(ok(again))
	lost("a claim of a task that has ended", again.Claim)
}

func resultReplaced(w *resultWorld) {
	n, c := w.claimed()
	w.put(c.Claim, printed(3*resultChunk), "first", protocol.GFSAlways)
	n.end(later(c, time.Second))
	w.pass(2 * time.Second)
	n.sweep()
	second := n.one()
	w.keepsQueued(c.Task, plan.Stderr, "first")
	for range 2 { // as of an answer that was lost
		w.put(second.Claim, "second", "", protocol.GFSAlways)
		w.keeps(c.Task, plan.Stdout, "second")
		w.keeps(c.Task, plan.Stderr, "")
	}
	once := w.keptRows()
	w.put(second.Claim, printed(2*resultChunk), "", protocol.GFSAlways)
	w.put(second.Claim, "second", "", protocol.GFSAlways)
	w.rows("after the last of many", once)
	n.end(ok(second))
	w.keeps(c.Task, plan.Stdout, "second")
}

func resultDeaths(w *resultWorld) {
	_, c := w.claimed()
	w.put(c.Claim, "old", printed(resultChunk+1), protocol.GFSAlways)
	text := printed(resultChunk + 2)
	w.put(c.Claim, text, "err", protocol.GFSAlways)
	w.deaths(func(s store.Store) error {
		return s.(store.Results).PutResults(w.ctx, c.Claim, section(text), section("err"), protocol.GFSAlways)
	}, func() {
		w.keeps(c.Task, plan.Stdout, text) // the one or the other
		w.put(c.Claim, text, "err", protocol.GFSAlways)
	})
}

// deaths has put die at its first write, at its second and so on, until it makes no more. After each, again makes it once more, and as much is kept as before.
func (w *resultWorld) deaths(put func(store.Store) error, again func()) {
	w.Helper()
	want := w.keptRows()
	for at := 1; ; at++ {
		calls := 0
		died := errors.New("died")
		s := w.reopen(func(bool) error {
			if calls++; calls >= at {
				return died
			}
			return nil
		})
		err := put(s)
		again()
		w.rows(fmt.Sprintf("after a death at call %d", at), want)
		if err == nil {
			return
		}
		if at > 100 {
			w.Fatal("it makes more than 100 writes")
		}
	}
}

func resultReader(w *resultWorld) {
	_, c := w.claimed()
	text := printed(40 * resultChunk)
	w.put(c.Claim, text, "", protocol.GFSAlways)
	r, _, err := w.s.(store.Results).OpenResult(w.ctx, c.Task, plan.Stdout)
	w.no(err)
	head := make([]byte, 100)
	_, err = io.ReadFull(r, head)
	w.no(err)
	w.put(c.Claim, "another", "", protocol.GFSAlways)
	rest, err := io.ReadAll(r)
	if all := string(head) + string(rest); err == nil && all != text || !strings.HasPrefix(text, all) {
		w.Errorf("a reader got %d bytes and %v of a result of %d bytes that was replaced", len(all), err, len(text))
	}
	w.no(r.Close())
	w.keeps(c.Task, plan.Stdout, "another")
}

// inPlan puts results for the one task of a plan, and ends it.
func (w *resultWorld) inPlan(n *node, how func(protocol.ClaimedTask) protocol.Ending) (plan.Plan, plan.TaskID) {
	w.Helper()
	p := w.submit(task("a"))
	c := n.one()
	w.put(c.Claim, printed(resultChunk+1), "err", protocol.GFSAlways)
	n.end(how(c))
	w.keeps(c.Task, plan.Stderr, "err")
	return p, c.Task
}

func resultDeleted(w *resultWorld) {
	n := w.node("n1")
	p, id := w.inPlan(n, ok)
	more := must(w.s.DeletePlan(w.ctx, p.ID, 100))(w.world)
	for more {
		more = must(w.s.DeletePlan(w.ctx, p.ID, 100))(w.world)
	}
	w.rows("after DeletePlan", 0)
	_, _, err := w.s.(store.Results).OpenResult(w.ctx, id, plan.Stdout)
	w.is(err, plan.ErrNotFound)
	w.inPlan(n, ok)
	w.pass(2 * time.Hour)
	w.equal("plans pruned", w.prune(time.Hour), 1)
	w.rows("after Prune", 0)
}

func resultRetried(w *resultWorld) {
	n := w.node("n1")
	p, id := w.inPlan(n, fail)
	w.no(w.tryRetry(p.ID, rules.Ask{Tasks: []plan.TaskID{id}}))
	w.none(id, plan.Stdout)
	w.none(id, plan.Stderr)
	w.rows("after Retry", 0)
	c := n.one()
	w.put(c.Claim, "again", "", protocol.GFSAuto)
	n.end(ok(c))
	w.keeps(id, plan.Stdout, "again")
}
