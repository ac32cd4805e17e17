//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// A scales is a store whose queues are balanced. It counts and checks each change. It can cut off a
// node, which then sees a dead store.
type scales struct {
	*model.Store
	dead   atomic.Bool
	counts atomic.Int64
	wait   time.Duration                                 // that counting takes
	before func()                                        // called once it has counted
	refuse func(ctx context.Context, queue string) error // called before each change of a queue: why it cannot be changed
	set    func(queues []plan.Queue)                     // called after each

	mu   sync.Mutex
	held []time.Time // when the role was asked for and held
}

func (s *scales) Hold(ctx context.Context, role protocol.Role, i plan.InstanceID) (bool, error) {
	if s.dead.Load() {
		return false, errCut
	}
	held, err := s.Store.Hold(ctx, role, i)
	if held {
		s.mu.Lock()
		s.held = append(s.held, time.Now())
		s.mu.Unlock()
	}
	return held, err
}

func (s *scales) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	if s.dead.Load() {
		return protocol.Beaten{}, errCut
	}
	return s.Store.Beat(ctx, b)
}

func (s *scales) Register(ctx context.Context, i plan.Instance) error {
	if s.dead.Load() {
		return errCut
	}
	return s.Store.Register(ctx, i)
}

func (s *scales) CountQueues(ctx context.Context, queues []plan.Queue) error {
	s.counts.Add(1)
	if s.wait > 0 {
		time.Sleep(s.wait)
	}
	err := s.Store.CountQueues(ctx, queues)
	if s.before != nil {
		s.before()
	}
	return err
}

func (s *scales) SetThreads(ctx context.Context, was plan.Queue, threads int) error {
	if s.refuse != nil {
		if err := s.refuse(ctx, was.Name); err != nil {
			return err
		}
	}
	err := s.Store.SetThreads(ctx, was, threads)
	if s.set != nil {
		all, _ := s.Queues(ctx)
		s.set(all)
	}
	return err
}

// balanced returns a world with a store on which queues are balanced.
func balanced(t *testing.T) (*world, *scales) {
	w := newWorld(t)
	s := &scales{Store: w.store.(*model.Store)}
	w.store = s
	return w, s
}

// queue makes a queue whose tasks no node here can run, with so many of them.
func (w *world) queue(name string, threads, tasks int) {
	w.Helper()
	q, err := w.store.CreateQueue(w.Context(), plan.Queue{Name: name, Plugin: "elsewhere", Threads: threads, Unlimited: threads < 0})
	if err != nil {
		w.Fatal(err)
	}
	w.queued(q, tasks)
}

func (w *world) queued(q plan.Queue, tasks int) {
	w.Helper()
	for i := range tasks {
		task := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint(q.Name, i), Queue: q.ID}
		if err := w.store.AddTasks(w.Context(), plan.PlanID{}, []plan.Task{task}); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) find(name string) plan.Queue {
	w.Helper()
	all, err := w.store.Queues(w.Context())
	i := slices.IndexFunc(all, func(q plan.Queue) bool { return q.Name == name })
	if err != nil || i < 0 {
		w.Fatalf("queue %q of %v: %v", name, all, err)
	}
	return all[i]
}

// threads are those of all queues, by name.
func (w *world) threads() string {
	w.Helper()
	all, err := w.store.Queues(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	var words []string
	for _, q := range all {
		n := fmt.Sprint(q.Threads)
		if q.Unlimited {
			n = "any"
		}
		words = append(words, q.Name+" "+n)
	}
	return strings.Join(words, ", ")
}

func (w *world) balance(settings string) {
	w.Helper()
	if err := w.store.(*scales).SetBalance(w.Context(), json.RawMessage(settings)); err != nil {
		w.Fatal(err)
	}
}

// state is what the document says of who works by it.
func (w *world) state() balance.State {
	w.Helper()
	document, err := w.store.(*scales).Balance(w.Context())
	var s balance.State
	if err := errors.Join(err, json.Unmarshal(document, &s)); err != nil {
		w.Fatalf("%s: %v", document, err)
	}
	return s
}

// at runs nodes, and then does what is to be done at times after their start; the last of it ends them.
func (w *world) at(nodes []*den.Node, steps map[time.Duration]func()) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			if err := n.Run(ctx); err != nil {
				w.Error(err)
			}
		})
	}
	began := time.Now()
	var whens []time.Duration
	for when := range steps {
		whens = append(whens, when)
	}
	slices.Sort(whens)
	for _, when := range whens {
		time.Sleep(time.Until(began.Add(when)))
		steps[when]()
	}
	stop()
	wg.Wait()
}

