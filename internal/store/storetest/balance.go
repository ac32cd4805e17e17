package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

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
	set(s, `{"disabled": null, "max_tasks": {}}`) // a value is replaced as a whole
	set(s, `{}`)
	want(`{"queues": [["bulk"], ["a", "b"]], "max_tasks": {}, "disabled": null, "k0": null,
		"k1": {"deep": [true]}, "k2": 2, "k3": 3, "status": "OK", "message": "QueueBalance is running", "timestamp": 1800000000}`)
	for _, bad := range []string{`[1]`, `"text"`, `null`, `{"a":`, ``, `{"queues.0": 1}`, `{"$k": 1}`, `{"": 1}`} {
		if err := s.SetBalance(ctx, json.RawMessage(bad)); !errors.Is(err, plan.ErrBalance) {
			t.Errorf("set %q: %v, want %v", bad, err, plan.ErrBalance)
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
		if held, err := on.HoldBalance(ctx, i); held != want || err != nil {
			t.Fatalf("instance %s holds the role: %v, %v; want %v", i, held, err, want)
		}
	}
	wantGone := func(i plan.InstanceID) {
		t.Helper()
		if held, err := s.HoldBalance(ctx, i); held || !errors.Is(err, plan.ErrInstanceGone) {
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
	// Of many who want it at once, one has it.
	all := []plan.InstanceID{c, register("d"), register("e"), register("f")}
	for range 5 {
		var mu sync.Mutex
		var holders []plan.InstanceID
		var wg sync.WaitGroup
		for n, i := range all {
			on := []Balancing{s, other}[n%2]
			wg.Go(func() {
				held, err := on.HoldBalance(ctx, i)
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
