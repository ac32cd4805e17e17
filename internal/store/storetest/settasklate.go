package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A changing is a task of no plan that waits, and a change of it.
type changing struct {
	id     plan.TaskID
	change rules.TaskChange
	end    []protocol.Ending // of its parent, which the node has
}

// changings are the ways in which a task waits that is changed. Each is made with the claims of a node.
var changings = []struct {
	name string
	make func(w *world, n *node, t plan.Task) changing
}{
	{"queued", func(w *world, _ *node, t plan.Task) changing {
		w.plain(t)
		return changing{}
	}},
	{"queued, and held again", func(w *world, _ *node, t plan.Task) changing {
		w.plain(t)
		return changing{change: rules.TaskChange{NotBefore: w.in(time.Hour)}}
	}},
	{"held by an instant, and queued", func(w *world, _ *node, t plan.Task) changing {
		t.NotBefore = *w.in(time.Hour)
		w.plain(t)
		return changing{change: rules.TaskChange{NotBefore: new(time.Time)}}
	}},
	{"held by an instant that has passed, and held again", func(w *world, _ *node, t plan.Task) changing {
		t.NotBefore = *w.in(time.Minute)
		w.plain(t)
		w.pass(2 * time.Minute)
		return changing{change: rules.TaskChange{NotBefore: w.in(time.Hour)}}
	}},
	{"held by its parent", func(w *world, n *node, t plan.Task) changing {
		w.plain(t)
		return changing{end: []protocol.Ending{ok(w.parentOf(n, t))}}
	}},
	{"held by its parent, and by an instant", func(w *world, n *node, t plan.Task) changing {
		w.plain(t)
		return changing{change: rules.TaskChange{NotBefore: w.in(time.Hour)}, end: []protocol.Ending{ok(w.parentOf(n, t))}}
	}},
	{"held by an instant after its parent, and queued", func(w *world, n *node, t plan.Task) changing {
		t.NotBefore = *w.in(time.Hour)
		w.plain(t)
		n.end(ok(w.parentOf(n, t)))
		return changing{change: rules.TaskChange{NotBefore: new(time.Time)}}
	}},
	{"held until its next attempt, and queued", func(w *world, n *node, t plan.Task) changing {
		w.plain(t)
		n.end(later(n.holdOne(t.Name), time.Hour))
		return changing{change: rules.TaskChange{NotBefore: new(time.Time)}}
	}},
}

// parentOf has the node claim the parent of a task.
func (w *world) parentOf(n *node, t plan.Task) protocol.ClaimedTask {
	w.Helper()
	return n.holdOne("parent-of-" + t.Name)
}

// changing makes task number k of those that wait so.
func (w *world) changing(way int, n *node, k int) changing {
	w.Helper()
	q := w.queue("exec", 0)
	t := w.newTask(q, fmt.Sprint("t", k))
	t.Params, t.Timeout, t.OnLost = json.RawMessage(`{"v":1}`), time.Minute, plan.OnLostRetry
	switch way {
	case 4, 5, 6:
		parent := w.newTask(q, "parent-of-"+t.Name)
		w.plain(parent)
		t.Needs = []plan.TaskID{parent.ID}
	}
	c := changings[way].make(w, n, t)
	timeout := 2 * time.Minute
	c.id, c.change.Params, c.change.Timeout = t.ID, json.RawMessage(`{"v":2}`), &timeout
	return c
}

// whole runs the task, which a node may have already, and fails the test unless the task runs with
// all of the change, if it was made, or with nothing of it. unknown says that either is right.
func (w *world) whole(what string, c changing, n *node, made, unknown bool) {
	w.Helper()
	early := c.change.NotBefore != nil && !c.change.NotBefore.IsZero()
	got, claimed := n.holding[c.id]
	if claimed && made && early {
		w.Errorf("%s: it was claimed before its new instant", what)
	}
	for try := 0; try < 2 && !claimed; try++ {
		if try > 0 {
			w.pass(2 * time.Hour)
		}
		n.sweep()
		if t := w.task(c.id); t.Status == plan.Held && t.NotBefore.IsZero() {
			w.Errorf("%s: it is held by nothing", what)
		}
		n.claim(9)
		got, claimed = n.holding[c.id]
	}
	if !claimed {
		w.Fatalf("%s: it does not run: %+v", what, w.task(c.id))
	}
	is := string(lookup(w, got.Params, "v")) + " " + got.Timeout.String()
	want := []string{"1 1m0s", "2 2m0s"}
	if !unknown {
		want = want[:1]
		if made {
			want[0] = "2 2m0s"
		}
	}
	if !slices.Contains(want, is) {
		w.Errorf("%s: it runs with %s, want %v", what, is, want)
	}
	var ended []protocol.Ending
	for _, c := range n.holding {
		ended = append(ended, ok(c))
	}
	n.end(ended...)
}