func (w *world) wantThreads(want string) func() {
	return func() {
		w.Helper()
		if got := w.threads(); got != want {
			w.Errorf("threads are %s, want %s", got, want)
		}
	}
}

const every = 5 * time.Second

const twoSets = `{"queues": [["bulk"], ["urgent"]], "max_tasks": {"* 00:00": 5, "* 00:01": 8}}`

func TestANodeBalancesQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := balanced(t)
		w.queue("bulk", -1, 20)
		w.queue("urgent", 0, 2)
		w.queue("other", 7, 3)
		w.balance(twoSets)
		sum := 0
		s.set = func(all []plan.Queue) {
			sum = 0
			for _, q := range all {
				if sum += q.Threads; q.Unlimited {
					sum += 1000
				}
			}
			if sum > 5+7 && time.Now().Minute() == 0 {
				t.Errorf("on the way the queues have %s", w.threads())
			}
		}
		n := w.node(den.Config{Balance: &den.Balance{Zone: time.UTC, Every: every}})
		w.at([]*den.Node{n}, map[time.Duration]func(){
			time.Second: w.wantThreads("bulk 3, other 7, urgent 2"),
			2 * time.Second: func() {
				if got, want := w.state(), (balance.State{Status: "OK", Message: "QueueBalance is running", Timestamp: time.Now().Unix() - 2}); got != want {
					t.Errorf("the state is %+v, want %+v", got, want)
				}
				w.queued(w.find("urgent"), 9)
			},
			6 * time.Second: w.wantThreads("bulk 0, other 7, urgent 5"),
			7 * time.Second: func() {
				if age := time.Now().Unix() - w.state().Timestamp; age != 2 {
					t.Errorf("the state is %d s old, want 2", age)
				}
			},
			61 * time.Second: w.wantThreads("bulk 0, other 7, urgent 8"),
		})
	})
}

