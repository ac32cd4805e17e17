package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// pruneAll prunes what ended, until nothing is left to do.
func pruneAll(t *testing.T, s *Store, budget int) (plans int) {
	t.Helper()
	for {
		n, more, err := s.Prune(t.Context(), time.Nanosecond, budget)
		if err != nil {
			t.Fatal(err)
		}
		if plans += n; !more {
			return plans
		}
	}
}

func TestTheFileShrinksWhenPlansArePruned(t *testing.T) {
	now := time.Now()
	s := openTest(t, Options{Now: func() time.Time { return now }})
	defer s.Close()
	size := func() int64 {
		t.Helper()
		if _, err := s.vacuum(t.Context(), 1<<20, false); err != nil {
			t.Fatal(err)
		}
		s.w.script("PRAGMA wal_checkpoint(TRUNCATE)")
		info, err := os.Stat(s.path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	empty := size()
	i := register(t, s, "n1")
	newPlan(t, s, "large", layers(10, 50)...)
	output := append(append([]byte{'"'}, bytes.Repeat([]byte("x"), 4000)...), '"')
	runAll(t, s, i, func(c protocol.ClaimedTask) protocol.Ending {
		return protocol.Ending{Status: plan.Succeeded, Output: output, Log: []plan.LogEntry{{At: now, Stream: plan.Stdout, Text: "line\n"}}}
	})
	full := size()
	if full < empty+500*4000 {
		t.Fatalf("the file has %d bytes with the plan and %d without", full, empty)
	}
	now = now.Add(time.Hour)
	if n := pruneAll(t, s, 50); n != 1 {
		t.Errorf("%d plans were pruned, want 1", n)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Size(); got > empty+200_000 {
		t.Errorf("the file has %d bytes after the plan was pruned; %d with it, %d before it", got, full, empty)
	}
	wantEmpty(t, s)
}

func TestRoomThatNodesFreeIsGivenBackWhereItIsMoreThanWhatIsKept(t *testing.T) {
	now := time.Now()
	s := openTest(t, Options{Now: func() time.Time { return now }})
	defer s.Close()
	i := register(t, s, "n1")
	output := append(append([]byte{'"'}, bytes.Repeat([]byte("x"), 4000)...), '"')
	fill := func(name string, tasks int) {
		newPlan(t, s, name, manyTasks(tasks)...)
		runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending {
			return protocol.Ending{Status: plan.Succeeded, Output: output}
		})
	}
	free := func() (free, pages int64) {
		for more := true; more; {
			gone, err := s.Expire(t.Context(), 50)
			if err != nil {
				t.Fatal(err)
			}
			more = gone.More
		}
		return s.number("PRAGMA freelist_count"), s.number("PRAGMA page_count")
	}
	fill("small", 100)
	now = now.Add(20 * 24 * time.Hour)
	fill("large", 300)
	now = now.Add(20 * 24 * time.Hour)
	if n, pages := free(); n < 40 || n > pages/2 {
		t.Errorf("%d of %d pages are free after the small plan went, want all that it had", n, pages)
	}
	now = now.Add(20 * 24 * time.Hour)
	if n, pages := free(); n > pages/2+1 || pages > 140 {
		t.Errorf("%d of %d pages are free after the large one went, want half", n, pages)
	}
}

// wantEmpty reports what belongs to tasks, and is there without any.
func wantEmpty(t *testing.T, s *Store) {
	t.Helper()
	for _, table := range []string{"tasks", "bodies", "outputs", "gates", "kids", "frozen", "foreachs", "lists", "logs", "jobs", "plans", "files"} {
		if n := s.number("SELECT count(*) FROM " + table); n != 0 || s.w.err != nil {
			t.Errorf("%s has %d rows (%v) when all plans are gone", table, n, s.w.err)
		}
	}
}

func TestATaskWithMoreThanABudgetOfLinesAndNeedsIsDeletedInParts(t *testing.T) {
	now := time.Now()
	s := openTest(t, Options{Now: func() time.Time { return now }})
	defer s.Close()
	i := register(t, s, "n1")
	all := manyTasks(60)
	join := task{name: "join"}
	for _, x := range all {
		join.needs = append(join.needs, x.name)
	}
	p := newPlan(t, s, "wide", append(all, join)...)
	runAll(t, s, i, func(c protocol.ClaimedTask) protocol.Ending {
		e := protocol.Ending{Status: plan.Succeeded}
		for k := 0; k < 45 && (c.Name == "task-0" || c.Name == "join"); k++ {
			e.Log = append(e.Log, plan.LogEntry{At: now, Stream: plan.Stdout, Text: fmt.Sprintln("line", k)})
		}
		return e
	})
	rows := func() (n int64) {
		for _, table := range []string{"tasks", "logs", "kids"} {
			n += s.number("SELECT count(*) FROM " + table)
		}
		return n
	}
	for more := true; more; {
		before := rows()
		var err error
		if more, err = s.DeletePlan(t.Context(), p, 10); err != nil {
			t.Fatal(err)
		}
		if gone := before - rows(); gone > 20 {
			t.Fatalf("a deletion with a budget of 10 deleted %d rows", gone)
		}
	}
	wantEmpty(t, s)
}

func TestInstancesAreForgottenWithTheTasksThatNameThem(t *testing.T) {
	now := time.Now()
	s := openTest(t, Options{Now: func() time.Time { return now }})
	defer s.Close()
	i := register(t, s, "first")
	p := newPlan(t, s, "one", task{name: "a"})
	runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
	if err := s.Leave(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	newPlan(t, s, "two", task{name: "b"})
	if _, _, err := s.Prune(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	if got := named(t, s, p, "a").Node; got != "first" {
		t.Errorf("the task ran on node %q, want the one that left", got)
	}
	pruneAll(t, s, 0)
	if n := s.number("SELECT count(*) FROM instances"); n != 0 {
		t.Errorf("%d instances are kept that no task names", n)
	}
	last := register(t, s, "last")
	runAll(t, s, last, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
	now = now.Add(48 * 24 * time.Hour)
	if err := s.Leave(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	pruneAll(t, s, 0)
	if n := s.number("SELECT count(*) FROM instances"); n != 1 || s.number("SELECT count(*) FROM tasks") != 0 {
		t.Errorf("%d instances are kept, want the one that has left just now, and might still register", n)
	}
}
