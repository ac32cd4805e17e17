package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be what scenarios start it as.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		os.Exit(childMain(context.Background(), os.Args[1], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestATaskThatRanTwiceOrNotAtAllIsFound(t *testing.T) {
	report := func(tasks ...string) (r memberReport) {
		for _, id := range tasks {
			r.Runs = append(r.Runs, ran{Task: id})
		}
		return r
	}
	for _, c := range []struct {
		name    string
		reports []memberReport
		want    string
	}{
		{"each once", []memberReport{report("a"), report("b", "c")}, ""},
		{"one twice, on two nodes", []memberReport{report("a", "b"), report("b", "c")}, "task b ran twice"},
		{"one twice, on one node", []memberReport{report("a", "a"), report("b", "c")}, "task a ran twice"},
		{"one not at all", []memberReport{report("a"), report("b")}, "2 tasks ran, not 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := eachOnce(c.reports, 3); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

func TestClusterSumsUpItsNodes(t *testing.T) {
	at := time.Now()
	var r race
	r.sum([]memberReport{
		{Began: at.Add(time.Second), Commands: map[string]int{"find tasks": 3, "find plans": 1}, Upkeep: 7},
		{Began: at, Commands: map[string]int{"find tasks": 2}, Upkeep: 2},
	}, at.Add(3*time.Second))
	if r.took != 3*time.Second || r.trips != 6 || r.upkeep != 9 || r.asked["find tasks"] != 5 {
		t.Errorf("%v, %d round trips, of which %v, and %d others; want 3s, 6, of which 5 to find tasks, and 9", r.took, r.trips, r.asked, r.upkeep)
	}
	if got, want := share(r.asked, 10), "find tasks 0.500, find plans 0.100"; got != want {
		t.Errorf("for each of 10 that is %q, want %q", got, want)
	}
}

// TestClustersDoTheirWork runs a small one of each kind; what they check themselves, as that no task runs twice, is an error.
func TestClustersDoTheirWork(t *testing.T) {
	b := smokeBench(t)
	if why := b.missing(onMongoDB); why != "" {
		t.Skip(why)
	}
	for _, name := range []string{"cluster/claim/2/4", "cluster/one/1/1", "cluster/limited/4/4", "cluster/rescue"} {
		for _, s := range clusterScenarios() {
			if s.name != name {
				continue
			}
			t.Run(name, func(t *testing.T) {
				var lines []result
				err := try(func() { s.run(t.Context(), b.trial(s.on, func(r result) { lines = append(lines, r) })) })
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range lines {
					if l.Value <= 0 {
						t.Errorf("%s is %v", l.What, l.Value)
					}
				}
				if len(lines) != 2 {
					t.Errorf("%d lines, want 2: %+v", len(lines), lines)
				}
				if name == "cluster/limited/4/4" && !strings.Contains(lines[0].Note, "of 8 that each queue may have") {
					t.Errorf("the note says nothing of the limit: %q", lines[0].Note)
				}
			})
		}
	}
}
