package storetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// walkCases take random steps: any verb of the contract, at any time, by nodes that live, stand still or are dead. Each step is followed
// by a check of the invariants. A walk ends with a healthy node that finishes everything; after that no bookkeeping may be left.
var walkCases = []testCase{
	{"random walks over every verb keep the invariants, end every plan and leave nothing behind",
		takes("walks", func(d *Driver) int { return cmp.Or(d.Walks, wholeWalks) })},
}

// damageCases take the same walks. After some steps, and at the end, the driver damages its
// bookkeeping. Audits mend the damage, so the walk goes on as if nothing had happened.
var damageCases = []testCase{
	{"an audit mends all bookkeeping from the states of tasks, whatever was damaged",
		takes("damage", func(d *Driver) int { return cmp.Or(d.Damaged, wholeWalks) })},
}

// Sizes of walks, where a driver says nothing else.
const (
	wholeWalks = 300
	wholeSteps = 150
)

// damageEvery is after how many steps a walk is damaged.
const damageEvery = 20

// shortestWalk takes a walk, and one with fewer steps if something is wrong. It returns what is wrong, and the steps that show it.
func shortestWalk(t *testing.T, d *Driver, seed uint64, damaged bool) (wrong, did []string) {
	steps := make([]int, cmp.Or(d.Steps, wholeSteps))
	for k := range steps {
		steps[k] = k
	}
	wrong, did = walk(t, d, seed, steps, damaged)
	if len(wrong) > 0 {
		wrong, did = shorten(t, d, seed, steps[:min(len(steps), len(did))], damaged, wrong, did)
	}
	return wrong, did
}

// shorten leaves out steps without which a walk fails as well, as far as that takes no more than some seconds.
func shorten(t *testing.T, d *Driver, seed uint64, steps []int, damaged bool, wrong, did []string) ([]string, []string) {
	deadline := time.Now().Add(20 * time.Second)
	for part := len(steps) / 2; part > 0; {
		before := len(steps)
		for from := 0; from < len(steps) && time.Now().Before(deadline); {
			fewer := slices.Delete(slices.Clone(steps), from, min(from+part, len(steps)))
			if w, now := walk(t, d, seed, fewer, damaged); len(w) > 0 {
				wrong, did, steps = w, now, fewer[:min(len(fewer), len(now))]
			} else {
				from += part
			}
		}
		if part > 1 || len(steps) == before || !time.Now().Before(deadline) {
			part /= 2
		}
	}
	return wrong, did
}

// A walker takes the steps of one walk. Each step has a random source of its own. A walk without
// some of the other steps therefore still does the same in each step.
type walker struct {
	*world
	r     *rand.Rand
	did   []string
	nodes []*node // some are rescued, and do not know it
	plans []plan.PlanID
	rest  map[plan.PlanID][]plan.Task // of submissions that were left half-way
	seen  int                         // names that were given

	damaged bool // its bookkeeping is

	effects map[plan.TaskID]int // endings as succeeded that the store took
}

// walk takes the steps on a store of its own, and returns what is wrong and what it did. It stops at the first step that shows something.
func walk(t *testing.T, d *Driver, seed uint64, steps []int, damaged bool) (wrong, did []string) {
	w := &walker{world: newWorld(t, d), damaged: damaged, effects: map[plan.TaskID]int{}, rest: map[plan.PlanID][]plan.Task{}}
	w.ids = seededIDs(seed)
	wrong = w.catch(func() {
		w.queue("exec", 0)
		w.queue("narrow", 2)
		for _, k := range steps {
			w.r = rand.New(rand.NewPCG(seed, uint64(k)))
			w.step()
			w.compare()
			if damaged && k%damageEvery == damageEvery-1 {
				w.damage()
			}
			if w.check(); len(*w.caught) > 0 {
				return
			}
		}
		if damaged {
			w.r = rand.New(rand.NewPCG(seed, 1<<32))
			w.damage()
		}
		w.did = append(w.did, "a healthy node goes on")
		w.finish()
		w.compare()
	})
	return wrong, w.did
}

