package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// lateCases hold one write back, as a node that stands still or a slow network does, and let it go
// after others have done something. On a store of several writes the Hook holds each of them. On a
// store whose writer has a lock (OneWriter) nobody gets in between two writes of a call. There only
// a whole call can be late, so the test holds back the call, with what its caller knew before. The
// model's Hook stands before its lock, which is the same.
var lateCases = []testCase{
	{"a write that arrives late, after others have done something, leaves no plan that never ends", lateWrites},
	{"interleavings that once went wrong", lateFound},
}

// found are interleavings that make search found.
var found = []struct {
	wrong        string // what it was
	verb, others string
	k            int
}{
	{"the list of items that a refused ending had written stayed until an audit", "a turn that makes items",
		"the node is rescued, what failed is retried, and another node goes on", 1},
}

// A late is one interleaving: a verb of which write number k is held back while others do something.
type late struct {
	*world
	held    store.Store // whose writes are held back
	mu      sync.Mutex
	k       int // which write is held; 0: none
	writes  int
	reached chan struct{}
	release chan struct{}
	others  func() // of a store of one writer: what happens before call number k
	resume  func() // what others have begun goes on once the late write is made

	plan    plan.Plan
	final   plan.Plan // whose last task but those of finally has begun
	other   plan.Plan // what the verb submits, or deletes
	tasks   []plan.Task
	x       *node // it stands still with the write
	has     map[string]protocol.ClaimedTask
	asked   time.Time // when it asked its question
	y       *node
	effects map[plan.TaskID]int
	verbErr error
}

func (l *late) hook(written bool) error {
	l.mu.Lock()
	if written || l.k == 0 || l.d.OneWriter {
		l.mu.Unlock()
		return nil
	}
	l.writes++
	at, reached, release := l.writes == l.k, l.reached, l.release
	l.mu.Unlock()
	if at {
		close(reached)
		<-release
	}
	return nil
}

// before is called before each call of a verb.
func (l *late) before() {
	if !l.d.OneWriter || l.k == 0 {
		return
	}
	if l.writes++; l.writes == l.k {
		close(l.reached)
		l.others()
	}
}

// turn is a turn of the node that stands still.
func (l *late) turn(t protocol.Turn) error {
	t.Instance, t.Plugins, t.Plan = l.x.id, []string{"exec"}, l.plan.ID
	l.before()
	did, err := l.held.Turn(l.ctx, t)
	for _, e := range t.Ended {
		if err == nil && e.Status == plan.Succeeded && !slices.Contains(did.Lost, e.Task) {
			l.effects[e.Task]++
		}
	}
	return err
}

