package storetest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// Random walks let multiples of delay pass. Plans are kept for odd multiples of half of it, so that
// no deletion is at the instant of another event.
const (
	delay = 10 * time.Minute
	keep  = 3*delay + delay/2
)

// seededIDs mints the same ids for the same seed, so that a walk that is repeated orders its tasks as before.
func seededIDs(seed uint64) *plan.IDs {
	first := plan.ID{0: 0x70, 11: 1}
	binary.BigEndian.PutUint32(first[4:8], uint32(seed)) // walks do not meet: the seeds of a run follow each other
	return plan.SameIDs(first)
}

// submit begins to submit a small plan. It leaves out tasks of some plans, and does not make some
// ready.
func (w *walker) submit() {
	if len(w.plans) > 6 {
		return
	}
	spec := &plan.Spec{Name: "walk", Keep: keep * time.Duration(w.r.IntN(3)), Params: map[string]json.RawMessage{"x": json.RawMessage("1.50")}}
	if w.chance(4) {
		spec.OnFailure = plan.Stop
	}
	if w.chance(4) {
		spec.By, spec.Source = "somebody", "/srv/walk.yaml"
		spec.File = plan.File{Text: "name: walk\n", Dir: "/srv"}
	}
	if w.seen%3 == 1 { // without a chance, so that other steps of a seed stay as they were
		spec.Timeout = delay*time.Duration(1+w.seen%4) + delay/2
	}
	shape := ""
	for k := range 1 + w.r.IntN(6) {
		t := w.taskSpec(spec, k)
		shape += fmt.Sprintf(" %s%v%v", t.Name, t.When, t.Needs)
		if t.Foreach != nil {
			shape += fmt.Sprintf("*%s%s%s%s%s", t.Foreach.List, t.Foreach.Value, t.Foreach.Lines, t.Foreach.Glob, strings.Join(t.Foreach.Each, ","))
		}
		spec.Tasks = append(spec.Tasks, t)
	}
	shape += w.addFinally(spec)
	w.seen++
	first := plan.PlanID{ID: w.newID()}
	for range spec.Tasks {
		w.newID() // which the tasks get
	}
	p, tasks, err := compiler.Again(spec, first, w.clock.Now(), func(n compiler.QueueNeed) (plan.QueueID, error) { return w.queue(n.Name, 0).ID, nil })
	w.no(err)
	if w.chance(4) {
		p.Key = fmt.Sprint("key ", w.seen)
	}
	p, err = w.s.CreatePlan(w.ctx, p)
	w.no(err)
	w.plans = append(w.plans, p.ID)
	w.rest[p.ID] = tasks
	w.say("create plan %d %v, kept for %v, timeout %v:%s", len(w.plans)-1, spec.OnFailure, spec.Keep, spec.Timeout, shape)
	for len(w.rest[p.ID]) > 0 && !w.chance(10) {
		w.addPart(p.ID)
	}
	if !w.chance(4) {
		w.done(w.s.Ready(w.ctx, p.ID), "ready: plan %d", len(w.plans)-1)
	}
}

// taskSpec makes the k-th task of a plan.
func (w *walker) taskSpec(spec *plan.Spec, k int) plan.TaskSpec {
	first := fmt.Sprint("list", w.seen)
	t := plan.TaskSpec{Name: fmt.Sprintf("t%d-%d", w.seen, k)}
	if k == 0 {
		t.Name = first
	}
	for _, other := range spec.Tasks {
		if w.chance(3) {
			t.Needs = append(t.Needs, other.Name)
		}
	}
	if whens := rules.Whens(); len(t.Needs) > 0 && w.chance(3) {
		t.When = whens[w.r.IntN(len(whens))]
	}
	t.ContinueOnError = w.chance(8)
	t.Estimate = time.Duration(w.r.IntN(3)) * time.Minute
	if w.chance(4) {
		t.Queue, t.Plugin = "narrow", "exec"
	}
	if w.chance(4) {
		t.OnLost, t.MaxRescues = []plan.OnLost{plan.OnLostRetry, plan.OnLostFail}[w.r.IntN(2)], w.r.IntN(2)
	}
	if w.chance(4) {
		t.Description, t.Timeout, t.Retry = "a task", time.Hour, plan.Retry{Attempts: 3, Delay: delay}
		t.Params = map[string]any{"run": "true", "n": w.r.IntN(100)}
	}
	if w.chance(8) {
		t.Approve, t.Queue, t.Plugin, t.Retry, t.Params = &plan.Approval{Question: "so?"}, "", "", plan.Retry{}, nil
		return t
	}
	var heads []string
	for _, other := range spec.Tasks {
		if other.Foreach != nil {
			heads = append(heads, other.Name)
		}
	}
	head, along := pickOne(w, heads)
	switch {
	case along && w.chance(3):
		t.Foreach = &plan.Foreach{Each: []string{head}}
		t.Needs = slices.DeleteFunc(t.Needs, func(name string) bool { return name == head })
	case !w.chance(4):
	case slices.Contains(t.Needs, first) && t.When == "":
		t.Foreach = &plan.Foreach{Value: "needs." + first}
	default:
		t.Foreach = w.foreach()
	}
	if t.Foreach != nil && !t.ContinueOnError && w.chance(3) {
		t.MaxFailures = []string{"0", "1", "50%"}[w.r.IntN(3)]
	}
	return t
}

