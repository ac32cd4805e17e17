package mongodb

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

func TestTheLowestFreeSlotsAreClaimed(t *testing.T) {
	at := func(slots ...int) (active []taskDoc) {
		for _, n := range slots {
			active = append(active, taskDoc{Slot: n})
		}
		return active
	}
	for _, c := range []struct {
		name          string
		active        []taskDoc
		threads, want int
		free          []int
	}{
		{"all are free", nil, 3, 9, []int{1, 2, 3}},
		{"no more than are asked for", nil, math.MaxInt, 2, []int{1, 2}},
		{"between those that are taken", at(2, 4), 6, 9, []int{1, 3, 5, 6}},
		{"a task without a slot uses up the highest", at(0, 2), 4, 9, []int{1, 3}},
		{"so does one beyond a limit that was lowered", at(1, 7), 3, 9, []int{2}},
		{"none is left", at(1, 0, 0), 2, 9, []int{}},
		{"a queue that is paused", nil, 0, 9, []int{}},
		{"a limit that means nothing", at(1), math.MinInt, 9, []int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lowestFree(c.active, queueSlot, c.threads, c.want); !slices.Equal(got, c.free) {
				t.Errorf("got %v, want %v", got, c.free)
			}
		})
	}
}

func TestSlotsAreChosenByChance(t *testing.T) {
	chosen := map[int]bool{}
	for range 1000 {
		some := someOf([]int{1, 2, 3, 5, 8}, 2)
		if len(some) != 2 || some[0] >= some[1] {
			t.Fatalf("got %v, want two in ascending order", some)
		}
		chosen[some[0]], chosen[some[1]] = true, true
	}
	if len(chosen) != 5 {
		t.Errorf("of five slots these were chosen: %v", chosen)
	}
	if few := someOf([]int{4, 6}, 3); !slices.Equal(few, []int{4, 6}) {
		t.Errorf("got %v of 4 and 6, want both", few)
	}
}

func TestWhoseClaimClashedLeavesSlotsAlone(t *testing.T) {
	s, _, no := openTest(t)
	turn := protocol.Turn{Instance: flatPlan(t, s, 3), Slots: 10, Plugins: []string{"x", "y"}, Start: true}
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "narrow", Plugin: "y", Threads: 2})
	no(err)
	p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "narrow"})
	no(err)
	no(s.AddTasks(t.Context(), p.ID, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "n", Queue: q.ID}}))
	no(s.Ready(t.Context(), p.ID))
	claim := func() (names []string) {
		did, err := s.Turn(t.Context(), turn)
		no(err)
		for _, c := range did.Claimed {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		return names
	}

	s.locked(func() { s.rests = time.Now().Add(restsFor) })
	s.rests = s.rests.Add(time.Hour)
	if got, want := claim(), []string{"t0", "t1", "t2"}; !slices.Equal(got, want) {
		t.Errorf("a claim took %v, want %v, which need no slots", got, want)
	}
	s.rests = s.rests.Add(-time.Hour - restsFor)
	if got, want := claim(), []string{"n"}; !slices.Equal(got, want) {
		t.Errorf("a claim took %v, want %v", got, want)
	}
}

// TestWhatANodeHasOfAQueueIsNotCountedAndThenExceeded has one claimer come between what another one counts and what it claims; each is after
// a task of its own.
func TestWhatANodeHasOfAQueueIsNotCountedAndThenExceeded(t *testing.T) {
	uri, _ := database(t)
	ctx, no := t.Context(), noError(t)
	between := func() {}
	open := func(hook store.Hook) *Store {
		s, err := Open(ctx, uri, Options{Hook: hook})
		no(err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	a, b := open(func(written bool) error {
		if come := between; !written {
			between = func() {}
			come()
		}
		return nil
	}), open(nil)
	q, err := b.EnsureQueue(ctx, plan.Queue{Name: "narrow", Plugin: "x", Unlimited: true, NodeThreads: 1})
	no(err)
	claim := func(s *Store) func() int {
		p, err := b.CreatePlan(ctx, plan.Plan{Name: "narrow"})
		no(err)
		no(b.AddTasks(ctx, p.ID, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "n", Queue: q.ID}}))
		no(b.Ready(ctx, p.ID))
		id := plan.InstanceID{ID: plan.NewID(time.Now())}
		no(b.Register(ctx, plan.Instance{ID: id, Node: "n1", Plugins: []string{"x"}}))
		return func() int {
			did, err := s.Turn(ctx, protocol.Turn{Instance: id, Slots: 5, Plugins: []string{"x"}, Start: true, Plan: p.ID})
			no(err)
			return len(did.Claimed)
		}
	}
	first, second := claim(a), claim(b)
	got := 0
	between = func() { got += second() }
	if got += first(); got != 1 {
		t.Errorf("%d tasks were claimed, want 1, which is what the queue lets one node have", got)
	}
}

// TestWhatOtherProgramsClaimMeanwhileIsNotExceeded has other programs, which know of no slots, come between what a claim counts and what it
// takes. They take the oldest tasks, and the claim the newest, so that neither is after the other's.
func TestWhatOtherProgramsClaimMeanwhileIsNotExceeded(t *testing.T) {
	uri, db := database(t)
	ctx, no := t.Context(), noError(t)
	between := func() {}
	s, err := Open(ctx, uri, Options{Hook: func(written bool) error {
		if come := between; !written {
			between = func() {}
			come()
		}
		return nil
	}})
	no(err)
	t.Cleanup(func() { _ = s.Close() })
	other := disbatch{db.Collection("tasks")}
	q, err := s.EnsureQueue(ctx, plan.Queue{Name: "narrow", Plugin: "x", Threads: 4, Sort: plan.SortLIFO})
	no(err)
	for range 12 {
		_, err := other.Insert(ctx, q.ID, []byte(`{}`), false)
		no(err)
	}
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(ctx, plan.Instance{ID: id, Node: "n1", Plugins: []string{"x"}}))
	_, err = db.Collection("nodes").InsertOne(ctx, d("node", "perl1", "timestamp", time.Now()))
	no(err)
	_, err = s.Beat(ctx, protocol.Beat{Instance: id})
	no(err)
	between = func() {
		for range 3 {
			_, _, err := other.Claim(ctx, q.ID, "perl1")
			no(err)
		}
	}
	did, err := s.Turn(ctx, protocol.Turn{Instance: id, Slots: 9, Plugins: []string{"x"}, Start: true})
	no(err)
	if len(did.Claimed) != 1 {
		t.Errorf("%d tasks were claimed beside 3 of another program's, want 1: the queue has 4 threads", len(did.Claimed))
	}
	for status, want := range map[plan.Status]int64{plan.Queued: 8, plan.Claimed: 3, plan.Running: 1} {
		got, err := db.Collection("tasks").CountDocuments(ctx, d("status", status))
		no(err)
		if got != want {
			t.Errorf("%d tasks are %v, want %d", got, status, want)
		}
	}
	back, err := db.Collection("tasks").CountDocuments(ctx, d("status", plan.Queued, "node", nil, "token", nil, "slot", nil, "attempt", wire.OrNone(0)))
	no(err)
	if back != 8 {
		t.Errorf("of 8 queued tasks %d are as if nobody had claimed them", back)
	}
}