// A gate holds back one write of a handle.
type gate struct {
	mu      sync.Mutex
	at      int // which write; 0: none
	reached chan struct{}
	release chan struct{}
}

func (g *gate) hook(written bool) error {
	g.mu.Lock()
	if !written {
		g.at--
	}
	held := !written && g.at == 0
	g.mu.Unlock()
	if held {
		close(g.reached)
		<-g.release
	}
	return nil
}

// late has do held back before its write number k while others do something. It reports whether do
// has such a write.
func (g *gate) late(k int, do, others func()) (met bool) {
	g.mu.Lock()
	g.at, g.reached, g.release = k, make(chan struct{}), make(chan struct{})
	g.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-g.reached:
		met = true
		others()
	case <-done:
	}
	close(g.release)
	<-done
	return met
}

var setTaskLateCases = []testCase{
	{"whatever write of a change fails, the task runs with all of the change or with nothing of it", func(w *world) {
		var k killer
		s, n, tasks := w.reopen(k.hook), w.node("n1"), 0
		for way := range changings {
			for how, d := range deaths {
				for at, fails := 1, true; fails; at++ {
					c := w.changing(way, n, tasks)
					tasks++
					k = killer{at: at, after: d.after, dies: d.dies}
					err := s.SetTask(w.ctx, c.id, c.change)
					if fails = k.tripped; errors.Is(err, errKilled) && !d.dies {
						err = s.SetTask(w.ctx, c.id, c.change)
					}
					k = killer{}
					if err != nil && !errors.Is(err, errKilled) {
						w.Errorf("%s, %s %d: %v", changings[way].name, d.name, at, err)
					}
					n.end(c.end...)
					w.whole(fmt.Sprint(changings[way].name, ", ", deaths[how].name, " ", at), c, n, err == nil, err != nil)
				}
			}
		}
	}},
	{"a change that arrives late, after others have done something, is made whole or not at all", func(w *world) {
		if w.d.OneWriter {
			return // nobody gets in between two writes
		}
		var g gate
		s, n, tasks := w.reopen(g.hook), w.node("n1"), 0
		for way := range changings {
			for met, at := true, 1; met; at++ {
				c := w.changing(way, n, tasks)
				tasks++
				var err error
				met = g.late(at, func() { err = s.SetTask(w.ctx, c.id, c.change) }, func() {
					n.turn(protocol.Turn{Ended: c.end, Slots: 9, Start: true})
					n.sweep()
					c.end = nil
				})
				if err != nil && !errors.Is(err, plan.ErrConflict) {
					w.Errorf("%s, held before write %d: %v", changings[way].name, at, err)
				}
				n.end(c.end...)
				w.whole(fmt.Sprint(changings[way].name, ", held before write ", at), c, n, err == nil, false)
			}
		}
	}},
	{"a node that stands still meets a change: a claim has all of it or nothing", func(w *world) {
		if w.d.OneWriter {
			return
		}
		var g gate
		s, tasks := w.reopen(g.hook), 0
		n := w.nodeOn(s, "n1")
		for way := range changings {
			for _, sweeps := range []bool{false, true} {
				for met, at := true, 1; met; at++ {
					c := w.changing(way, n, tasks)
					tasks++
					err := errors.New("nobody called")
					met = g.late(at, func() {
						if sweeps {
							n.end(c.end...)
							n.sweep()
						} else {
							n.turn(protocol.Turn{Ended: c.end, Slots: 9, Start: true})
						}
					}, func() { err = w.s.SetTask(w.ctx, c.id, c.change) })
					if met && err != nil && !errors.Is(err, plan.ErrConflict) {
						w.Errorf("%s, held before write %d: %v", changings[way].name, at, err)
					}
					w.whole(fmt.Sprint(changings[way].name, ", a node held before write ", at), c, n, err == nil, false)
				}
			}
		}
	}},
}