// addFinally adds up to three tasks of finally to every second plan, and says which.
func (w *walker) addFinally(spec *plan.Spec) (shape string) {
	if w.chance(2) {
		return ""
	}
	var names []string
	for k := range 1 + w.r.IntN(3) {
		t := last(fmt.Sprintf("last%d-%d", w.seen, k), []plan.When{"", "", plan.AnyFailed, plan.AllSucceeded}[w.r.IntN(4)], some(w, names)...)
		if t.ContinueOnError = w.chance(8); w.chance(4) {
			t.Retry = plan.Retry{Attempts: 2, Delay: delay}
		}
		switch k := len(spec.Tasks) - 1; {
		case len(names) > 0 && spec.Tasks[k].Foreach != nil && w.chance(2):
			t.Foreach = &plan.Foreach{Each: []string{spec.Tasks[k].Name}}
			t.Needs = slices.DeleteFunc(t.Needs, func(name string) bool { return name == spec.Tasks[k].Name })
		case w.chance(3):
			t.Foreach = w.foreach()
		}
		if t.Foreach != nil && w.chance(3) {
			t.MaxFailures = "1"
		}
		shape += fmt.Sprintf(" finally %s%v%v", t.Name, t.When, t.Needs)
		if t.Foreach != nil {
			shape += fmt.Sprintf("*%s%s%s%s", t.Foreach.List, t.Foreach.Lines, t.Foreach.Glob, strings.Join(t.Foreach.Each, ","))
		}
		names, spec.Tasks = append(names, t.Name), append(spec.Tasks, t)
	}
	return shape
}

// foreach is one over a list, which may be empty, or over files.
func (w *walker) foreach() *plan.Foreach {
	return []*plan.Foreach{
		{List: json.RawMessage(`[1,2]`)}, {List: json.RawMessage(`["a",{"b":1}]`)}, {List: json.RawMessage(`[]`)}, {Lines: "lines"}, {Glob: "*.txt"},
	}[w.r.IntN(5)]
}

// addPart adds the next of the tasks that a submission left.
func (w *walker) addPart(p plan.PlanID) {
	rest := w.rest[p]
	n := 1 + w.r.IntN(len(rest))
	if w.done(w.s.AddTasks(w.ctx, p, rest[:n]), "add %d of the plan's %d tasks", n, len(rest)) {
		w.rest[p] = rest[n:]
	}
}

// addRest goes on with a submission that was left half-way, or adds again what was added.
func (w *walker) addRest() {
	if k, p, ok := w.anyPlan(); ok && len(w.rest[p]) > 0 {
		w.say("go on with plan %d", k)
		w.addPart(p)
	}
}

// replacements are new definitions of some of the tasks that are retried.
func (w *walker) replacements(tasks []plan.Task, retried []rules.Retried) (replace []plan.Task) {
	for _, r := range retried {
		k := slices.IndexFunc(tasks, func(t plan.Task) bool { return t.ID == r.ID })
		if t := tasks[k]; t.Of.IsZero() && w.chance(2) {
			t.ContinueOnError = t.MaxFailures == "" && w.chance(2)
			t.Description, t.Params = "another task", json.RawMessage(fmt.Sprintf(`{"n":%d}`, w.r.IntN(100)))
			if t.Foreach != nil && w.chance(3) {
				t.Foreach = nil
			} else if t.Foreach == nil && t.Approve == nil && !t.Finally && w.chance(6) {
				t.Foreach = w.foreach()
			}
			replace = append(replace, plan.Task{ID: t.ID, Name: t.Name, Queue: t.Queue, Definition: t.Definition, Params: t.Params})
		}
	}
	return replace
}

func replaced(tasks []plan.Task) (names []string) {
	for _, t := range tasks {
		what := t.Name
		if t.Foreach != nil {
			what += "*"
		}
		names = append(names, what)
	}
	return names
}

// ending is how a task ends, and what that is called.
func (w *walker) ending(c protocol.ClaimedTask) (protocol.Ending, string) {
	e, how := w.plainEnding(c)
	if e.Status != plan.Queued && !e.Expand && w.chance(3) {
		e.Exit = &plan.Exit{Code: w.r.IntN(3)}
		how += fmt.Sprint(", exit ", e.Exit.Code)
	}
	if w.chance(4) {
		e.Log = []plan.LogEntry{{At: w.clock.Now(), Attempt: c.Attempt, Stream: plan.Stderr, Text: "the end\n"}}
		how += ", with a log"
	}
	if e.Status.Finished() && w.chance(4) {
		e.Printed = &protocol.Printed{Stdout: []byte("printed\n")}
		how += ", printed"
	}
	return e, how
}

func (w *walker) plainEnding(c protocol.ClaimedTask) (protocol.Ending, string) {
	switch {
	case c.Approve != nil && !w.chance(8):
		return rules.AskApproval(&c), "asks"
	case c.Foreach != nil && c.Foreach.OnNode() && !w.chance(4):
		items := make([]string, w.r.IntN(4))
		for i := range items {
			items[i] = strconv.Itoa(i)
		}
		e := expand(c, items...)
		if len(items) == 0 {
			e.Detail = rules.NoItemsDetail(c.Foreach, "/srv")
		}
		return e, fmt.Sprintf("makes %d items", len(items))
	case w.chance(5):
		return fail(c), "failed"
	case w.chance(16):
		return protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonTimeout, Detail: "too long"}, "timed out"
	case w.chance(8):
		e := later(c, time.Duration(w.r.IntN(3))*delay)
		e.Detail = "try again"
		return e, fmt.Sprintf("is to be tried again after %v", e.Delay)
	case w.chance(8):
		return giveBack(c), "is given back"
	case w.chance(12):
		return notBegun(c), "could not be begun"
	case w.chance(8):
		return skip(c), "found nothing to do"
	}
	if n := w.r.IntN(4); n > 0 && strings.HasPrefix(c.Name, "list") {
		return succeed(c, "["+strings.Repeat("7,", n-1)+"7]"), "returned a list"
	}
	return succeed(c, fmt.Sprintf("%q", fmt.Sprint(c.Name, " ", w.r.IntN(1000)))), "succeeded"
}
