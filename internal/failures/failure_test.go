package failures

import (
	"fmt"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestTheWayInWhichATaskFailed(t *testing.T) {
	for _, c := range []struct {
		task plan.Task
		want string
	}{
		{plan.Task{Detail: "connect to db-17.example.com:5432 refused (exit status 1)"}, "connect to db-#.example.com:# refused"},
		{plan.Task{Detail: "permission denied for role loader (exit status 3)"}, "permission denied for role loader"},
		{plan.Task{Detail: "broken (ended by SIGABRT)"}, "broken"},
		{plan.Task{Detail: "exit status 3"}, "exit status 3"},
		{plan.Task{Detail: "exit status 127: a program of the line was not found"}, "exit status 127: a program of the line was not found"},
		{plan.Task{Detail: "ended by SIGKILL, as the system does when memory runs out"}, "ended by SIGKILL, as the system does when memory runs out"},
		{plan.Task{Exit: &plan.Exit{Code: 7}}, "exit status 7"},
		{plan.Task{Exit: &plan.Exit{Code: -1, Signal: "SIGSEGV"}}, "ended by SIGSEGV"},
		{plan.Task{Reason: plan.ReasonTimeout, Detail: "it ran longer than 5s"}, "it ran longer than #s"},
		{plan.Task{Reason: plan.ReasonTimeout}, "ran longer than it may"},
		{plan.Task{}, "failed"},
		{plan.Task{Detail: `open "a b.txt": no such file`}, `open "…": no such file`},
		{plan.Task{Detail: "rm: cannot remove 'a b': it isn't there, and can't be"}, "rm: cannot remove '…': it isn't there, and can't be"},
		{plan.Task{Detail: "commit 3f2a91c of 0xdeadbeef, decade, 12,000 rows in 6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, "commit # of #, decade, # rows in #"},
		{plan.Task{Detail: "first\nsecond"}, "first"},
	} {
		c.task.Status = plan.Failed
		if got := Of(&c.task); got.Text != c.want || got.State != c.task.State() {
			t.Errorf("%+v: the way is %+v, want %q", c.task, got, c.want)
		}
	}
}

func TestFailuresAreCounted(t *testing.T) {
	f := Ways{Tasks: 2}
	for i := range 1000 {
		f.Add(&plan.Task{Name: fmt.Sprint(i), Status: plan.Failed, Detail: fmt.Sprintf("connect to db-%d.example.com:%d refused (exit status %d)", i, i+1, i%3+1)})
	}
	f.Add(&plan.Task{Status: plan.Succeeded})
	f.Add(&plan.Task{Status: plan.Failed, Reason: plan.ReasonItems, Detail: "2 of 3 items failed", Expanded: true, Items: 3})
	f.Add(&plan.Task{Status: plan.Cancelled, Reason: plan.ReasonSkipped})
	if f.Failed != 1000 || len(f.Kinds) != 1 || f.Kinds[0].Count != 1000 || len(f.Kinds[0].First) != 2 || f.Kinds[0].Text != "connect to db-#.example.com:# refused" {
		t.Fatalf("%d failed: %+v", f.Failed, f.Kinds)
	}
	for range 1001 {
		f.Add(&plan.Task{Status: plan.Failed, Detail: "disk full on volume data (exit status 1)"})
	}
	f.Add(&plan.Task{Status: plan.Terminated, Detail: "disk full on volume data (exit status 1)"})
	if f.Sort(); len(f.Kinds) != 3 || f.Kinds[0].Text != "disk full on volume data" || f.Kinds[2].State != "terminated" {
		t.Errorf("the ways are %+v", f.Kinds)
	}
	if f.Kinds[0].Key() == f.Kinds[2].Key() || f.Kinds[0].Key() != f.Kinds[0].Way.Key() {
		t.Error("ways that differ in their state have one key")
	}
}

func TestNumbersAreToldUnlessTasksDifferByThem(t *testing.T) {
	for _, c := range []struct {
		name    string
		details []string
		want    string
	}{
		{"one task", []string{"connect to db-17.example.com:5432 refused (exit status 1)"}, "connect to db-17.example.com:5432 refused"},
		{"two that say the same", []string{"connect to db-17.example.com:5432 refused (exit status 1)", "connect to db-17.example.com:5432 refused (exit status 2)"}, "connect to db-17.example.com:5432 refused"},
		{"two that differ", []string{"connect to db-17.example.com:5432 refused", "connect to db-18.example.com:5432 refused", "connect to db-17.example.com:5432 refused"}, "connect to db-#.example.com:# refused"},
		{"no words", []string{"exit status 3"}, "exit status 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f Ways
			for _, d := range c.details {
				f.Add(&plan.Task{Status: plan.Failed, Detail: d})
			}
			if len(f.Kinds) != 1 || f.Kinds[0].Told() != c.want {
				t.Errorf("it is told as %q, want %q", f.Kinds[0].Told(), c.want)
			}
		})
	}
}