func TestANodeChangesNoQueueWhere(t *testing.T) {
	for _, c := range []struct {
		name     string
		document string // empty: none
		cfg      den.Balance
		want     balance.State // without the time
	}{
		{"it only pretends", `{"queues": [["bulk"]], "max_tasks": {"* 00:00": 5}}`, den.Balance{Pretend: true}, balance.State{Status: "OK", Message: "QueueBalance is running"}},
		{"there is no document", ``, den.Balance{}, balance.State{Status: "OK", Message: "QueueBalance is running"}},
		{"it is disabled", `{"queues": [["bulk"]], "max_tasks": {"* 00:00": 5}, "disabled": 946684860}`, den.Balance{},
			balance.State{Status: "OK", Message: "QueueBalance disabled until Sat Jan  1 00:01:00 2000"}},
		{"the document is malformed", `{"queues": [["bulk"], "urgent"], "max_tasks": {"* 00:00": 5}}`, den.Balance{},
			balance.State{Status: "CRITICAL", Message: `QueueBalance: queues[1] is "urgent"; it has to be a list of names, as in ["bulk"]`}},
		{"the document says no number", `{"queues": [["bulk"]], "max_tasks": {}}`, den.Balance{},
			balance.State{Status: "CRITICAL", Message: `QueueBalance: max_tasks is empty; say how many tasks the queues may run, as in {"* 00:00": 5}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := balanced(t)
				w.queue("bulk", 1, 20)
				if c.document != "" {
					w.balance(c.document)
				}
				c.cfg.Zone, c.cfg.Every = time.UTC, every
				n := w.node(den.Config{Balance: &c.cfg})
				w.at([]*den.Node{n}, map[time.Duration]func(){
					8 * time.Second: w.wantThreads("bulk 1"),
					9 * time.Second: func() {
						got := w.state()
						if got.Timestamp != time.Now().Unix()-4 {
							t.Errorf("the state is of %d, want 4 s ago", got.Timestamp)
						}
						if got.Timestamp = 0; got != c.want {
							t.Errorf("the state is\n%+v, want\n%+v", got, c.want)
						}
						if c.want.Message == "QueueBalance is running" {
							return
						}
						time.Sleep(time.Minute) // until it is no longer disabled
						if !strings.Contains(c.want.Message, "until") {
							w.balance(`{"queues": [["bulk"]], "max_tasks": {"* 00:00": 5}}`)
							time.Sleep(5 * time.Second)
						}
						w.wantThreads("bulk 5")()
						if got := w.state(); got.Status != balance.OK || got.Message != "QueueBalance is running" {
							t.Errorf("afterwards the state is %+v", got)
						}
					},
				})
			})
		})
	}
}

func TestAQueueThatIsNotThereIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := balanced(t)
		w.queue("bulk", 1, 20)
		w.balance(`{"queues": [["bulk"], ["x"]], "max_tasks": {"* 00:00": 5}}`)
		w.at([]*den.Node{w.node(den.Config{Balance: &den.Balance{Every: every}})}, map[time.Duration]func(){
			time.Second: w.wantThreads("bulk 5"),
			3 * time.Second: func() {
				got := w.state()
				if want := `QueueBalance: queues[1][0]: there is no queue "x"`; got.Status != balance.Warning || got.Message != want {
					t.Errorf("the state is %+v, want %s", got, want)
				}
			},
		})
	})
}

func TestWhatAPersonSetsWhileQueuesAreCountedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := balanced(t)
		w.queue("bulk", 1, 20)
		w.balance(twoSets)
		var once sync.Once
		s.before = func() {
			once.Do(func() {
				q := w.find("bulk")
				q.Sort, q.Pin = plan.SortLIFO, []plan.NodeName{"n1"}
				if err := w.store.SetQueue(w.Context(), q); err != nil {
					t.Error(err)
				}
			})
		}
		w.at([]*den.Node{w.node(den.Config{Balance: &den.Balance{Zone: time.UTC, Every: every}})}, map[time.Duration]func(){time.Second: func() {
			if q := w.find("bulk"); q.Threads != 5 || q.Sort != plan.SortLIFO || len(q.Pin) != 1 {
				t.Errorf("the queue is %+v", q)
			}
		}})
	})
}

func TestWhatAPersonSetsWhileQueuesAreChangedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := balanced(t)
		w.queue("bulk", 9, 20)
		w.queue("single", 0, 20)
		w.queue("urgent", 0, 1)
		w.balance(`{"queues": [["bulk"], ["urgent"], ["single"]], "max_tasks": {"* 00:00": 5}}`)
		var once sync.Once
		s.refuse = func(context.Context, string) error {
			once.Do(func() { // before the first one is changed
				single, urgent := w.find("single"), w.find("urgent")
				single.Threads = 2
				urgent.Sort, urgent.Pin, urgent.NodeThreads = plan.SortLIFO, []plan.NodeName{"n1"}, 2
				if err := errors.Join(w.store.SetQueue(w.Context(), single), w.store.SetQueue(w.Context(), urgent)); err != nil {
					t.Error(err)
				}
			})
			return nil
		}
		w.at([]*den.Node{w.node(den.Config{Balance: &den.Balance{Zone: time.UTC, Every: every}})}, map[time.Duration]func(){
			time.Second: func() {
				w.wantThreads("bulk 0, single 2, urgent 1")()
				if q := w.find("urgent"); q.Sort != plan.SortLIFO || len(q.Pin) != 1 || q.NodeThreads != 2 {
					t.Errorf("the queue is %+v", q)
				}
				if got := w.state(); got.Status != balance.OK {
					t.Errorf("the state is %+v", got)
				}
			},
			6 * time.Second: w.wantThreads("bulk 0, single 4, urgent 1"),
		})
	})
}

func TestAQueueThatCannotBeChangedHoldsUpNoOther(t *testing.T) {
	invalid := func(context.Context) error { return errors.New("document failed validation") }
	silent := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, c := range []struct {
		name    string
		threads int // of bulk, which is to have none
		refuse  func(context.Context) error
		within  time.Duration
		want    string
		why     string
	}{
		{"others lose what they are to lose, and get no more than that leaves", 4, invalid, time.Second,
			"archive 0, bulk 4, urgent 1", "document failed validation"},
		{"where it has no limit others get nothing", -1, invalid, time.Second, "archive 0, bulk any, urgent 0", "document failed validation"},
		{"there is no answer", 4, silent, 11 * time.Second, "archive 0, bulk 4, urgent 1", "store unavailable: no answer within 10s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, s := balanced(t)
				w.queue("bulk", c.threads, 20)
				w.queue("archive", 2, 0)
				w.queue("urgent", 0, 20)
				w.balance(`{"queues": [["bulk"], ["urgent"], ["archive"]], "max_tasks": {"* 00:00": 5}}`)
				var mended atomic.Bool
				s.refuse = func(ctx context.Context, name string) error {
					if name == "bulk" && !mended.Load() {
						return c.refuse(ctx)
					}
					return nil
				}
				w.at([]*den.Node{w.node(den.Config{Lease: 10 * time.Second, Balance: &den.Balance{Zone: time.UTC, Every: every}})}, map[time.Duration]func(){
					c.within: func() {
						w.wantThreads(c.want)()
						got := w.state()
						if want := `QueueBalance: queue "bulk" cannot be changed: ` + c.why; got.Status != balance.Warning || got.Message != want {
							t.Errorf("the state is %+v, want %s", got, want)
						}
						mended.Store(true)
					},
					5 * time.Minute: func() {
						w.wantThreads("archive 0, bulk 0, urgent 5")()
						if got := w.state(); got.Status != balance.OK {
							t.Errorf("afterwards the state is %+v", got)
						}
					},
				})
			})
		})
	}
}

func TestTheStateIsShortHoweverMuchIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := balanced(t)
		var names []string
		for i := range 2_000 {
			names = append(names, fmt.Sprint("x", i))
		}
		sets, err := json.Marshal([][]string{names})
		if err != nil {
			t.Fatal(err)
		}
		w.balance(fmt.Sprintf(`{"queues": %s, "max_tasks": {"* 00:00": 5}}`, sets))
		state := func(suffix string) func() {
			return func() {
				if got := w.state().Message; len(got) > 4000 || !strings.HasSuffix(got, suffix) {
					t.Errorf("the state of %d bytes is %.200s; want one that ends with %s", len(got), got, suffix)
				}
			}
		}
		w.at([]*den.Node{w.node(den.Config{Balance: &den.Balance{Every: every}})}, map[time.Duration]func(){
			time.Second:     state("; and 1990 more"),
			2 * time.Second: func() { w.balance(`{"max_tasks": 5, "queues": [[` + strings.Repeat(`"a",`, 5_000) + `"a"]]}`) },
			6 * time.Second: state("; and 4991 more"),
		})
	})
}

func TestTheStateIsToldThoughNoQueueCanBeChangedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := balanced(t)
		var names []string
		for i := range 9 {
			names = append(names, fmt.Sprint("q", i))
			w.queue(names[i], 1, 0)
		}
		sets, err := json.Marshal([][]string{names})
		if err != nil {
			t.Fatal(err)
		}
		w.balance(fmt.Sprintf(`{"queues": %s, "max_tasks": {"* 00:00": 5}}`, sets))
		s.refuse = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		w.at([]*den.Node{w.node(den.Config{Lease: 7 * time.Second, Balance: &den.Balance{Every: every}})}, map[time.Duration]func(){
			69 * time.Second: func() {
				got := w.state()
				if age := time.Now().Unix() - got.Timestamp; got.Status != balance.Warning || age > 55 {
					t.Errorf("the state of %d s ago is %+v; monitoring lets it be a minute old", age, got)
				}
				if !strings.HasSuffix(got.Message, "; queues left as they are, since the store is too slow: 6") {
					t.Errorf("the state is %+v", got)
				}
			},
		})
	})
}

func TestANodeTakesOverFromOneThatDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, first := balanced(t)
		second := &scales{Store: first.Store}
		w.queue("bulk", 0, 20)
		w.balance(twoSets)
		const lease = 10 * time.Second
		cfg := func(name plan.NodeName) den.Config {
			return den.Config{Name: name, Lease: lease, Balance: &den.Balance{Zone: time.UTC, Every: every}}
		}
		one := w.on(first, cfg("one"))
		other := w.on(second, cfg("other"))
		var died time.Time
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := one.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second) // so that the first node has the role
		w.at([]*den.Node{other}, map[time.Duration]func(){
			20 * time.Second: func() {
				if len(second.held) > 0 {
					t.Errorf("the second node balances while the first one does")
				}
				w.queued(w.find("bulk"), 1)
				first.dead.Store(true)
				died = time.Now()
			},
			40 * time.Second: func() {
				if len(second.held) == 0 {
					t.Fatal("the second node never balanced")
				}
				if took := second.held[0].Sub(died); took > lease+3*time.Second {
					t.Errorf("it took over after %v, want a lease of %v and some beats", took, lease)
				}
				if last := first.held[len(first.held)-1]; last.After(second.held[0]) {
					t.Errorf("the first node balanced after the second one did")
				}
				w.balance(`{"max_tasks": {"* 00:00": 3}}`)
			},
			46 * time.Second: w.wantThreads("bulk 3"),
			// It comes back as another instance, which does not balance.
			47 * time.Second: func() { first.dead.Store(false) },
			80 * time.Second: func() {
				if last := first.held[len(first.held)-1]; last.After(second.held[0]) {
					t.Errorf("the first node balances again beside the second one")
				}
			},
		})
		// Now that the second one has left, it is the first one's again.
		before := len(first.held)
		time.Sleep(2 * time.Second)
		if len(first.held) == before {
			t.Error("after the second node left the first one does not balance")
		}
		stop()
		wg.Wait()
	})
}

func TestCountingTakesNoMoreThanItsShareOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := balanced(t)
		w.queue("bulk", 0, 1)
		w.balance(twoSets)
		s.wait = 2 * time.Second
		w.at([]*den.Node{w.node(den.Config{Balance: &den.Balance{Every: every}})}, map[time.Duration]func(){109 * time.Second: func() {
			if n := s.counts.Load(); n != 5 {
				t.Errorf("in 109 s queues were counted %d times, which take 2 s each; want 5", n)
			}
		}})
		s.counts.Store(0)
		s.wait = 8 * time.Second
		w.at([]*den.Node{w.node(den.Config{Balance: &den.Balance{Every: every}})}, map[time.Duration]func(){115 * time.Second: func() {
			if n := s.counts.Load(); n != 4 {
				t.Errorf("in 115 s queues were counted %d times, which take 8 s each; want 4", n)
			}
		}})
	})
}

func TestABalancingNodeLogs(t *testing.T) {
	const (
		role    = "level=INFO msg=\"this node balances the queues\" pretend=false\n"
		running = "level=INFO msg=\"balance document\" status=OK message=\"QueueBalance is running\"\n"
		broken  = "level=ERROR msg=\"balance document\" status=CRITICAL message=\"QueueBalance: queues is 5; it has to be a list of lists of names, as in [[\\\"bulk\\\"], [\\\"urgent\\\"]]\"\n"
	)
	changed := func(from, to any, pretend bool) string {
		return fmt.Sprintf("level=INFO msg=\"threads of a queue are changed\" queue=bulk from=%v to=%v pretend=%v\n", from, to, pretend)
	}
	found := func(threads any) string {
		return fmt.Sprintf("level=INFO msg=balance max_tasks=5 queues=1\nlevel=INFO msg=queue queue=bulk queued=20 active=0 threads=%v share=5\n", threads)
	}
	pretends := strings.ReplaceAll(role, "false", "true")
	for _, c := range []struct {
		name string
		cfg  den.Balance
		want string
	}{
		{"by itself who balances, and what is wrong", den.Balance{}, role + running + broken},
		{"changes", den.Balance{Log: true}, role + changed("unlimited", 5, false) + running + broken},
		{"all", den.Balance{Verbose: true}, role + found("unlimited") + changed("unlimited", 5, false) + running + found(5) + broken},
		{"what it would change", den.Balance{Log: true, Pretend: true}, pretends + changed("unlimited", 5, true) + running + broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := balanced(t)
				w.queue("bulk", -1, 20)
				w.balance(`{"queues": [["bulk"]], "max_tasks": {"* 00:00": 5}}`)
				var log bytes.Buffer
				c.cfg.Every = every
				w.at([]*den.Node{w.node(den.Config{Balance: &c.cfg, Logger: logged(&log, slog.LevelInfo)})}, map[time.Duration]func(){
					6 * time.Second:  func() { w.balance(`{"queues": 5}`) },
					20 * time.Second: func() {},
				})
				got := ""
				for line := range strings.Lines(log.String()) {
					if !strings.Contains(line, "node st") && !strings.Contains(line, "msg=stopping") {
						got += line
					}
				}
				if got != c.want {
					t.Errorf("it logs\n%s, want\n%s", got, c.want)
				}
			})
		})
	}
}

func TestANodeNeedsAStoreThatCanBeBalanced(t *testing.T) {
	w := newWorld(t)
	_, err := den.New(&line{Store: w.store}, den.Config{Plugins: w.plugins, Balance: &den.Balance{}})
	if err == nil || !strings.Contains(err.Error(), "has no balance document") {
		t.Errorf("the error is %v", err)
	}
	if _, err := den.New(w.store, den.Config{Plugins: w.plugins, Balance: &den.Balance{Every: -1}}); err == nil {
		t.Error("a node balances each -1ns")
	}
}