var lateVerbs = []struct {
	name string
	stop bool // the plan stops on failure
	do   func(l *late) error
}{
	{name: "a turn that ends a parent", do: func(l *late) error {
		return l.turn(protocol.Turn{Ended: []protocol.Ending{succeed(l.has["a"], `[1,2]`)}})
	}},
	{name: "a turn that makes items", do: func(l *late) error {
		return l.turn(protocol.Turn{Ended: []protocol.Ending{expand(l.has["files"], "1", "2")}})
	}},
	{name: "a turn that ends the last item", do: func(l *late) error {
		return l.turn(protocol.Turn{Ended: []protocol.Ending{ok(l.has["many[0]"]), ok(l.has["many[1]"])}})
	}},
	{name: "a turn with a failure", do: func(l *late) error { return l.turn(protocol.Turn{Ended: []protocol.Ending{fail(l.has["slow"])}}) }},
	{name: "a turn with an attempt that was skipped", do: func(l *late) error { return l.turn(protocol.Turn{Ended: []protocol.Ending{skip(l.has["slow"])}}) }},
	{name: "a turn with a failure that closes the plan", stop: true, do: func(l *late) error {
		return l.turn(protocol.Turn{Ended: []protocol.Ending{fail(l.has["slow"])}})
	}},
	{name: "a turn after which a task is tried again", do: func(l *late) error {
		return l.turn(protocol.Turn{Ended: []protocol.Ending{later(l.has["slow"], time.Minute)}})
	}},
	{name: "a turn that gives back", do: func(l *late) error { return l.turn(protocol.Turn{Ended: []protocol.Ending{giveBack(l.has["slow"])}}) }},
	{name: "a turn that claims", do: func(l *late) error { return l.turn(protocol.Turn{Slots: 2, Start: true}) }},
	{name: "a turn that ends and claims", do: func(l *late) error {
		return l.turn(protocol.Turn{Ended: []protocol.Ending{succeed(l.has["a"], `[1,2]`), ok(l.has["slow"])}, Slots: 3})
	}},
	{name: "a start", do: func(l *late) error {
		l.before()
		_, err := l.held.Start(l.ctx, []protocol.Claim{l.has["unstarted"].Claim})
		return err
	}},
	{name: "a sweep", do: func(l *late) error {
		l.before()
		_, err := l.held.Sweep(l.ctx, protocol.Sweep{Instance: l.x.id})
		return err
	}},
	{name: "a rescue", do: func(l *late) error {
		l.before()
		_, err := l.held.Rescue(l.ctx, l.x.id, -1)
		return err
	}},
	{name: "a leave", do: func(l *late) error {
		l.before()
		return l.held.Leave(l.ctx, l.x.id)
	}},
	{name: "a take", do: func(l *late) error {
		runner := plan.InstanceID{ID: plan.NewID(time.Now())}
		l.before()
		if err := l.held.Register(l.ctx, plan.Instance{ID: runner, Node: l.x.name, Host: "host", Lease: time.Minute, Runner: true}); err != nil {
			return err
		}
		l.before()
		_, err := l.held.Take(l.ctx, protocol.Take{Instance: runner, Task: l.has["unstarted"].Task, Start: true})
		return err
	}},
	{name: "a cancellation of the plan", do: func(l *late) error {
		l.before()
		return l.held.CancelPlan(l.ctx, l.plan.ID, false)
	}},
	{name: "a turn that ends the last task before those of finally", do: func(l *late) error {
		return l.turn(protocol.Turn{Ended: []protocol.Ending{ok(l.has["final"])}, Slots: 2})
	}},
	{name: "a cancellation that leaves tasks of finally to run", do: func(l *late) error {
		l.before()
		return l.held.CancelPlan(l.ctx, l.final.ID, false)
	}},
	{name: "a cancellation of a foreach task", do: func(l *late) error {
		id := l.named(l.plan, "many").ID
		l.before()
		return l.held.CancelTask(l.ctx, id)
	}},
	{name: "an answer", do: func(l *late) error { return l.answers(l.held, l.before, true) }},
	{name: "a rejection that closes the plan", stop: true, do: func(l *late) error { return l.answers(l.held, l.before, false) }},
	{name: "a retry", do: func(l *late) error {
		ask := l.askRetry(l.plan, false, "bad")
		l.before()
		_, err := l.held.Retry(l.ctx, l.plan.ID, ask)
		return err
	}},
	{name: "an addition", do: func(l *late) error {
		t := l.newTask(plan.Queue{ID: l.has["a"].Queue}, "added", l.has["a"].Task)
		l.before()
		return l.held.AddTasks(l.ctx, l.plan.ID, []plan.Task{t})
	}},
	{name: "a submission", do: func(l *late) error {
		l.before()
		_, err := l.held.CreatePlan(l.ctx, l.other)
		if err == nil {
			l.before()
			err = l.held.AddTasks(l.ctx, l.other.ID, l.tasks)
		}
		if err == nil {
			l.before()
			err = l.held.Ready(l.ctx, l.other.ID)
		}
		return err
	}},
	{name: "a deletion", do: func(l *late) error {
		l.no(l.ended())
		for more, err := true, error(nil); more; {
			l.before()
			if more, err = l.held.DeletePlan(l.ctx, l.other.ID, 2); err != nil {
				return err
			}
		}
		return nil
	}},
}

// ended submits the other plan and has it end.
func (l *late) ended() error {
	if _, err := l.s.CreatePlan(l.ctx, l.other); err != nil {
		return err
	}
	if err := l.s.AddTasks(l.ctx, l.other.ID, l.tasks); err != nil {
		return err
	}
	return l.s.CancelPlan(l.ctx, l.other.ID, false)
}

