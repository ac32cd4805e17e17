package mongodb

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

func TestQueuesGiveWhatTheyWereDealt(t *testing.T) {
	draws := []*draw{
		{want: 3, ask: 3, docs: make([]taskDoc, 3)},
		{want: 3, ask: 28, docs: make([]taskDoc, 20)},
		{want: 3, ask: 3, docs: make([]taskDoc, 1)},
		{want: 3, ask: 2, docs: make([]taskDoc, 1), got: make([]taskDoc, 1)},
		{want: 1, ask: 1},
	}
	if got := allot(draws); got != 8 {
		t.Errorf("these are %d tasks, want 8", got)
	}
	for k, want := range []struct {
		n    int
		more bool
	}{{3, true}, {3, true}, {1, false}, {1, false}, {0, false}} {
		if one := draws[k]; one.n != want.n || one.more != want.more || one.over == want.more {
			t.Errorf("queue %d gives %d, may have more is %v, and is over is %v, want %+v", k, one.n, one.more, one.over, want)
		}
	}
}

// TestClaimersThatRaceKeepToRanks chooses three of six tasks of the ranks 9, 5, 5, 5, 5 and 1.
func TestClaimersThatRaceKeepToRanks(t *testing.T) {
	for _, c := range []struct {
		name    string
		sort    plan.QueueSort
		anyRank bool
		most    int // kinds of choices that there are
	}{
		{"by rank", plan.SortDefault, false, 6},
		{"who was outrun twice takes any", plan.SortDefault, true, 20},
		{"a queue without ranks", plan.SortFIFO, false, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			kinds := map[string]bool{}
			for range 2000 {
				one := &draw{queue: &queueDoc{Sort: c.sort}, n: 3}
				for i, rank := range []int64{9, 5, 5, 5, 5, 1} {
					one.docs = append(one.docs, taskDoc{Index: i, Rank: rank})
				}
				one.scatter(c.anyRank)
				var chosen []int
				for _, t := range one.docs[:one.n] {
					chosen = append(chosen, t.Index)
				}
				slices.Sort(chosen)
				kinds[fmt.Sprint(chosen)] = true
				if ranked := c.most == 6; ranked && (chosen[0] != 0 || chosen[2] == 5) {
					t.Fatalf("of the tasks it chose %v; want the first, which ranks highest, and not the last", chosen)
				}
			}
			if len(kinds) != c.most {
				t.Errorf("it made %d different choices, want all %d that there are", len(kinds), c.most)
			}
		})
	}
}

// TestWhoIsOutrunTakesWhatIsLeft has another claimer take what comes first in two of three queues, between what a claim reads and what it writes.
func TestWhoIsOutrunTakesWhatIsLeft(t *testing.T) {
	uri, _ := database(t)
	ctx, no := t.Context(), noError(t)
	between := func() {}
	a, err := Open(ctx, uri, Options{Hook: func(written bool) error {
		if come := between; !written {
			between = func() {}
			come()
		}
		return nil
	}})
	no(err)
	t.Cleanup(func() { _ = a.Close() })
	b := openMonitored(t, uri, nil)
	id := flatPlan(t, a, 0)
	other := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(b.Register(ctx, plan.Instance{ID: other, Node: "n2", Plugins: []string{"x", "y"}}))
	p, err := a.CreatePlan(ctx, plan.Plan{Name: "wide"})
	no(err)
	var all []plan.Task
	for i, plugin := range []string{"x", "x", "y"} {
		q, err := a.EnsureQueue(ctx, plan.Queue{Name: fmt.Sprint("q", i), Plugin: plugin, Unlimited: true})
		no(err)
		for k := range 40 {
			all = append(all, plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i, "-", k), Queue: q.ID})
		}
	}
	no(a.AddTasks(ctx, p.ID, all))
	no(a.Ready(ctx, p.ID))
	claims := map[plan.TaskID]int{}
	claim := func(s *Store, i plan.InstanceID, slots int, plugins ...string) map[string]int {
		of := map[string]int{}
		for len(of) == 0 {
			did, err := s.Turn(ctx, protocol.Turn{Instance: i, Slots: slots, Plugins: plugins, Start: true})
			no(err)
			for _, c := range did.Claimed {
				claims[c.Task]++
				of[c.QueueName]++
			}
		}
		return of
	}
	claim(b, other, 3, "x", "y") // whatever was left of the release is done
	between = func() { claim(b, other, 20, "x") }
	got := claim(a, id, 30, "x", "y")
	if sum := got["q0"] + got["q1"] + got["q2"]; sum != 30 || got["q2"] < 10 || got["q0"] < 5 || got["q1"] < 5 {
		t.Errorf("it claimed %v, want 30 in all, of the queue where nobody was faster its third at least, and some of what was left of the others", got)
	}
	if !a.contended() || b.contended() {
		t.Errorf("that others are faster they say as %v and %v, want true of the first alone", a.contended(), b.contended())
	}
	a.outrun, between = time.Time{}, func() { claim(b, other, 4, "x") }
	if got := claim(a, id, 30, "x", "y"); got["q0"] != 8 || got["q1"] != 8 || got["q2"] != 10 {
		t.Errorf("where others had few of its tasks it claimed %v, want none of another queue instead", got)
	}
	a.outrun = time.Time{}
	claim(a, id, 200, "x", "y")
	for task, n := range claims {
		if n > 1 {
			t.Errorf("task %s was claimed %d times", task, n)
		}
	}
	if len(claims) != len(all) {
		t.Errorf("%d tasks were claimed, want %d", len(claims), len(all))
	}
	running, err := a.tasks.CountDocuments(ctx, d("status", plan.Running, "attempt", 1, "token", d("$type", "objectId")))
	if no(err); running != int64(len(all)) {
		t.Errorf("%d tasks run in their first attempt, want %d", running, len(all))
	}
}

