package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A Balancing is a store with a balance document.
type Balancing interface {
	store.Store
	store.Balance
}

// Balances runs the suite of store.Balance on a new, empty store and another handle on it.
func Balances(t *testing.T, s, other Balancing) {
	t.Run("the document", func(t *testing.T) { balanceDocument(t, s, other) })
	t.Run("one instance at a time", func(t *testing.T) { balanceHolder(t, s, other) })
	t.Run("threads", func(t *testing.T) { balanceThreads(t, s, other) })
}

func balanceDocument(t *testing.T, s, other Balancing) {
	ctx := t.Context()
	set := func(on Balancing, settings string) {
		t.Helper()
		if err := on.SetBalance(ctx, json.RawMessage(settings)); err != nil {
			t.Fatalf("set %s: %v", settings, err)
		}
	}
	want := func(document string) {
		t.Helper()
		var is, should any
		got, err := other.Balance(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.Unmarshal(got, &is), json.Unmarshal([]byte(document), &should)); err != nil || !reflect.DeepEqual(is, should) {
			t.Fatalf("the document is\n%s, want\n%s (%v)", got, document, err)
		}
	}
	if got, err := s.Balance(ctx); got != nil || err != nil {
		t.Fatalf("the document is %s, %v; want none", got, err)
	}
	var setters sync.WaitGroup // who make it at once make one
	for i, on := range []Balancing{s, other, s, other} {
		setters.Go(func() { set(on, fmt.Sprintf(`{"k%d": %d}`, i, i)) })
	}
	setters.Wait()
	want(`{"k0": 0, "k1": 1, "k2": 2, "k3": 3}`)
	set(s, `{"queues": [["bulk"], ["a", "b"]], "max_tasks": {"* 07:00": 5, "1 07:00": "6"}, "disabled": 1900000000, "k0": null}`)
	set(other, `{"status": "OK", "message": "QueueBalance is running", "timestamp": 1800000000, "k1": {"deep": [true]}}`)
	want(`{"queues": [["bulk"], ["a", "b"]], "max_tasks": {"* 07:00": 5, "1 07:00": "6"}, "disabled": 1900000000, "k0": null,
		"k1": {"deep": [true]}, "k2": 2, "k3": 3, "status": "OK", "message": "QueueBalance is running", "timestamp": 1800000000}`)
	set(s, `{"disabled": null, "max_tasks": {"2 07:00": 7}}`) // a value is replaced as a whole
	set(s, `{}`)
	want(`{"queues": [["bulk"], ["a", "b"]], "max_tasks": {"2 07:00": 7}, "disabled": null, "k0": null,
		"k1": {"deep": [true]}, "k2": 2, "k3": 3, "status": "OK", "message": "QueueBalance is running", "timestamp": 1800000000}`)
	for _, bad := range []string{`[1]`, `"text"`, `null`, `{"a":`, ``, `{"queues.0": 1}`, `{"$k": 1}`, `{"": 1}`} {
		if err := s.SetBalance(ctx, json.RawMessage(bad)); !errors.Is(err, balance.ErrMalformed) {
			t.Errorf("set %q: %v, want %v", bad, err, balance.ErrMalformed)
		}
	}
}

func balanceHolder(t *testing.T, s, other Balancing) {
	ctx := t.Context()
	register := func(name plan.NodeName) plan.InstanceID {
		t.Helper()
		i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: name, Lease: time.Minute}
		if err := s.Register(ctx, i); err != nil {
			t.Fatal(err)
		}
		return i.ID
	}
	want := func(on Balancing, i plan.InstanceID, want bool) {
		t.Helper()
		if held, err := on.Hold(ctx, protocol.RoleBalance, i); held != want || err != nil {
			t.Fatalf("instance %s holds the role: %v, %v; want %v", i, held, err, want)
		}
	}
	wantGone := func(i plan.InstanceID) {
		t.Helper()
		if held, err := s.Hold(ctx, protocol.RoleBalance, i); held || !errors.Is(err, plan.ErrInstanceGone) {
			t.Fatalf("instance %s, which is not registered, holds the role: %v, %v", i, held, err)
		}
	}
	wantGone(plan.InstanceID{ID: plan.NewID(time.Now())})
	a, b, c := register("a"), register("b"), register("c")
	want(s, a, true)
	want(other, b, false)
	want(other, a, true)
	if _, err := other.Rescue(ctx, a, -1); err != nil {
		t.Fatal(err)
	}
	wantGone(a)
	want(other, b, true)
	want(s, c, false)
	if err := s.Leave(ctx, b); err != nil {
		t.Fatal(err)
	}
	wantGone(b)
	// If many want the role at once, one gets it.
	all := []plan.InstanceID{c, register("d"), register("e"), register("f")}
	for range 5 {
		var mu sync.Mutex
		var holders []plan.InstanceID
		var wg sync.WaitGroup
		for n, i := range all {
			on := []Balancing{s, other}[n%2]
			wg.Go(func() {
				held, err := on.Hold(ctx, protocol.RoleBalance, i)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if held {
					holders = append(holders, i)
				}
			})
		}
		wg.Wait()
		if len(holders) != 1 {
			t.Fatalf("the role is held by %v, want one", holders)
		}
		want(other, holders[0], true)
		if err := s.Leave(ctx, holders[0]); err != nil {
			t.Fatal(err)
		}
		all = append(all[:0:0], register("g"), register("h"))
	}
}