func (w *walker) say(format string, args ...any) { w.did = append(w.did, fmt.Sprintf(format, args...)) }

// chance is true once in n times.
func (w *walker) chance(n int) bool { return w.r.IntN(n) == 0 }

func pickOne[T any](w *walker, from []T) (one T, ok bool) {
	if len(from) == 0 {
		return one, false
	}
	return from[w.r.IntN(len(from))], true
}

// step does something. Often that is what nodes do all the time.
func (w *walker) step() {
	verbs := []struct {
		weight int
		do     func()
	}{
		{30, w.turn}, {10, w.sweep}, {6, w.submit}, {6, w.addLate}, {4, w.addPlain}, {4, w.setTask}, {3, w.ready}, {2, w.addRest}, {5, w.startClaims}, {4, w.take},
		{4, w.rescue}, {2, w.leave}, {2, w.beat}, {3, w.cancelPlan}, {4, w.cancelTask}, {6, w.answerTask}, {8, w.retryPlan}, {4, w.retryPlain},
		{3, w.deletePlan}, {1, w.expire}, {1, w.adopt}, {8, w.time}, {2, w.setQueue}, {3, w.setGroup}, {2, w.regroup}, {1, w.deleteGroup}, {2, w.setMaxThreads}, {2, w.appendLog},
	}
	sum := 0
	for _, v := range verbs {
		sum += v.weight
	}
	at := w.r.IntN(sum)
	for _, v := range verbs {
		if at -= v.weight; at < 0 {
			v.do()
			return
		}
	}
}

// refusals are the errors that the contract names; any other is a fault.
var refusals = []error{
	plan.ErrConflict, plan.ErrPlanActive, plan.ErrPlanEnded, plan.ErrPlanNotReady, plan.ErrNotFound, plan.ErrInstanceGone, plan.ErrClaimLost,
	plan.ErrExists, plan.ErrNameTaken,
}

// done says what was done and how the store answered, and reports whether it did it.
func (w *walker) done(err error, format string, args ...any) bool {
	what := fmt.Sprintf(format, args...)
	if err != nil {
		what += ": " + err.Error()
	}
	w.did = append(w.did, what)
	if err != nil && !slices.ContainsFunc(refusals, func(is error) bool { return errors.Is(err, is) }) {
		w.Errorf("%s", what)
	}
	return err == nil
}

// anyNode returns one of the nodes; there are up to three, of two names.
func (w *walker) anyNode() *node {
	if len(w.nodes) < 2 || len(w.nodes) < 3 && w.chance(10) {
		n := w.node(plan.NodeName(fmt.Sprint("n", w.r.IntN(2))))
		w.nodes = append(w.nodes, n)
		w.say("register %s", w.called(n))
		return n
	}
	return w.nodes[w.r.IntN(len(w.nodes))]
}

func (w *walker) called(n *node) string { return fmt.Sprintf("%s.%d", n.name, n.id.ID[11]) }

// gone forgets a node that was told that it is gone.
func (w *walker) gone(n *node, err error) {
	if errors.Is(err, plan.ErrInstanceGone) {
		w.nodes = slices.DeleteFunc(w.nodes, func(o *node) bool { return o == n })
	}
}

// some returns a random part of a list, in its order.
func some[T any](w *walker, of []T) (part []T) {
	for _, one := range of {
		if w.chance(2) {
			part = append(part, one)
		}
	}
	return part
}

// holds reports whether a claim is its task's, which is what the store is to say as well.
func (w *walker) holds(n *node, c protocol.Claim) bool {
	t, err := w.s.Task(w.ctx, c.Task)
	return err == nil && t.Status.Active() && t.Attempt == c.Attempt && t.Instance == n.id
}

