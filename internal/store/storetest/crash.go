package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
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

var errKilled = errors.New("killed by its test")

// A killer makes a handle's n-th write fail.
type killer struct {
	mu      sync.Mutex
	at      int  // which write; 0: none
	after   bool // after the write was made, instead of before
	dies    bool // the process is dead then: no write succeeds any more. Else it only gets no answer, and lives on
	writes  int
	tripped bool
}

func (k *killer) hook(written bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tripped {
		if k.dies {
			return errKilled
		}
		return nil
	}
	if !written {
		k.writes++
	}
	if k.writes == k.at && written == k.after {
		k.tripped = true
		return errKilled
	}
	return nil
}

var crashCases = []testCase{
	{"whatever write fails, or its answer is lost, nothing is lost and nothing done twice", crash},
}

// deaths are the ways in which a write fails.
var deaths = []struct {
	name        string
	dies, after bool
}{
	{"the process dies before write", true, false},
	{"the process dies after write", true, true},
	{"calling again makes write", false, false},
	{"calling again does not repeat write", false, true},
}

// crash runs the workload once undisturbed, and then once for each of its writes and each death. A
// driver that wants fewer gets them spread evenly; deaths take turns.
func crash(w *world) {
	if seed, is := repeatedSeed(w); is {
		if wrong, did := tryDeath(w.T, w.d, seed); len(wrong) > 0 {
			w.Errorf("%s: %s", did, strings.Join(wrong, "\n  "))
		}
		return
	}
	writes := workloadWrites(w.T, w.d)
	wanted := writes * len(deaths)
	if w.d.Deaths > 0 {
		wanted = min(wanted, w.d.Deaths)
	}
	w.Logf("the workload has %d writes; %d deaths", writes, wanted)
	for n := range wanted {
		d := death{1 + n*writes/wanted, n % len(deaths)}
		w.Run(d.String(), func(t *testing.T) {
			if w.d.AtOnce {
				t.Parallel()
			}
			newWorkload(t, w.d).run(d.killer())
		})
	}
}

// A death is the write of the workload that fails, and how.
type death struct{ at, how int }

func (d death) String() string { return fmt.Sprint(deaths[d.how].name, " ", d.at) }

func (d death) killer() *killer {
	return &killer{at: d.at, after: deaths[d.how].after, dies: deaths[d.how].dies}
}

// tryDeath has the write fail that the seed says.
func tryDeath(t *testing.T, d *Driver, seed uint64) (wrong, did []string) {
	r := rand.New(rand.NewPCG(seed, 0))
	at := death{1 + r.IntN(workloadWrites(t, d)), r.IntN(len(deaths))}
	w := newWorkload(t, d)
	wrong = w.catch(func() { w.run(at.killer()) })
	return wrong, []string{at.String()}
}

// writesOf is how many writes the workload has on each driver.
var writesOf sync.Map

func workloadWrites(t *testing.T, d *Driver) int {
	if n, is := writesOf.Load(d); is {
		return n.(int)
	}
	var undisturbed killer
	newWorkload(t, d).run(&undisturbed)
	writesOf.Store(d, undisturbed.writes)
	return undisturbed.writes
}

// A workload is the work of people and nodes on a store. A process that follows a dead one can
// repeat all of it: the workload looks first, and does what is left.
type workload struct {
	*world
	main, doomed   plan.Plan
	tasks, victims []plan.Task
	late           []plan.Task
	aside          plan.Queue           // of tasks of no plan,
	plain          []plan.Task          // the second of which needs the first
	deleting       bool                 // the doomed plan is on its way out
	finished       map[plan.TaskID]bool // what has ended and must not run again
	retried        map[plan.TaskID]bool // what a retry takes that has no answer yet
}

