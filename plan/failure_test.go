package plan

import (
	"fmt"
	"testing"
)

func TestTheWayInWhichATaskFailed(t *testing.T) {
	for _, c := range []struct {
		task Task
		want string
	}{
		{Task{Detail: "connect to db-17.example.com:5432 refused (exit status 1)"}, "connect to db-#.example.com:# refused"},
		{Task{Detail: "permission denied for role loader (exit status 3)"}, "permission denied for role loader"},
		{Task{Detail: "broken (ended by SIGABRT)"}, "broken"},
		{Task{Detail: "exit status 3"}, "exit status 3"},
		{Task{Detail: "exit status 127: a program of the line was not found"}, "exit status 127: a program of the line was not found"},
		{Task{Detail: "ended by SIGKILL, as the system does when memory runs out"}, "ended by SIGKILL, as the system does when memory runs out"},
		{Task{Exit: &Exit{Code: 7}}, "exit status 7"},
		{Task{Exit: &Exit{Code: -1, Signal: "SIGSEGV"}}, "ended by SIGSEGV"},
		{Task{Reason: ReasonTimeout, Detail: "it ran longer than 5s"}, "it ran longer than #s"},
		{Task{Reason: ReasonTimeout}, "ran longer than it may"},
		{Task{}, "failed"},
		{Task{Detail: `open "a b.txt": no such file`}, `open "…": no such file`},
		{Task{Detail: "rm: cannot remove 'a b': it isn't there, and can't be"}, "rm: cannot remove '…': it isn't there, and can't be"},
		{Task{Detail: "commit 3f2a91c of 0xdeadbeef, decade, 12,000 rows in 6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, "commit # of #, decade, # rows in #"},
		{Task{Detail: "first\nsecond"}, "first"},
	} {
		c.task.Status = Failed
		if got := FailureOf(&c.task); got.Text != c.want || got.State != c.task.State() {
			t.Errorf("%+v: the way is %+v, want %q", c.task, got, c.want)
		}
	}
}

func TestFailuresAreCounted(t *testing.T) {
	f := Failures{Tasks: 2}
	for i := range 1000 {
		f.Add(&Task{Name: fmt.Sprint(i), Status: Failed, Detail: fmt.Sprintf("connect to db-%d.example.com:%d refused (exit status %d)", i, i+1, i%3+1)})
	}
	f.Add(&Task{Status: Succeeded})
	f.Add(&Task{Status: Failed, Reason: ReasonItems, Detail: "2 of 3 items failed", Expanded: true, Items: 3})
	f.Add(&Task{Status: Cancelled, Reason: ReasonSkipped})
	if f.Failed != 1000 || len(f.Kinds) != 1 || f.Kinds[0].Count != 1000 || len(f.Kinds[0].First) != 2 || f.Kinds[0].Text != "connect to db-#.example.com:# refused" {
		t.Fatalf("%d failed: %+v", f.Failed, f.Kinds)
	}
	for range 1001 {
		f.Add(&Task{Status: Failed, Detail: "disk full on volume data (exit status 1)"})
	}
	f.Add(&Task{Status: Terminated, Detail: "disk full on volume data (exit status 1)"})
	if f.Sort(); len(f.Kinds) != 3 || f.Kinds[0].Text != "disk full on volume data" || f.Kinds[2].State != "terminated" {
		t.Errorf("the ways are %+v", f.Kinds)
	}
	if f.Kinds[0].Key() == f.Kinds[2].Key() || f.Kinds[0].Key() != f.Kinds[0].Failure.Key() {
		t.Error("ways that differ in their state have one key")
	}
}