func (w *walker) turn() {
	n := w.anyNode()
	t := protocol.Turn{Start: w.chance(2), Slots: w.r.IntN(4)}
	if w.chance(3) {
		t.Budget = 1 + w.r.IntN(5)
	}
	if p, ok := pickOne(w, w.plans); ok && w.chance(4) {
		t.Plan = p
	}
	var does []string
	var lost []plan.TaskID
	for _, c := range some(w, held(n)) {
		e, how := w.ending(c)
		does = append(does, c.Name+" "+how)
		if t.Ended = append(t.Ended, e); !w.holds(n, c.Claim) {
			lost = append(lost, c.Task)
		}
	}
	did, err := n.try(t)
	w.gone(n, err)
	if !w.done(err, "turn of %s, %d slots, start %v, budget %d, plan %v: end %v, claim %v", w.called(n), t.Slots, t.Start, t.Budget, !t.Plan.IsZero(), does, names(did.Claimed)) {
		return
	}
	byID := func(a, b plan.TaskID) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(did.Lost, byID)
	slices.SortFunc(lost, byID)
	if !slices.Equal(did.Lost, lost) && !w.damaged { // else its owner may be another one than who has the claim
		w.Errorf("invariant 5: a turn refused the endings of %v, want %v", did.Lost, lost)
	}
	for _, e := range t.Ended {
		if e.Status == plan.Succeeded && !slices.Contains(did.Lost, e.Task) {
			w.effects[e.Task]++
		}
	}
	for _, c := range did.Claimed {
		w.given(c)
	}
}

// given checks that a claimed task has what its parents return.
func (w *walker) given(c protocol.ClaimedTask) {
	t := w.task(c.Task)
	if len(t.Needs) == 0 || c.ByReference {
		return
	}
	var got struct{ Args []json.RawMessage }
	if err := json.Unmarshal(c.Params, &got); err != nil || len(got.Args) > len(t.Needs) {
		w.Errorf("invariant 4: task %q was claimed with params %s: %v", c.Name, c.Params, err)
		return
	}
	if len(got.Args) < len(t.Needs) {
		return // a parent was deleted with its plan
	}
	for k, id := range t.Needs {
		parent, err := w.s.Task(w.ctx, id)
		if errors.Is(err, plan.ErrNotFound) {
			continue
		}
		w.no(err)
		if got, want := must(canonical(orNullJSON(got.Args[k])))(w.world), must(canonical(orNullJSON(parent.Output)))(w.world); got != want {
			w.Errorf("invariant 4: task %q was claimed with %s as the output of %q, which is %s", c.Name, got, parent.Name, want)
		}
	}
}

func orNullJSON(j json.RawMessage) json.RawMessage {
	if len(j) == 0 {
		return json.RawMessage("null")
	}
	return j
}

func (w *walker) startClaims() {
	n := w.anyNode()
	var claims []protocol.Claim
	for _, c := range some(w, held(n)) {
		claims = append(claims, c.Claim)
	}
	if len(claims) > 0 {
		lost, err := w.s.Start(w.ctx, claims)
		w.done(err, "start %d claims of %s, %d lost", len(claims), w.called(n), len(lost))
	}
}

func (w *walker) take() {
	n := w.anyNode()
	c, ok := pickOne(w, held(n))
	if !ok || len(w.nodes) > 4 {
		return
	}
	runner := &node{w: w.world, s: w.s, id: plan.InstanceID{ID: w.newID()}, name: n.name, holding: map[plan.TaskID]protocol.ClaimedTask{}}
	w.no(w.s.Register(w.ctx, plan.Instance{ID: runner.id, Node: n.name, Host: "host", Lease: time.Minute, Runner: true}))
	got, err := w.s.Take(w.ctx, protocol.Take{Instance: runner.id, Task: c.Task, Start: w.chance(2)})
	if !w.done(err, "%s, a runner, takes %s of %s", w.called(runner), c.Name, w.called(n)) {
		w.no(w.s.Leave(w.ctx, runner.id))
		return
	}
	runner.holding[c.Task] = got
	w.nodes = append(w.nodes, runner)
}