// The work of others meanwhile. The store may refuse it.
var meanwhile = []struct {
	name string
	do   func(l *late)
}{
	{"the node is rescued", func(l *late) { l.rescue() }},
	{"the node leaves", func(l *late) { l.leave() }},
	{"another node turns and sweeps", func(l *late) { l.goOn() }},
	{"the node is rescued, and another one goes on", func(l *late) { l.rescue(); l.goOn() }},
	{"the node leaves, and another one goes on", func(l *late) { l.leave(); l.goOn() }},
	{"the node was rescued but for its tasks, and another one goes on", func(l *late) { l.rescueTo(2) }},
	{"the node was rescued but for its notes, and another one goes on", func(l *late) { l.rescueTo(3) }},
	{"the node hands in what it ran, and another one goes on", func(l *late) { l.handIn(); l.goOn() }},
	{"the plan is cancelled", func(l *late) { l.refusable(l.s.CancelPlan(l.ctx, l.plan.ID, false)) }},
	{"the plan is cancelled, and another node goes on", func(l *late) { l.refusable(l.s.CancelPlan(l.ctx, l.plan.ID, false)); l.goOn() }},
	{"what runs last is cancelled, tasks of finally run, and are cancelled too", func(l *late) {
		l.refusable(l.s.CancelPlan(l.ctx, l.final.ID, false))
		_, err := l.s.Turn(l.ctx, protocol.Turn{Instance: l.x.id, Ended: []protocol.Ending{stopped(l.has["final"])}})
		l.refusable(err)
		l.goOnWith(l.final)
		l.refusable(l.s.CancelPlan(l.ctx, l.final.ID, true))
		l.goOnWith(l.final)
	}},
	{"the node is rescued, the plan that had nothing else to run goes on, and is retried", func(l *late) {
		l.rescue()
		l.goOnWith(l.final)
		l.goOnWith(l.final)
		l.refusable(l.tryRetry(l.final.ID, rules.Ask{}))
	}},
	{"foreach tasks are cancelled", func(l *late) {
		for _, name := range []string{"many", "files"} {
			l.refusable(l.s.CancelTask(l.ctx, l.named(l.plan, name).ID))
		}
	}},
	{"somebody else rejects", func(l *late) { l.refusable(l.answers(l.s, func() {}, false)) }},
	{"what failed is retried", func(l *late) { l.retry() }},
	{"the node is rescued, what failed is retried, and another node goes on", func(l *late) { l.rescue(); l.retry(); l.goOn() }},
}

// answers answers the question of the plan, as it was when the plan was made.
func (l *late) answers(s store.Store, before func(), yes bool) error {
	before()
	err := s.AnswerTask(l.ctx, l.has["ask"].Task, rules.Answer{Approve: yes, At: l.clock.Now(), Asked: l.asked})
	if err == nil && yes {
		l.effects[l.has["ask"].Task]++
	}
	return err
}

// refusable fails on an error that the contract does not name.
func (l *late) refusable(err error) {
	if err != nil && !slices.ContainsFunc(refusals, func(is error) bool { return errors.Is(err, is) }) {
		l.Errorf("%v", err)
	}
}

func (l *late) rescue() {
	_, err := l.s.Rescue(l.ctx, l.x.id, -1)
	l.refusable(err)
}

// rescueTo has another node begin a rescue, which stands still before its write number k until the late
// write is made. A third node goes on meanwhile. On a store of one writer the rescue is one call.
func (l *late) rescueTo(k int) {
	if l.d.OneWriter {
		l.rescue()
		l.goOn()
		return
	}
	writes, reached, release := 0, make(chan struct{}), make(chan struct{})
	s := l.d.Reopen(l.T, l.s, Options{Now: l.clock.Now, Hook: func(written bool) error {
		if !written {
			if writes++; writes == k {
				close(reached)
				<-release
			}
		}
		return nil
	}})
	done := make(chan error, 1)
	go func() {
		_, err := s.Rescue(l.ctx, l.x.id, -1)
		done <- err
	}()
	var err error
	rescued := false
	select {
	case <-reached:
	case err = <-done:
		rescued = true
	}
	l.goOn()
	l.resume = func() {
		close(release)
		if !rescued {
			err = <-done
		}
		l.no(s.Close())
		l.refusable(err)
	}
}

func (l *late) leave() { l.refusable(l.s.Leave(l.ctx, l.x.id)) }

// handIn has the node end two tasks, if they are its own still.
func (l *late) handIn() {
	ended := []protocol.Ending{succeed(l.has["a"], `[1,2]`), fail(l.has["slow"])}
	did, err := l.s.Turn(l.ctx, protocol.Turn{Instance: l.x.id, Ended: ended, Plan: l.plan.ID})
	if l.refusable(err); err == nil && !slices.Contains(did.Lost, ended[0].Task) {
		l.effects[ended[0].Task]++
	}
}

func (l *late) retry() {
	l.refusable(l.tryRetry(l.plan.ID, rules.Ask{}))
}

// stopped is the ending of a task that its node stopped because a person wants that.
func stopped(c protocol.ClaimedTask) protocol.Ending {
	return protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled}
}

// goOn has the other node sweep and run a part of the plan.
func (l *late) goOn() { l.goOnWith(l.plan) }