func newWorkload(t *testing.T, d *Driver) *workload {
	w := &workload{world: newWorld(t, d), finished: map[plan.TaskID]bool{}}
	spec := &plan.Spec{Name: "main"}
	join := task("join")
	for i := range 6 {
		join.Needs = append(join.Needs, spec.Add(in("narrow", fmt.Sprint("r", i))).Name)
	}
	spec.Add(join)
	for i := range 8 {
		spec.Add(task(fmt.Sprint("fan", i), "join"))
	}
	for _, t := range []plan.TaskSpec{
		task("flaky"), task("after-flaky", "flaky"),
		task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("gathered", "copy"),
		each("files", plan.Foreach{Glob: "*"}, "list"), task("sum", "files"),
		task("dir"), each("visit", plan.Foreach{Value: "needs.dir"}, "dir"), task("visited", "visit"),
		task("bad"), task("after-bad", "bad"), task("below", "after-bad"), {Name: "anyway", Needs: []string{"bad"}, When: plan.AllDone},
		task("person", "join"), task("unwanted", "person"), approval("ask", 0, "join"), task("asked", "ask"),
		last("undo", plan.AnyFailed), last("unmoved", plan.AllSucceeded), last("tell", "", "undo"),
	} {
		spec.Add(t)
	}
	narrow := w.queue("narrow", 2)
	w.main, w.tasks = w.compile(spec)
	for i := range 6 {
		w.tasks[i].Queue = narrow.ID
	}
	w.doomed, w.victims = w.compile(&plan.Spec{Name: "doomed", Tasks: []plan.TaskSpec{task("d0"), task("d1"), task("d2", "d0"), each("d3", list(1, 2)), last("d4", ""), last("d5", "", "d4")}})
	w.late = []plan.Task{{Name: "late", Needs: []plan.TaskID{w.id("join")}}, {Name: "late2", Needs: []plan.TaskID{w.id("r0")}}}
	for i := range w.late {
		w.late[i].ID, w.late[i].Queue = plan.TaskID{ID: plan.NewID(time.Now())}, w.tasks[0].Queue
	}
	w.late[1].Needs = append(w.late[1].Needs, w.late[0].ID)
	w.aside = w.queue("aside", 0)
	w.plain = []plan.Task{w.newTask(w.aside, "first"), w.newTask(w.aside, "second")}
	for i := range w.plain {
		w.plain[i].OnLost = plan.OnLostRetry
	}
	w.plain[1].Needs, w.plain[1].NotBefore = []plan.TaskID{w.plain[0].ID}, *w.in(time.Hour)
	return w
}

func (w *workload) id(name string) plan.TaskID {
	w.Helper()
	k := slices.IndexFunc(w.tasks, func(t plan.Task) bool { return t.Name == name })
	if k < 0 {
		w.Fatalf("there is no task %q", name)
	}
	return w.tasks[k].ID
}

// run does the work on a handle with the killer. When that has died it looks what is left, and another process does the rest.
func (w *workload) run(k *killer) {
	w.Helper()
	err := w.work(w.reopen(k.hook), k)
	if errors.Is(err, errKilled) && k.dies {
		w.check()
		w.note()
		err = w.work(w.reopen(nil), k)
	}
	w.no(err)
	w.verify()
}

// note remembers what has ended, and is not of a retry that is half-way.
func (w *workload) note() {
	w.Helper()
	for _, t := range w.all(store.TaskQuery{}) {
		if t.Status.Finished() && !w.retried[t.ID] {
			w.finished[t.ID] = true
		}
	}
}

// A process does the work; a call whose answer is lost, or that did not come through, it does again.
type process struct {
	*workload
	s       store.Store
	k       *killer
	node    plan.InstanceID
	holding map[plan.TaskID]bool
}

func (p *process) call(do func() error) error {
	err := do()
	if errors.Is(err, errKilled) && !p.k.dies {
		err = do()
	}
	return err
}