func (w *walker) sweep() {
	n := w.anyNode()
	keep := held(n)
	if w.chance(4) {
		keep = some(w, keep) // the answer to the claim of the others was lost
	}
	sweep := protocol.Sweep{Instance: n.id}
	holding := map[plan.TaskID]protocol.ClaimedTask{}
	for _, c := range keep {
		sweep.Holding = append(sweep.Holding, c.Task)
		holding[c.Task] = c
	}
	if w.chance(3) {
		sweep.Budget = 1 + w.r.IntN(5)
	}
	_, err := w.s.Sweep(w.ctx, sweep)
	w.gone(n, err)
	if w.done(err, "sweep of %s, budget %d, which holds %v", w.called(n), sweep.Budget, names(keep)) {
		n.holding = holding
	}
}

func (w *walker) beat() {
	n := w.anyNode()
	b := protocol.Beat{Instance: n.id}
	var of []string
	for _, c := range some(w, held(n)) {
		b.Progress = append(b.Progress, protocol.Reached{Claim: c.Claim, Progress: plan.Progress{Fraction: 0.5, Text: fmt.Sprint("at ", w.r.IntN(10))}})
		of = append(of, c.Name)
	}
	if w.chance(4) {
		b.Pauses = []plan.Pause{}
		for _, c := range some(w, held(n)) {
			b.Pauses = append(b.Pauses, plan.Pause{Queue: c.Queue, Each: time.Duration(w.r.IntN(3)) * time.Second, Why: "no such folder", Tasks: []plan.TaskID{c.Task}})
		}
	}
	_, err := w.s.Beat(w.ctx, b)
	w.gone(n, err)
	w.done(err, "beat of %s, with the progress of %v and %d pauses (new: %v)", w.called(n), of, len(b.Pauses), b.Pauses != nil)
}

// rescue takes a node for dead. It may live, and finds out with its next turn.
func (w *walker) rescue() {
	n := w.anyNode()
	lost, err := w.s.Rescue(w.ctx, n.id, -1)
	w.done(err, "rescue of %s, which had %d tasks", w.called(n), lost)
}

func (w *walker) leave() {
	n := w.anyNode()
	w.done(w.s.Leave(w.ctx, n.id), "%s leaves", w.called(n))
	w.nodes = slices.DeleteFunc(w.nodes, func(o *node) bool { return o == n })
}

func (w *walker) anyPlan() (int, plan.PlanID, bool) {
	if len(w.plans) == 0 {
		return 0, plan.PlanID{}, false
	}
	k := w.r.IntN(len(w.plans))
	return k, w.plans[k], true
}

func (w *walker) ready() {
	if k, p, ok := w.anyPlan(); ok {
		w.done(w.s.Ready(w.ctx, p), "ready: plan %d", k)
	}
}

// anyTasks returns the tasks of a plan, or all, items too, by name.
func (w *walker) anyTasks(q store.TaskQuery) []plan.Task {
	q.Needs = true
	tasks := w.all(q)
	slices.SortFunc(tasks, func(a, b plan.Task) int {
		return strings.Compare(a.Name+a.ID.String(), b.Name+b.ID.String())
	})
	return tasks
}

// late makes a task that needs some of others.
func (w *walker) late(prefix string, inPlan bool, among []plan.Task) (plan.Task, []string) {
	w.seen++
	t := w.newTask(w.queue([]string{"exec", "narrow"}[w.r.IntN(2)], 0), fmt.Sprint(prefix, w.seen))
	var needs []string
	for range w.r.IntN(4) {
		if parent, ok := pickOne(w, among); ok && !slices.Contains(t.Needs, parent.ID) {
			t.Needs, needs = append(t.Needs, parent.ID), append(needs, parent.Name)
		}
	}
	if w.chance(2) && len(needs) > 0 {
		t.When = plan.AllDone
	}
	switch {
	case w.chance(5):
		t.NotBefore = w.clock.Now().Add(delay)
		needs = append(needs, "an instant")
	case inPlan && w.chance(6):
		t.Foreach = &plan.Foreach{List: json.RawMessage(`[5]`)}
		needs = append(needs, "(foreach)")
	}
	return t, needs
}