func balanceThreads(t *testing.T, s, other Balancing) {
	ctx := t.Context()
	no := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(id plan.QueueID) plan.Queue {
		t.Helper()
		all, err := other.Queues(ctx)
		i := slices.IndexFunc(all, func(q plan.Queue) bool { return q.ID == id })
		if err != nil || i < 0 {
			t.Fatalf("queue %s of %v: %v", id, all, err)
		}
		return all[i]
	}
	want := func(q plan.Queue) {
		t.Helper()
		if got := read(q.ID); !reflect.DeepEqual(got, q) {
			t.Fatalf("the queue is\n%+v, want\n%+v", got, q)
		}
	}
	conflict := func(was plan.Queue, threads int) {
		t.Helper()
		before := read(was.ID)
		if err := s.SetThreads(ctx, was, threads); !errors.Is(err, plan.ErrConflict) {
			t.Fatalf("threads %d of a queue that was %+v and is %+v: %v, want %v", threads, was, before, err, plan.ErrConflict)
		}
		want(before)
	}
	q, err := s.CreateQueue(ctx, plan.Queue{
		Name: "threads", Plugin: "x", Threads: 2, Sort: plan.SortLIFO, Pin: []plan.NodeName{"a"}, Ignore: []plan.NodeName{"b"}, NodeThreads: 3,
	})
	no(err)
	was := q
	no(s.SetThreads(ctx, was, 5))
	q.Threads = 5
	want(q)
	no(s.SetThreads(ctx, was, 5)) // as after an answer that was lost
	want(q)
	conflict(was, 7)

	was = q
	q.Sort, q.Pin, q.Ignore, q.NodeThreads = plan.SortFIFO, []plan.NodeName{"c"}, nil, 0
	no(other.SetQueue(ctx, q))
	no(s.SetThreads(ctx, was, 0))
	q.Threads = 0
	want(q)

	was = q
	q.Unlimited = true
	no(other.SetQueue(ctx, q))
	conflict(was, 4)
	conflict(was, 1)
	no(s.SetThreads(ctx, q, 0))
	q.Unlimited = false
	want(q)
	was.Unlimited = true // and a limit of 0 was set since
	conflict(was, 4)

	if err := s.SetThreads(ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}}, 4); !errors.Is(err, plan.ErrNotFound) {
		t.Errorf("threads of a queue that is not there: %v, want %v", err, plan.ErrNotFound)
	}

	// If many read the same queue, one changes it.
	for range 5 {
		was := read(q.ID)
		var mu sync.Mutex
		var set []int
		var wg sync.WaitGroup
		for i, on := range []Balancing{s, other, s, other} {
			threads := was.Threads + 1 + i
			wg.Go(func() {
				err := on.SetThreads(ctx, was, threads)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					set = append(set, threads)
				} else if !errors.Is(err, plan.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := read(q.ID); len(set) != 1 || got.Threads != set[0] {
			t.Fatalf("threads %v were set, and the queue has %d; want one of them", set, got.Threads)
		}
	}

	// The next turn keeps to it.
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "woken", Lease: time.Minute}
	no(s.Register(ctx, i))
	no(s.AddTasks(ctx, plan.PlanID{}, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "waits", Queue: q.ID}}))
	was = read(q.ID)
	no(s.SetThreads(ctx, was, 0))
	claim := func(want int) {
		t.Helper()
		did, err := other.Turn(ctx, protocol.Turn{Instance: i.ID, Plugins: []string{"x"}, Slots: 1})
		if err != nil || len(did.Claimed) != want {
			t.Fatalf("with %d threads %d tasks are claimed, %v; want %d", read(q.ID).Threads, len(did.Claimed), err, want)
		}
	}
	was = read(q.ID)
	was.Pin = nil
	no(s.SetQueue(ctx, was)) // it was pinned to another node
	claim(0)
	no(s.SetThreads(ctx, was, 1))
	claim(1)
}
