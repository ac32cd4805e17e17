package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func (d *Driver) items() int  { return cmp.Or(d.Items, plan.MaxItems) }
func (d *Driver) fanIn() int  { return cmp.Or(d.FanIn, 10_000) }
func (d *Driver) fanOut() int { return cmp.Or(d.FanOut, 100_000) }

// A meter takes the time of turns and holds them to their budget.
type meter struct {
	w       *world
	began   time.Time
	turns   int
	longest time.Duration
	most    int // tasks that one turn queued
}

func (w *world) meter() *meter { return &meter{w: w, began: time.Now()} }

func (m *meter) turn(n *node, t protocol.Turn) protocol.Turned {
	m.w.Helper()
	before := time.Now()
	did := n.turn(t)
	m.turns++
	m.longest = max(m.longest, time.Since(before))
	if m.most = max(m.most, did.Queued); did.Queued > cmp.Or(t.Budget, protocol.DefaultBudget) {
		m.w.Errorf("a turn queued %d tasks, its budget is %d", did.Queued, cmp.Or(t.Budget, protocol.DefaultBudget))
	}
	return did
}

func (m *meter) report(what string) {
	m.w.Helper()
	m.w.Logf("%s: %v in %d turns, the longest %v; at most %d tasks queued by one", what,
		time.Since(m.began).Round(time.Millisecond), m.turns, m.longest.Round(time.Microsecond), m.most)
}

var scaleCases = []testCase{
	{"invariant 7: a task with many parents starts when the last has finished, with all their outputs", func(w *world) {
		parents := w.d.fanIn()
		spec := &plan.Spec{Name: "nightly"}
		join := plan.TaskSpec{Name: "join"}
		for i := range parents {
			t := spec.Add(task(fmt.Sprint("p", i)))
			join.Needs = append(join.Needs, t.Name)
		}
		spec.Add(join)
		p := w.submitSpec(spec)
		n := w.node("n1")
		m := w.meter()
		var ended []protocol.Ending
		var last protocol.ClaimedTask
		for finished := 0; finished < parents || last.Name != "join"; {
			did := m.turn(n, protocol.Turn{Ended: ended, Slots: 256, Start: true})
			finished += len(ended)
			if len(ended) == 0 && len(did.Claimed) == 0 && !did.More {
				w.Fatalf("nothing is left to claim after %d of %d parents", finished, parents)
			}
			ended = nil
			for _, c := range did.Claimed {
				if last = c; c.Name != "join" {
					ended = append(ended, succeed(c, `"0123456789"`))
				} else if finished < parents {
					w.Fatalf("invariant 1: the join was claimed after %d of %d parents", finished, parents)
				}
			}
		}
		m.report(fmt.Sprintf("fan-in of %d", parents))
		in := must(w.s.Inputs(w.ctx, last.Task))(w)
		w.equal("inputs", []any{len(in), in[0].Name, in[parents-1].Name, string(in[parents-1].Output)},
			[]any{parents, "p0", fmt.Sprint("p", parents-1), `"0123456789"`})
		n.end(ok(last))
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a claim costs what it takes, however high the queue's limit is", func(w *world) {
		const queues = 64
		var specs []plan.TaskSpec
		for i := range queues {
			wide := w.queue(fmt.Sprint("wide", i), plan.MaxThreads).Name
			specs = append(specs, in(wide, fmt.Sprint("a", i)), in(wide, fmt.Sprint("b", i)))
		}
		w.submit(specs...)
		n := w.node("n1")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		claimed := n.turn(protocol.Turn{Slots: queues + 1}).Claimed
		runtime.ReadMemStats(&after)
		w.equal("claimed", len(claimed), queues+1)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			w.Errorf("a claim of %d tasks took %d MiB of memory", queues+1, used>>20)
		}
	}},
	{"more outputs than a task is given are not read to say so", func(w *world) {
		const count = plan.MaxInputs/plan.MaxOutput + 1
		p := w.submit(
			each("copy", plan.Foreach{List: ordinals(count)}), task("after", "copy"), each("with", list("x"), "copy"),
			each("again", plan.Foreach{Value: "needs.copy"}, "copy"))
		n := w.node("n1")
		n.end()
		large := `"` + strings.Repeat("x", plan.MaxOutput-2) + `"`
		for range count {
			n.end(succeed(n.claim(1)[0], large))
		}
		again := w.named(p, "again")
		w.equal("a list of it", []any{again.State(), again.Reason, strings.Contains(again.Detail, "write files")}, []any{"failed", plan.ReasonInput, true})
		for _, c := range n.take("after", "with[0]") {
			w.equal("by reference", c.ByReference, true)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := w.s.Inputs(w.ctx, c.Task)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, plan.ErrTooMuchInput) {
				w.Errorf("the inputs of %s: got error %v, want ErrTooMuchInput", c.Name, err)
			}
			if read := after.TotalAlloc - before.TotalAlloc; read > plan.MaxOutput {
				w.Errorf("%d MiB were read to refuse the inputs of %s", read>>20, c.Name)
			}
		}
		id := w.all(store.TaskQuery{Plan: p.ID, Name: "copy"})[0].ID
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		t, err := w.s.Task(w.ctx, id)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, plan.ErrTooMuchOutput) || !strings.Contains(err.Error(), "copy") {
			w.Errorf("the whole task: got error %v, want ErrTooMuchOutput and its name", err)
		}
		w.equal("the task without it", []any{t.Name, t.State(), t.Items, len(t.Output)}, []any{"copy", "succeeded", count, 0})
		if read := after.TotalAlloc - before.TotalAlloc; read > plan.MaxOutput {
			w.Errorf("%d MiB were read to refuse the output", read>>20)
		}
	}},
	{"invariant 7: a task with many children releases them within its turns' budgets", func(w *world) {
		children := w.d.fanOut()
		spec := &plan.Spec{Name: "nightly"}
		spec.Add(task("root"))
		for i := range children {
			spec.Add(task(fmt.Sprint("c", i), "root"))
		}
		p := w.submitSpec(spec)
		n := w.node("n1")
		m := w.meter()
		did := m.turn(n, protocol.Turn{Ended: []protocol.Ending{succeed(n.one(), `"of root"`)}})
		queued := did.Queued
		for ; did.More; queued += did.Queued {
			did = m.turn(n, protocol.Turn{})
		}
		m.report(fmt.Sprintf("fan-out of %d", children))
		w.equal("queued", []any{queued, w.plan(p.ID).Counts.Queued}, []any{children, children})
		c := n.claim(1)[0]
		w.equalJSON("params", c.Params, `{"needs":{"root":"of root"},"args":["of root"]}`)
	}},
}