func (w *walker) addLate() {
	if k, p, ok := w.anyPlan(); ok {
		t, needs := w.late("late", true, w.anyTasks(store.TaskQuery{Plan: p, NoItems: true}))
		w.done(w.s.AddTasks(w.ctx, p, []plan.Task{t}), "add %s to plan %d, which needs %v", t.Name, k, needs)
	}
}

func (w *walker) addPlain() {
	t, needs := w.late("plain", false, w.anyTasks(store.TaskQuery{NoPlan: true}))
	w.done(w.s.AddTasks(w.ctx, plan.PlanID{}, []plan.Task{t}), "add %s of no plan, which needs %v", t.Name, needs)
}

// setTask changes a task, mostly one that waits and is of no plan.
func (w *walker) setTask() {
	tasks := w.anyTasks(store.TaskQuery{NoPlan: !w.chance(8)})
	if waiting := slices.DeleteFunc(slices.Clone(tasks), func(t plan.Task) bool { return !rules.Pending(t.Status) }); !w.chance(8) {
		tasks = waiting
	}
	t, ok := pickOne(w, tasks)
	if !ok {
		return
	}
	var c rules.TaskChange
	if w.chance(2) {
		at := w.clock.Now().Add(delay)
		if w.chance(2) {
			at = time.Time{}
		}
		c.NotBefore = &at
	}
	if w.chance(2) {
		c.Params = json.RawMessage(fmt.Sprintf(`{"x":%d}`, w.r.IntN(3)))
	}
	if w.chance(2) {
		c.Attempts = 1 + w.r.IntN(3)
	}
	err := w.s.SetTask(w.ctx, t.ID, c)
	w.done(err, "change %s, which is %s: an instant %v, params %s, attempts %d", t.Name, t.State(), c.NotBefore, c.Params, c.Attempts)
}

func (w *walker) cancelPlan() {
	if k, p, ok := w.anyPlan(); ok {
		finally := w.chance(2)
		w.done(w.s.CancelPlan(w.ctx, p, finally), "cancel plan %d, its tasks of finally too: %v", k, finally)
	}
}

func (w *walker) cancelTask() {
	if t, ok := pickOne(w, w.anyTasks(store.TaskQuery{})); ok {
		w.done(w.s.CancelTask(w.ctx, t.ID), "cancel %s, which is %s", t.Name, t.State())
	}
}

func (w *walker) answerTask() {
	t, ok := pickOne(w, w.asked())
	if !ok {
		return
	}
	a := rules.Answer{Approve: w.chance(2), By: "anna", At: w.clock.Now(), Asked: t.Started}
	if w.chance(8) {
		a.Asked = time.Time{} // as somebody saw it before
	}
	if w.done(w.s.AnswerTask(w.ctx, t.ID, a), "answer %s: %v", t.Name, a.Approve) {
		w.effects[t.ID]++
	}
}

// asked returns the tasks that wait for an answer.
func (w *walker) asked() []plan.Task {
	return slices.DeleteFunc(w.anyTasks(store.TaskQuery{}), func(t plan.Task) bool { return !t.AwaitsAnswer() })
}

func (w *walker) retryPlan() {
	k, p, ok := w.anyPlan()
	if !ok {
		return
	}
	tasks := w.anyTasks(store.TaskQuery{Plan: p})
	if w.chance(4) {
		w.relist(k, p, tasks)
		return
	}
	var chosen []plan.TaskID
	var called []string
	downstream := false
	if t, ok := pickOne(w, tasks); ok && w.chance(2) {
		chosen, called, downstream = []plan.TaskID{t.ID}, []string{t.Name}, w.chance(2)
	}
	retried, err := rules.SelectRetry(tasks, chosen, downstream)
	var replace []plan.Task
	var params json.RawMessage
	var timeout *time.Duration
	if w.chance(3) {
		if other := delay * time.Duration(w.seen%4); w.seen%3 == 2 {
			timeout = &other
		}
		replace, params = w.replacements(tasks, retried), json.RawMessage(`{"x":2}`)
	}
	if err == nil {
		err = w.tryRetry(p, rules.Ask{Tasks: chosen, Downstream: downstream, Replace: replace, Params: params, Timeout: timeout})
	}
	w.done(err, "retry plan %d, %v, downstream %v, replace %v, other timeout %v", k, called, downstream, replaced(replace), timeout != nil)
}