// goOnWith is goOn for another plan.
func (l *late) goOnWith(p plan.Plan) {
	for range 2 {
		_, err := l.s.Sweep(l.ctx, protocol.Sweep{Instance: l.y.id, Holding: slices.Collect(maps.Keys(l.y.holding))})
		l.refusable(err)
		did, err := l.y.try(protocol.Turn{Slots: 2, Start: true, Plan: p.ID})
		l.refusable(err)
		var ended []protocol.Ending
		for _, c := range did.Claimed {
			ended = append(ended, l.does(c))
		}
		did, err = l.y.try(protocol.Turn{Ended: ended, Plan: p.ID})
		l.refusable(err)
		for _, e := range ended {
			if e.Status == plan.Succeeded && !slices.Contains(did.Lost, e.Task) {
				l.effects[e.Task]++
			}
		}
	}
}

// does is how a task ends that a healthy node runs.
func (l *late) does(c protocol.ClaimedTask) protocol.Ending {
	switch {
	case c.Approve != nil:
		return rules.AskApproval(&c)
	case c.Foreach != nil && c.Foreach.OnNode():
		return expand(c, "1", "2")
	case c.Name == "a":
		return succeed(c, `[1,2]`)
	}
	return ok(c)
}

// submit makes the plan, of which the first node has some tasks.
func (l *late) submit(stop bool) {
	spec := &plan.Spec{Name: "late", Tasks: []plan.TaskSpec{
		task("bad"), task("a"), task("slow"), task("unstarted"), each("files", plan.Foreach{Lines: "lines"}), each("many", list(1, 2)),
		task("b", "a"), each("copy", plan.Foreach{Value: "needs.a"}, "a"), task("after", "copy", "slow"), task("sum", "files", "many"),
		approval("ask", 0), task("asked", "ask"), {Name: "mail", Needs: []string{"bad", "slow"}, When: plan.AllDone},
	}}
	spec.Tasks[0].ContinueOnError = stop
	if stop {
		spec.OnFailure = plan.Stop
	}
	l.plan = l.submitSpec(spec)
	l.other, l.tasks = l.compile(&plan.Spec{Name: "other", Tasks: []plan.TaskSpec{task("o0"), task("o1", "o0"), each("o2", list(1, 2), "o0")}})
	l.final = l.submitSpec(release(task("done"), task("final", "done")))
	l.x, l.y = l.node("x"), l.node("y")
	l.has = map[string]protocol.ClaimedTask{}
	for range 5 {
		for _, c := range l.x.turn(protocol.Turn{Slots: 9, Plan: l.plan.ID}).Claimed {
			if l.has[c.Name] = c; c.Name != "unstarted" {
				must(l.s.Start(l.ctx, []protocol.Claim{c.Claim}))(l.world)
			}
		}
	}
	for range 2 {
		for _, c := range l.x.turn(protocol.Turn{Slots: 9, Plan: l.final.ID, Start: true}).Claimed {
			if l.has[c.Name] = c; c.Name == "done" {
				l.effects[c.Task]++
				l.x.end(ok(c))
			}
		}
	}
	ask := l.has["ask"]
	l.x.end(fail(l.has["bad"]), rules.AskApproval(&ask))
	l.asked = l.task(ask.Task).Started
	wanted := []plan.Task{l.newTask(plan.Queue{ID: l.has["a"].Queue}, "wanted"), l.newTask(plan.Queue{ID: l.has["a"].Queue}, "wanted2")}
	wanted[1].NotBefore = l.clock.Now().Add(time.Second)
	l.no(l.s.AddTasks(l.ctx, l.plan.ID, wanted))
	for _, name := range []string{"a", "slow", "unstarted", "files", "many[0]", "many[1]", "ask", "final"} {
		if _, is := l.has[name]; !is {
			l.Fatalf("task %q was not claimed", name)
		}
	}
}

// run makes the interleaving, and reports whether the verb had a write number k.
func (l *late) run(do func(*late) error, others func(*late), k int) bool {
	l.mu.Lock()
	l.k, l.writes, l.reached, l.release, l.resume = k, 0, make(chan struct{}), make(chan struct{}), nil
	l.others = func() { others(l) }
	l.mu.Unlock()
	done := make(chan struct{})
	if l.d.OneWriter {
		l.verbErr = do(l)
		close(done)
	} else {
		go func() {
			defer close(done)
			l.verbErr = do(l)
		}()
		select {
		case <-l.reached:
			others(l)
		case <-done:
		}
	}
	l.mu.Lock()
	l.k = 0
	l.mu.Unlock()
	close(l.release)
	<-done
	if l.resume != nil {
		l.resume()
	}
	l.refusable(l.verbErr)
	select {
	case <-l.reached:
		return true
	default:
		return false
	}
}

