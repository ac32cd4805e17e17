package sqlite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

func TestANodeOfOnePlanDoesNotReadThePlansOfOthers(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	i := register(t, s, "n1")
	newPlan(t, s, "others", manyTasks(300)...)
	mine := newPlan(t, s, "mine", task{name: "a"}, task{name: "b"})
	if err := s.Adopt(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	late, compiled := compile(t, s, "late", task{name: "c"})
	late.Own = true
	if _, err := s.CreatePlan(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if err := s.AddTasks(t.Context(), late.ID, compiled); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context(), late.ID); err != nil {
		t.Fatal(err)
	}
	if n := s.number("SELECT count(*) FROM tasks WHERE status = -2 AND lane <> plan"); n != 0 {
		t.Errorf("%d queued tasks are not in the lanes of their plans", n)
	}
	var got []string
	for _, c := range turn(t, s, protocol.Turn{Instance: i, Slots: 10, Plan: mine}).Claimed {
		got = append(got, c.Name)
	}
	if want := "a b"; strings.Join(got, " ") != want {
		t.Errorf("claimed %q of the one plan, want %q", got, want)
	}
	if got := turn(t, s, protocol.Turn{Instance: i, Slots: 1000}).Claimed; len(got) != 301 {
		t.Errorf("a node of all plans claimed %d tasks, want 301", len(got))
	}
}

func TestAClosedPlanDoesNotHideOthersInItsQueue(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	i := register(t, s, "n1")
	closed := newPlan(t, s, "closed", manyTasks(5000)...)
	for range 6 {
		turn(t, s, protocol.Turn{Instance: i})
	}
	open := newPlan(t, s, "open", task{name: "a"})
	if err := s.CancelPlan(t.Context(), closed, false); err != nil {
		t.Fatal(err)
	}
	for turns := 1; ; turns++ {
		did := turn(t, s, protocol.Turn{Instance: i, Slots: 10})
		if len(did.Claimed) == 0 && did.More && turns < 10 {
			continue
		}
		if len(did.Claimed) != 1 || did.Claimed[0].Plan != open {
			t.Errorf("turn %d claimed %v, more %v; want the task of the open plan", turns, did.Claimed, did.More)
		}
		break
	}
}

func TestAStaleClaimDoesNotStandInTheWayOfTheGoodOne(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	i := register(t, s, "n1")
	p := newPlan(t, s, "nightly", task{name: "a"})
	good := turn(t, s, protocol.Turn{Instance: i, Slots: 1}).Claimed[0].Claim
	stale := good
	stale.Attempt--
	var endings []protocol.Ending
	for _, c := range []protocol.Claim{stale, good, good} {
		endings = append(endings, protocol.Ending{Claim: c, Status: plan.Succeeded})
	}
	if did := turn(t, s, protocol.Turn{Instance: i, Ended: endings}); len(did.Lost) != 2 {
		t.Errorf("%d of three endings were refused, want those of a stale claim and of one that had ended", len(did.Lost))
	}
	if got := named(t, s, p, "a").Status; got != plan.Succeeded {
		t.Errorf("the task is %v, want succeeded", got)
	}
}

func TestATokenSaysWhichTaskAndWhichClaim(t *testing.T) {
	for _, c := range []struct{ n, token int64 }{{1, 1}, {1<<48 - 1, 1<<48 - 1}, {123456789, 1 << 40}} {
		if n, token := unpackToken(packToken(c.n, c.token)); n != c.n || token != c.token {
			t.Errorf("got %d and %d, want %d and %d", n, token, c.n, c.token)
		}
	}
}

// Into params that are no object nothing can be delivered. Plan files cannot bring them, and MongoDB takes none.
func TestATaskIntoWhichNothingCanBeDeliveredFailsAndStopsNobody(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := openTest(t, Options{Now: func() time.Time { return now }})
	defer closeStore(t, s)
	i := register(t, s, "n1")
	p := newPlan(t, s, "nightly", task{name: "a"})
	a := named(t, s, p, "a")
	for _, delay := range []time.Duration{0, time.Hour} {
		bad := plan.Task{ID: plan.TaskID{ID: plan.NewID(now)}, Name: fmt.Sprint("in ", delay), Queue: a.Queue, Needs: []plan.TaskID{a.ID}}
		bad.Params, bad.NotBefore = json.RawMessage(`[1]`), now.Add(delay)
		if err := s.AddTasks(t.Context(), p, []plan.Task{bad}); err != nil {
			t.Fatal(err)
		}
	}
	succeed := func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} }
	runAll(t, s, i, succeed)
	now = now.Add(2 * time.Hour)
	if _, err := s.Sweep(t.Context(), protocol.Sweep{Instance: i}); err != nil {
		t.Fatal(err)
	}
	newPlan(t, s, "other", task{name: "other"})
	if ran := runAll(t, s, i, succeed); len(ran) != 1 || ran[0] != "other" {
		t.Errorf("ran %v, want the other plan's task", ran)
	}
	for _, name := range []string{"in 0s", "in 1h0m0s"} {
		if got := named(t, s, p, name); got.Status != plan.Failed || got.Reason != plan.ReasonInput || !strings.Contains(got.Detail, "[1]") {
			t.Errorf("task %q is %v (%q, %s), want failed by its input", name, got.Status, got.Reason, got.Detail)
		}
	}
}

func TestQueuesTakeTurnsAlsoWhereTheTurnItselfQueuesTheTasks(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	x := protocol.Turn{Instance: register(t, s, "n1"), Slots: 1, Start: true}
	var tasks []task
	for _, queue := range []string{"a", "b", "c"} {
		for i := range 3 {
			one := task{name: fmt.Sprint(queue, i), spec: plan.TaskSpec{Queue: queue}}
			if i > 0 && queue != "b" {
				one.needs = []string{fmt.Sprint(queue, i-1)}
			}
			tasks = append(tasks, one)
		}
	}
	newPlan(t, s, "nightly", tasks...)
	var ran []string
	for range tasks {
		for _, c := range turn(t, s, x).Claimed {
			ran, x.Ended = append(ran, c.Name), []protocol.Ending{{Claim: c.Claim, Status: plan.Succeeded}}
		}
	}
	if got, want := strings.Join(ran, " "), "a0 b0 c0 a1 b1 c1 a2 b2 c2"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
	turn(t, s, x)
	if n := s.number("SELECT sum(queued + active) FROM queues"); n != 0 {
		t.Errorf("the queues count %d tasks, want none", n)
	}
}