// TestNoQueueIsAskedForMoreThanIsWanted has a node with one free thread find the first of its queues empty, and work in all others.
func TestNoQueueIsAskedForMoreThanIsWanted(t *testing.T) {
	uri, _ := database(t)
	no := noError(t)
	read := 0
	s := openMonitored(t, uri, &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
		if batch, err := e.Reply.LookupErr("cursor", "firstBatch"); err == nil && (e.CommandName == "aggregate" || e.CommandName == "find") {
			tasks, err := batch.Array().Values()
			no(err)
			for _, task := range tasks {
				if task.Document().Lookup("queue").Type == bson.TypeObjectID {
					read++
				}
			}
		}
	}})
	id := flatPlan(t, s, 0)
	const queues = 8
	var all []plan.Task
	p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "wide"})
	no(err)
	for i := range queues {
		q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: fmt.Sprint("q", i), Plugin: "x", Unlimited: true})
		no(err)
		for k := range 4 {
			all = append(all, plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i, "-", k), Queue: q.ID})
		}
	}
	no(s.AddTasks(t.Context(), p.ID, all))
	no(s.Ready(t.Context(), p.ID))
	s.rotation = queues // the queue that flatPlan made, which is older, is the first to be asked
	read = 0
	did, err := s.Turn(t.Context(), protocol.Turn{Instance: id, Slots: 1, Plugins: []string{"x"}, Start: true})
	if no(err); len(did.Claimed) != 1 || read != 1 {
		t.Errorf("to claim %d tasks it read %d, want one: whole tasks may be large", len(did.Claimed), read)
	}
}

// TestATaskThatWasMovedIsOfItsPresentQueue has a retry move a task to another queue while a claim reads them: it is read in both.
func TestATaskThatWasMovedIsOfItsPresentQueue(t *testing.T) {
	uri, _ := database(t)
	ctx, no := t.Context(), noError(t)
	s := openMonitored(t, uri, nil)
	id := flatPlan(t, s, 0)
	var all []plan.Task
	var queues []*queueDoc
	for i, sort := range []plan.QueueSort{plan.SortDefault, plan.SortLIFO} {
		q, err := s.EnsureQueue(ctx, plan.Queue{Name: fmt.Sprint("q", i), Plugin: "x", Unlimited: true, Sort: sort})
		no(err)
		queues = append(queues, &queueDoc{ID: oid(q.ID.ID), Unlimited: true, Sort: sort})
		for k := range 20 {
			task := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID}
			task.Rank = int64(k % 4)
			all = append(all, task)
		}
	}
	no(s.AddTasks(ctx, plan.PlanID{}, all))
	r, err := s.newRound(ctx, 0)
	no(err)
	r.node, r.instance = "n1", oid(id.ID)
	c := claimer{round: r, turn: &protocol.Turn{Start: true}, shares: &protocol.Shares{}, token: bson.NewObjectID()}
	first, last := &draw{queue: queues[0], ask: 30}, &draw{queue: queues[1], ask: 30}
	no(c.heads(ctx, []*draw{first, last}, true))
	moved := last.docs[3]
	_, err = s.UpdateOne(ctx, s.tasks, d("_id", moved.ID), d("$set", d("queue", queues[0].ID, "gen", moved.Gen+1)))
	no(err)
	now := moved
	now.Queue, now.Gen = queues[0].ID, moved.Gen+1
	first.docs = append(first.docs, now)
	n, err := c.markOpen(ctx, []*draw{first, last}, true)
	no(err)
	if n != len(all) || len(first.got) != 21 || len(last.got) != 19 {
		t.Errorf("it claimed %d tasks, %d of the one queue and %d of the other, want 40, 21 and 19", n, len(first.got), len(last.got))
	}
	for _, one := range []*draw{first, last} {
		if !sort.SliceIsSorted(one.got, func(a, b int) bool { return one.queue.before(&one.got[a], &one.got[b]) }) {
			t.Errorf("tasks of the queue with order %q are not in it", one.queue.Sort)
		}
		for _, task := range one.got {
			if task.Queue != one.queue.ID {
				t.Errorf("task %s of queue %s is handed out as one of %s", task.ID.Hex(), task.Queue.Hex(), one.queue.ID.Hex())
			}
		}
	}
}