// heal has a healthy node end what is left of both plans, and looks whether all of it has ended as it should.
func (l *late) heal() {
	there := must(l.s.Instances(l.ctx))(l.world)
	for _, i := range there {
		must(l.s.Rescue(l.ctx, i.ID, -1))(l.world)
	}
	n := l.node("healthy")
	left := 0
	for range 12 {
		l.pass(20 * time.Minute)
		n.sweep()
		for _, t := range l.all(store.TaskQuery{Statuses: []plan.Status{plan.Held}}) {
			if t.AwaitsAnswer() {
				l.effects[t.ID]++
				l.no(l.s.AnswerTask(l.ctx, t.ID, rules.Answer{Approve: true, Asked: t.Started}))
			}
		}
		n.run(func(c protocol.ClaimedTask) protocol.Ending {
			e := l.does(c)
			if e.Status == plan.Succeeded {
				l.effects[c.Task]++
			}
			return e
		})
		if left = len(l.all(store.TaskQuery{Statuses: []plan.Status{plan.Held, plan.Queued, plan.Claimed, plan.Running}})); left == 0 {
			break
		}
	}
	n.sweep()
	for _, p := range l.checkEnded(l.effects) {
		if !p.State.Ended() {
			continue
		}
		for more, err := true, error(nil); more && err == nil; {
			more, err = l.s.DeletePlan(l.ctx, p.ID, 1000)
			l.refusable(err)
		}
	}
	l.no(l.s.Leave(l.ctx, n.id))
}

// An interleaving is write number k of a verb, held back while others do something.
type interleaving struct {
	verb, others, k int
}

func (x interleaving) String() string {
	return fmt.Sprintf("%s, of which write %d is held back while %s", lateVerbs[x.verb].name, x.k, meanwhile[x.others].name)
}

// try makes the interleaving on a store of its own, and reports whether the verb has that write.
func (x interleaving) try(t *testing.T, d *Driver) (met bool, wrong []string) {
	l := &late{world: newWorld(t, d), effects: map[plan.TaskID]int{}}
	l.held = l.reopen(l.hook)
	verb := &lateVerbs[x.verb]
	wrong = l.catch(func() {
		l.submit(verb.stop)
		if met = l.run(verb.do, meanwhile[x.others].do, x.k); met {
			l.check()
		} else if l.verbErr != nil {
			l.Errorf("nobody did anything meanwhile, and it was refused")
		}
		l.heal()
		l.nothingLeft("every plan was deleted")
	})
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Sprintf("(the verb answered %v)", l.verbErr))
	}
	return met, wrong
}

func lateFound(w *world) {
	for _, f := range found {
		x := interleaving{k: f.k}
		for x.verb < len(lateVerbs) && lateVerbs[x.verb].name != f.verb {
			x.verb++
		}
		for x.others < len(meanwhile) && meanwhile[x.others].name != f.others {
			x.others++
		}
		w.Run(f.wrong, func(t *testing.T) {
			if w.d.AtOnce {
				t.Parallel()
			}
			if _, wrong := x.try(t, w.d); len(wrong) > 0 {
				t.Errorf("%v: %s", x, strings.Join(wrong, "\n  "))
			}
		})
	}
}

// tryLateWrite makes the interleaving that the seed says. The first writes of a call are held more often.
func tryLateWrite(t *testing.T, d *Driver, seed uint64) (wrong, did []string) {
	deep := 8
	if d.OneWriter {
		deep = 1
	}
	r := rand.New(rand.NewPCG(seed, 0))
	x := interleaving{r.IntN(len(lateVerbs)), r.IntN(len(meanwhile)), 1 + r.IntN(1+r.IntN(deep))}
	_, wrong = x.try(t, d)
	return wrong, []string{x.String()}
}

// lateWrites makes as many interleavings as the driver says, or all there are.
func lateWrites(w *world) {
	if _, is := repeatedSeed(w); is || w.d.Late > 0 {
		takes("late", func(d *Driver) int { return d.Late })(w)
		return
	}
	for v := range lateVerbs {
		w.Run(lateVerbs[v].name, func(t *testing.T) {
			if w.d.AtOnce {
				t.Parallel()
			}
			for m := range meanwhile {
				for k := 1; ; k++ {
					met, wrong := interleaving{v, m, k}.try(t, w.d)
					if len(wrong) > 0 {
						t.Errorf("%v: %s", interleaving{v, m, k}, strings.Join(wrong, "\n  "))
					}
					if !met {
						break
					}
				}
			}
		})
	}
}