// relist retries a plan whose foreach tasks have other lists now, those of parents as they are.
func (w *walker) relist(k int, p plan.PlanID, tasks []plan.Task) {
	var replace []plan.Task
	for _, t := range tasks {
		if t.HasItems() && t.Foreach.List != nil && w.chance(2) {
			f := *t.Foreach
			f.List = json.RawMessage([]string{`[2,3,1]`, `["a",7,8]`, `[]`, `[{"b":1},2]`}[w.r.IntN(4)])
			t.Foreach = &f
			replace = append(replace, plan.Task{ID: t.ID, Name: t.Name, Queue: t.Queue, Definition: t.Definition, Params: json.RawMessage(`{}`)})
		}
	}
	found := map[plan.TaskID][]json.RawMessage{}
	for _, t := range tasks {
		if t.HasItems() && t.Foreach.OnNode() && !w.chance(4) {
			found[t.ID] = []json.RawMessage{json.RawMessage(`"a"`), json.RawMessage(`"new"`), json.RawMessage(`"b"`)}[w.r.IntN(3):]
		}
	}
	lists := rules.ListsCompared
	switch {
	case w.chance(4):
		lists, replace = rules.ListsAgain, nil
	case w.chance(3):
		lists = rules.ListsFirst
	}
	ask := rules.Ask{Lists: lists, Replace: replace, Found: found}
	w.done(w.tryRetry(p, ask), "retry plan %d, lists %s, replace %v, found %d", k, lists, replaced(replace), len(found))
}

// retryPlain retries a task of no plan, with or without what is below it.
func (w *walker) retryPlain() {
	tasks := w.anyTasks(store.TaskQuery{NoPlan: true})
	t, ok := pickOne(w, slices.DeleteFunc(slices.Clone(tasks), func(t plan.Task) bool { return !t.Status.Finished() }))
	if !ok {
		return
	}
	ask := rules.Ask{Tasks: []plan.TaskID{t.ID}, Downstream: true}
	if w.chance(2) {
		for _, c := range tasks {
			if c.Status.Finished() && slices.Contains(c.Needs, t.ID) {
				ask.Tasks = append(ask.Tasks, c.ID)
			}
		}
	}
	w.done(w.tryRetry(plan.PlanID{}, ask), "retry %s of no plan, %d tasks", t.Name, len(ask.Tasks))
}

func (w *walker) deletePlan() {
	k, p, ok := w.anyPlan()
	if !ok {
		return
	}
	more, err := w.s.DeletePlan(w.ctx, p, 1+w.r.IntN(20))
	if w.done(err, "delete plan %d, more %v", k, more) && !more {
		w.plans = slices.Delete(w.plans, k, k+1)
	}
}

// expire ends deletions that were left.
func (w *walker) expire() {
	_, err := w.s.Expire(w.ctx, 1+w.r.IntN(20))
	w.done(err, "expire")
	w.forget()
}

// forget drops plans that are not there any more.
func (w *walker) forget() {
	w.plans = slices.DeleteFunc(w.plans, func(p plan.PlanID) bool {
		_, err := w.s.Plan(w.ctx, p)
		return errors.Is(err, plan.ErrNotFound)
	})
}

func (w *walker) adopt() {
	if k, p, ok := w.anyPlan(); ok {
		w.done(w.s.Adopt(w.ctx, p), "adopt plan %d", k)
	}
	if k, p, ok := w.anyPlan(); ok {
		priority := 1 + w.r.IntN(plan.MaxPriority)
		w.done(w.s.SetPriority(w.ctx, p, priority), "plan %d has priority %d", k, priority)
	}
}