func (w *workload) work(s store.Store, k *killer) error {
	p := &process{workload: w, s: s, k: k, node: plan.InstanceID{ID: plan.NewID(time.Now())}, holding: map[plan.TaskID]bool{}}
	for _, step := range []func() error{
		p.arrive, p.changePlain, p.submit, p.rescue, p.takeOver, p.runMain, p.fix, p.runMain, p.redo, p.runMain, p.cancelDoomed, p.deleteDoomed, p.leave,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// arrive registers, rescues what those before left, and sweeps, as a node does each second.
func (p *process) arrive() error {
	there, err := p.s.Instances(p.ctx)
	if err != nil {
		return err
	}
	for _, i := range there {
		if err := p.call(func() error { _, err := p.s.Rescue(p.ctx, i.ID, i.Beats); return err }); err != nil {
			return err
		}
	}
	i := plan.Instance{ID: p.node, Node: "n1", Host: "host", Lease: time.Minute, Threads: 3, Plugins: []string{"exec"}}
	if err := p.call(func() error { return p.s.Register(p.ctx, i) }); err != nil {
		return err
	}
	return p.sweep()
}

func (p *process) leave() error {
	return p.call(func() error { return p.s.Leave(p.ctx, p.node) })
}

// submit gets both plans in, and cancels a task of the first.
func (p *process) submit() error {
	for _, sub := range []struct {
		plan  plan.Plan
		tasks []plan.Task
	}{{p.main, p.tasks}, {p.doomed, p.victims}} {
		there, err := p.s.Plan(p.ctx, sub.plan.ID)
		if err == nil && there.State != plan.PlanSubmitting || p.deleting {
			continue
		}
		half := len(sub.tasks) / 2
		for _, do := range []func() error{
			func() error { _, err := p.s.CreatePlan(p.ctx, sub.plan); return err },
			func() error { return p.s.AddTasks(p.ctx, sub.plan.ID, sub.tasks[:half]) },
			func() error { return p.s.AddTasks(p.ctx, sub.plan.ID, sub.tasks[half:]) },
			func() error { return p.s.Ready(p.ctx, sub.plan.ID) },
		} {
			if err := p.call(do); err != nil {
				return err
			}
		}
	}
	err := p.call(func() error { return p.s.CancelTask(p.ctx, p.id("person")) })
	if errors.Is(err, plan.ErrConflict) { // it was cancelled before
		err = nil
	}
	return err
}

// changePlain adds two tasks of no plan, changes each while it waits, and runs them.
func (p *process) changePlain() error {
	first, second := p.plain[0].ID, p.plain[1].ID
	add := func() error { return p.s.AddTasks(p.ctx, plan.PlanID{}, p.plain) }
	if err := p.call(add); err != nil && !errors.Is(err, plan.ErrExists) { // it was changed before
		return err
	}
	for _, c := range []struct {
		id plan.TaskID
		rules.TaskChange
		run bool
	}{
		{id: second, TaskChange: rules.TaskChange{NotBefore: p.in(3 * time.Hour), Params: json.RawMessage(`{"set":1}`)}},
		{id: first, TaskChange: rules.TaskChange{NotBefore: p.in(3 * time.Hour), Attempts: 2}},
		{id: first, TaskChange: rules.TaskChange{NotBefore: new(time.Time), Params: json.RawMessage(`{"set":2}`)}, run: true},
		{id: second, TaskChange: rules.TaskChange{Attempts: 3}},
		{id: second, TaskChange: rules.TaskChange{NotBefore: new(time.Time)}},
		{id: second, TaskChange: rules.TaskChange{Params: json.RawMessage(`{"set":3}`)}, run: true},
	} {
		err := p.set(c.id, c.TaskChange)
		if err == nil && c.run {
			err = p.runPlain(c.id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// set changes a task, unless that does not wait any more.
func (p *process) set(id plan.TaskID, c rules.TaskChange) error {
	err := p.call(func() error { return p.s.SetTask(p.ctx, id, c) })
	if t, unread := p.s.Task(p.ctx, id); errors.Is(err, plan.ErrConflict) && unread == nil && !rules.Pending(t.Status) {
		err = nil
	}
	return err
}

// runPlain runs tasks of no plan until the one has ended.
func (p *process) runPlain(id plan.TaskID) error {
	turn := protocol.Turn{Instance: p.node, Plugins: []string{"exec"}, Active: []plan.QueueID{p.aside.ID}, Slots: 2, Start: true}
	for range 50 {
		t, err := p.s.Task(p.ctx, id)
		if err != nil || t.Status.Finished() {
			return err
		}
		var did protocol.Turned
		if err := p.call(func() (err error) { did, err = p.s.Turn(p.ctx, turn); return err }); err != nil {
			return err
		}
		turn.Ended = nil
		for _, c := range did.Claimed {
			if turn.Ended = append(turn.Ended, p.do(c)); p.finished[c.Task] {
				p.Errorf("task %q had ended, and runs again", c.Name)
			}
		}
		if len(did.Claimed) == 0 && !did.More {
			if err := p.sweep(); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("a task of no plan that was changed does not end")
}

// rescue takes tasks away from another instance.
func (p *process) rescue() error {
	victim := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n2", Host: "host", Lease: time.Minute, Threads: 3}
	turn := protocol.Turn{Instance: victim.ID, Plan: p.main.ID, Plugins: []string{"exec"}, Slots: 3, Start: true}
	for _, do := range []func() error{
		func() error { return p.s.Register(p.ctx, victim) },
		func() error { _, err := p.s.Turn(p.ctx, turn); return err },
		func() error { _, err := p.s.Rescue(p.ctx, victim.ID, 0); return err },
	} {
		if err := p.call(do); err != nil {
			return err
		}
	}
	return nil
}

// takeOver has runners take over what another instance claimed: one ends its task, one dies.
func (p *process) takeOver() error {
	newID := func() plan.InstanceID { return plan.InstanceID{ID: plan.NewID(time.Now())} }
	claimer := plan.Instance{ID: newID(), Node: "n3", Host: "host", Lease: time.Minute, Threads: 2}
	if err := p.call(func() error { return p.s.Register(p.ctx, claimer) }); err != nil {
		return err
	}
	var did protocol.Turned
	turn := protocol.Turn{Instance: claimer.ID, Plan: p.main.ID, Plugins: []string{"exec"}, Slots: 2}
	if err := p.call(func() (err error) { did, err = p.s.Turn(p.ctx, turn); return err }); err != nil {
		return err
	}
	for k, claimed := range did.Claimed {
		var c protocol.ClaimedTask
		runner := plan.Instance{ID: newID(), Node: "n3", Host: "host", Lease: time.Minute, Runner: true}
		for _, do := range []func() error{
			func() error { return p.s.Register(p.ctx, runner) },
			func() (err error) {
				c, err = p.s.Take(p.ctx, protocol.Take{Instance: runner.ID, Task: claimed.Task, Start: k == 0})
				return err
			},
			func() error {
				if k > 0 {
					_, err := p.s.Rescue(p.ctx, runner.ID, 0)
					return err
				}
				_, err := p.s.Turn(p.ctx, protocol.Turn{Instance: runner.ID, Ended: []protocol.Ending{p.do(c)}})
				return err
			},
			func() error { return p.s.Leave(p.ctx, runner.ID) },
		} {
			if err := p.call(do); err != nil {
				return err
			}
		}
	}
	return p.call(func() error { return p.s.Leave(p.ctx, claimer.ID) })
}

// runMain is a node's loop, until the plan has ended.
func (p *process) runMain() error {
	var ended []protocol.Ending
	for round := 0; ; round++ {
		if round > 500 {
			return fmt.Errorf("the plan has not ended after %d turns: %+v", round, p.plan(p.main.ID).Counts)
		}
		turn := protocol.Turn{Instance: p.node, Plan: p.main.ID, Plugins: []string{"exec"}, Ended: ended, Slots: 4, Start: round%2 == 0}
		var did protocol.Turned
		if err := p.call(func() (err error) { did, err = p.s.Turn(p.ctx, turn); return err }); err != nil {
			return err
		}
		for _, e := range ended {
			delete(p.holding, e.Task)
		}
		if ended = nil; !turn.Start && len(did.Claimed) > 0 {
			claims := make([]protocol.Claim, len(did.Claimed))
			for i, c := range did.Claimed {
				claims[i] = c.Claim
			}
			if err := p.call(func() error { _, err := p.s.Start(p.ctx, claims); return err }); err != nil {
				return err
			}
		}
		for _, c := range did.Claimed {
			if p.holding[c.Task] = true; p.finished[c.Task] {
				p.Errorf("task %q had ended, and runs again", c.Name)
			}
			ended = append(ended, p.do(c))
		}
		if err := p.addLate(); err != nil {
			return err
		}
		if len(did.Claimed) > 0 || did.More {
			continue
		}
		now, err := p.s.Plan(p.ctx, p.main.ID)
		if err == nil && now.State.Ended() != did.Over {
			p.Errorf("a turn says of a plan that is %v: over is %v", now.State, did.Over)
		}
		if err != nil || did.Over {
			return err
		}
		if err := p.answer(); err != nil {
			return err
		}
		p.pass(2 * time.Minute)
		if err := p.sweep(); err != nil {
			return err
		}
	}
}

// answer approves what the main plan asks, once.
func (p *process) answer() error {
	ask, err := p.s.Task(p.ctx, p.id("ask"))
	if err != nil || !ask.AwaitsAnswer() {
		return err
	}
	err = p.call(func() error {
		return p.s.AnswerTask(p.ctx, ask.ID, rules.Answer{Approve: true, Asked: ask.Started})
	})
	if errors.Is(err, plan.ErrConflict) { // the answer before was made, and its answer was lost
		err = nil
	}
	return err
}

func (p *process) sweep() error {
	holding := make([]plan.TaskID, 0, len(p.holding))
	for id := range p.holding {
		holding = append(holding, id)
	}
	for more := true; more; {
		if err := p.call(func() error {
			did, err := p.s.Sweep(p.ctx, protocol.Sweep{Instance: p.node, Holding: holding})
			more = did.More
			return err
		}); err != nil {
			return err
		}
	}
	return p.call(func() error { _, err := p.s.Beat(p.ctx, protocol.Beat{Instance: p.node}); return err })
}

// do runs a task: its output is its name.
func (p *process) do(c protocol.ClaimedTask) protocol.Ending {
	e := succeed(c, fmt.Sprintf("%q", c.Name))
	switch {
	case c.Approve != nil:
		return rules.AskApproval(&c)
	case c.Name == "flaky" && c.Attempt == 1:
		return later(c, time.Minute)
	case c.Name == "bad" && !strings.Contains(string(c.Params), "fixed"):
		return fail(c)
	case c.Name == "list":
		e.Output = json.RawMessage(`[1,2,3]`)
	case c.Name == "dir" && !strings.Contains(string(c.Params), "moved"):
		e.Output = json.RawMessage(`[1,2,3]`)
	case c.Name == "dir":
		e.Output = json.RawMessage(`[4,5]`)
	case c.Name == "files":
		return expand(c, `"x"`, `"y"`)
	}
	e.Log = []plan.LogEntry{{At: time.Now(), Attempt: c.Attempt, Stream: plan.Stdout, Text: "done\n"}}
	return e
}

// addLate adds tasks once join has ended.
func (p *process) addLate() error {
	there, err := p.s.Tasks(p.ctx, store.TaskQuery{IDs: []plan.TaskID{p.id("join"), p.late[1].ID}})
	if err != nil || len(there) == 2 || !there[0].Status.Finished() {
		return err
	}
	return p.call(func() error { return p.s.AddTasks(p.ctx, p.main.ID, p.late) })
}

// fix retries the task that failed.
func (p *process) fix() error {
	return p.retry("bad", false, `{"fixed":true}`)
}

// redo retries one that succeeded, and all below it, among which are items that are made anew.
func (p *process) redo() error {
	return p.retry("dir", true, `{"moved":true}`)
}

// retry takes a task back with new params, unless it has those.
func (p *process) retry(name string, downstream bool, params string) error {
	tasks, err := p.s.Tasks(p.ctx, store.TaskQuery{Plan: p.main.ID, Needs: true, Params: true, Limit: 1000})
	if err != nil {
		return err
	}
	k := slices.IndexFunc(tasks, func(t plan.Task) bool { return t.Name == name })
	if has, err := canonical(tasks[k].Params); err != nil || has == params || !tasks[k].Status.Finished() {
		return err
	}
	chosen, err := rules.SelectRetry(tasks, []plan.TaskID{tasks[k].ID}, downstream)
	if err != nil {
		return err
	}
	p.retried = make(map[plan.TaskID]bool, len(chosen))
	for _, c := range chosen {
		delete(p.finished, c.ID)
		p.retried[c.ID] = true
	}
	replace := []plan.Task{{ID: tasks[k].ID, Name: name, Queue: tasks[k].Queue, Params: json.RawMessage(params)}}
	ask := rules.Ask{Tasks: []plan.TaskID{tasks[k].ID}, Downstream: downstream, Replace: replace}
	err = p.call(func() error { _, err := p.s.Retry(p.ctx, p.main.ID, ask); return err })
	if errors.Is(err, plan.ErrConflict) && p.k.tripped { // the retry that had no answer was made, or begun
		err = nil
	}
	if err == nil {
		p.retried = nil
	}
	return err
}

// cancelDoomed cancels the second plan while a task of it runs.
func (p *process) cancelDoomed() error {
	if p.deleting {
		return nil
	}
	var did protocol.Turned
	turn := protocol.Turn{Instance: p.node, Plan: p.doomed.ID, Plugins: []string{"exec"}, Slots: 1, Start: true}
	if err := p.call(func() (err error) { did, err = p.s.Turn(p.ctx, turn); return err }); err != nil {
		return err
	}
	err := p.call(func() error { return p.s.CancelPlan(p.ctx, p.doomed.ID, false) })
	if err != nil && !errors.Is(err, plan.ErrPlanEnded) {
		return err
	}
	turn.Slots = 0
	for _, c := range did.Claimed {
		turn.Ended = append(turn.Ended, protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
	}
	if err := p.call(func() error { _, err := p.s.Turn(p.ctx, turn); return err }); err != nil {
		return err
	}
	if err := p.sweep(); err != nil {
		return err
	}
	err = p.call(func() error { return p.s.CancelPlan(p.ctx, p.doomed.ID, true) })
	if err != nil && !errors.Is(err, plan.ErrPlanEnded) {
		return err
	}
	return p.sweep()
}

// deleteDoomed deletes the second plan, or ends what another process began of that.
func (p *process) deleteDoomed() error {
	p.deleting = true
	for more := true; more; {
		err := p.call(func() (err error) { more, err = p.s.DeletePlan(p.ctx, p.doomed.ID, 3); return err })
		if errors.Is(err, plan.ErrNotFound) {
			break
		}
		if err != nil {
			return err
		}
	}
	for more := true; more; {
		if err := p.call(func() (err error) { _, more, err = p.s.Prune(p.ctx, 0, 3); return err }); err != nil {
			return err
		}
	}
	return nil
}

// verify compares what is left with what the undisturbed workload leaves.
func (w *workload) verify() {
	w.Helper()
	w.checkSettled()
	want := []string{"person cancelled", "unwanted skipped", "unmoved skipped"}
	for _, name := range strings.Fields("r0 r1 r2 r3 r4 r5 join fan0 fan1 fan2 fan3 fan4 fan5 fan6 fan7 flaky after-flaky list copy copy[0] copy[1] copy[2] " +
		"gathered files files[0] files[1] sum dir visit visit[0] visit[1] visited bad after-bad below anyway late late2 ask asked undo tell") {
		want = append(want, name+" succeeded")
	}
	w.want(w.main, want...)
	w.equal("tasks of main", w.plan(w.main.ID).Counts.Stored(), len(want))
	w.wantPlan(w.main, plan.PlanCancelled)
	w.gone(w.doomed, w.victims[0].ID)
	for name, params := range map[string]string{
		"join":     `{"needs":{"r0":"r0","r1":"r1","r2":"r2","r3":"r3","r4":"r4","r5":"r5"},"args":["r0","r1","r2","r3","r4","r5"]}`,
		"fan7":     `{"needs":{"join":"join"},"args":["join"]}`,
		"copy[1]":  `{"needs":{"list":null},"args":[null],"item":2}`,
		"gathered": `{"needs":{"copy":["copy[0]","copy[1]","copy[2]"]},"args":[["copy[0]","copy[1]","copy[2]"]]}`,
		"sum":      `{"needs":{"files":["files[0]","files[1]"]},"args":[["files[0]","files[1]"]]}`,
		"late2":    `{"needs":{"r0":"r0","late":"late"},"args":["r0","late"]}`,
		"bad":      `{"fixed":true}`,
		"visit[1]": `{"needs":{"dir":null},"args":[null],"item":5}`,
		"visited":  `{"needs":{"visit":["visit[0]","visit[1]"]},"args":[["visit[0]","visit[1]"]]}`,
	} {
		w.equalJSON("params of "+name, w.named(w.main, name).Params, params)
	}
	for i, params := range []string{`{"set":2}`, `{"set":3,"needs":{"first":"first"},"args":["first"]}`} {
		t := w.task(w.plain[i].ID)
		w.equal("changed task "+t.Name, []any{t.Status, t.Retry.Attempts}, []any{plan.Succeeded, 2 + i})
		w.equalJSON("params of "+t.Name, t.Params, params)
	}
	entries, _, err := w.s.Log(w.ctx, w.id("join"), 0, 10)
	w.no(err)
	attempts := map[int]bool{} // one that died may have printed already
	for _, e := range entries {
		attempts[e.Attempt] = true
	}
	if len(entries) == 0 || len(attempts) != len(entries) {
		w.Errorf("the log of join has %d entries, want one for each attempt", len(entries))
	}
	w.equal("instances", len(must(w.s.Instances(w.ctx))(w.world)), 0)
}