func (w *walker) time() {
	d := []time.Duration{delay, delay, 2 * delay, 2 * delay, 4 * delay, 2 * time.Hour}[w.r.IntN(6)]
	w.pass(d)
	w.say("%v pass", d)
}

// setQueue changes the limited queue, but not below what is active in it: what runs goes on.
func (w *walker) setQueue() {
	q := w.queue("narrow", 2)
	queues := []plan.Queue{q}
	w.no(w.s.CountQueues(w.ctx, queues))
	q.Threads, q.Unlimited = queues[0].Active+w.r.IntN(3), w.chance(4)
	q.Sort = []plan.QueueSort{plan.SortDefault, plan.SortLIFO}[w.r.IntN(2)]
	q.NodeThreads = w.r.IntN(3)
	q.OnLost = []plan.OnLost{plan.OnLostDefault, plan.OnLostRetry, plan.OnLostFail}[w.r.IntN(3)]
	if q.Rate = (plan.Rate{}); w.chance(4) {
		q.Rate = hourly
	}
	q.Weight = w.r.IntN(4)
	q.Keep = plan.Keep{Succeeded: plan.Duration(keep * time.Duration(w.r.IntN(3))), Failed: plan.Duration(keep * time.Duration(w.r.IntN(2))), Cancelled: plan.Duration(keep)}
	w.done(w.s.SetQueue(w.ctx, q), "queue narrow has %d threads, unlimited %v, %d a node, is sorted %q, on_lost %q, keep %v, rate %v, weight %d",
		q.Threads, q.Unlimited, q.NodeThreads, q.Sort, q.OnLost, q.Keep, q.Rate, q.Weight)
}

// walkGroups are the names of the groups of a walk, and none.
var walkGroups = []string{"", "g0", "g1"}

// setGroup makes a group or sets one, mostly as it was read.
func (w *walker) setGroup() {
	g := plan.Group{Name: walkGroups[1+w.r.IntN(2)]}
	was := w.groupNamed(g.Name)
	if w.chance(8) {
		was.Weight = 77 // which it never has
	}
	g.Parent, g.Weight, g.Paused = walkGroups[w.r.IntN(3)], w.r.IntN(3), w.chance(4)
	if w.chance(3) {
		g.Rate = hourly
	}
	w.done(w.s.PutGroup(w.ctx, was, g), "group %s, read as %q, has parent %q, weight %d, rate %v, paused %v", g.Name, was.Name, g.Parent, g.Weight, g.Rate, g.Paused)
}

// regroup puts a queue into a group, or takes it out.
func (w *walker) regroup() {
	was := w.queueNamed([]string{"exec", "narrow"}[w.r.IntN(2)])
	q := was
	q.Group = walkGroups[w.r.IntN(3)]
	w.done(w.s.ChangeQueue(w.ctx, was, q), "queue %s is in group %q", q.Name, q.Group)
}

func (w *walker) deleteGroup() {
	g := plan.Group{Name: walkGroups[1+w.r.IntN(2)]}
	if is := w.groupNamed(g.Name); is.Name != "" {
		g = is
	}
	w.done(w.s.DeleteGroup(w.ctx, g), "delete group %s", g.Name)
}

func (w *walker) setMaxThreads() {
	n, most := plan.NodeName(fmt.Sprint("n", w.r.IntN(2))), w.r.IntN(5)-1
	w.done(w.s.SetMaxThreads(w.ctx, n, most), "node %s has %d threads", n, most)
}

func (w *walker) appendLog() {
	n := w.anyNode()
	if c, ok := pickOne(w, held(n)); ok {
		is := w.holds(n, c.Claim)
		err := w.s.AppendLog(w.ctx, c.Claim, []plan.LogEntry{{At: w.clock.Now(), Attempt: c.Attempt, Stream: plan.Stdout, Text: "x\n"}})
		if w.done(err, "%s logs for %s", w.called(n), c.Name) != is && !w.damaged {
			w.Errorf("invariant 5: the claim is the task's: %v, and the log said %v", is, err)
		}
	}
}

// damage has the driver damage its bookkeeping, and a healthy node audit the store when that is due.
func (w *walker) damage() {
	n := w.node("auditor")
	must(w.s.Sweep(w.ctx, protocol.Sweep{Instance: n.id, Budget: 1}))(w.world) // it may be the first one, which only notes when it was
	for _, what := range w.d.Damage(w.T, w.s, w.r) {
		w.say("damage: %s", what)
	}
	w.pass(rules.AuditEvery)
	n.sweep()
	w.no(w.s.Leave(w.ctx, n.id))
	w.say("an audit")
}

// finish has a healthy node end what is left, whatever nodes there are, and looks at what remains then.
func (w *walker) finish() {
	n := w.heal()
	w.checkEnded(w.effects)
	w.nothingLeft("everything ended")
	for _, p := range must(w.s.Plans(w.ctx, store.PlanQuery{Limit: 1000}))(w.world) {
		for more, err := true, error(nil); more; {
			if more, err = w.s.DeletePlan(w.ctx, p.ID, 100); errors.Is(err, plan.ErrNotFound) {
				break
			}
			w.no(err)
		}
	}
	w.expireAll()
	n.sweep()
	w.no(w.s.Leave(w.ctx, n.id))
	w.nothingLeft("every plan was deleted")
	for _, t := range w.all(store.TaskQuery{}) {
		if !t.Plan.IsZero() {
			w.Errorf("task %q is left of a plan that was deleted", t.Name)
		}
	}
}

// heal has one healthy node go on until nothing is left to do.
func (w *walker) heal() *node {
	for _, i := range must(w.s.Instances(w.ctx))(w.world) {
		must(w.s.Rescue(w.ctx, i.ID, -1))(w.world)
	}
	q := w.queue("narrow", 2)
	q.Threads, q.NodeThreads, q.Unlimited, q.Rate = 5, 0, false, plan.Rate{}
	for _, g := range must(w.s.Groups(w.ctx))(w.world) {
		w.group(g.Name, plan.GroupSettings{Parent: g.Parent}) // it is resumed, and has no rate
	}
	w.no(w.s.SetQueue(w.ctx, q))
	n := w.node("healthy")
	for range 40 {
		w.compare()
		w.pass(2 * time.Hour)
		n.sweep()
		for _, t := range w.asked() {
			w.effects[t.ID]++
			err := w.s.AnswerTask(w.ctx, t.ID, rules.Answer{Approve: true, At: w.clock.Now(), Asked: t.Started})
			if !errors.Is(err, plan.ErrConflict) { // what the answer before released may have failed, and closed their plan
				w.no(err)
			}
		}
		ran := n.run(func(c protocol.ClaimedTask) protocol.Ending {
			w.given(c)
			switch {
			case c.Approve != nil && rules.Tried(c.Attempt, c.Rescues) == 1:
				return rules.AskApproval(&c)
			case c.Foreach != nil && c.Foreach.OnNode():
				return expand(c, "1")
			}
			if w.effects[c.Task]++; strings.HasPrefix(c.Name, "list") {
				return succeed(c, "[1]")
			}
			return succeed(c, `"ok"`)
		})
		w.compare()
		if unfinished := w.all(store.TaskQuery{Statuses: []plan.Status{plan.Held, plan.Queued, plan.Claimed, plan.Running}}); len(unfinished) == 0 && len(ran) == 0 {
			break
		}
	}
	w.expireAll()
	n.sweep()
	return n
}

// expireAll ends deletions that were left.
func (w *walker) expireAll() {
	for must(w.s.Expire(w.ctx, 100))(w.world).More {
	}
}

// nothingLeft fails if the driver keeps something of what was to be done.
func (w *world) nothingLeft(after string) {
	if w.d.Left == nil {
		return
	}
	for what, n := range w.d.Left(w.T, w.s) {
		if n != 0 {
			w.Errorf("after %s %d %s are left", after, n, what)
		}
	}
}
