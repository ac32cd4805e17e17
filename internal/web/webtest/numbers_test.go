//go:build browser

package webtest

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

const sums = `plan: sums
tasks:
  each: {foreach: [a, b, c, d, e], run: 'test $item != b -a $item != d'}
  may: {continue-on-error: true, run: 'exit 3'}
  fine: {run: 'true'}
  below: {needs: [each], run: 'true'}
  none: {foreach: [], run: 'true'}
  mays: {foreach: [x, y], continue-on-error: true, run: 'test $item = x'}
`

// Every number of one plan adds up, and is the same in commands, JUnit, the API and the pages.
func TestAPlanHasTheSameNumbersEverywhere(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	p := s.submit(sums)
	s.wait(p, "failed")
	want := plan.Counts{Succeeded: 6, Failed: 2, Allowed: 2, Skipped: 1, Gathered: 2}
	const told = "6 succeeded, 2 failed, 2 allowed, 1 skipped"

	var read struct {
		Counts plan.Counts
		Sums   rules.Sums
	}
	s.read("/plans/"+p, &read)
	if c := read.Counts; c != want || read.Sums != (rules.Sums{Tasks: 11, Done: 11, Broken: 2}) || c.Succeeded+c.Failed+c.Allowed+c.Skipped != read.Sums.Done {
		t.Errorf("the API has %+v, want %+v, which adds up", read, want)
	}
	var failures struct{ Failed, Allowed, Ways int }
	if s.read("/plans/"+p+"/failures", &failures); failures.Failed != 2 || failures.Allowed != 2 || failures.Ways != 3 {
		t.Errorf("the API has the failures %+v, want 2, 2 allowed, in 3 ways", failures)
	}
	for _, most := range []string{"", "?most=20000"} {
		var g struct {
			States []string
			State  []int
			Counts [][]int
			Heads  []int
			Groups []struct{ Count int }
		}
		s.read("/plans/"+p+"/graph"+most, &g)
		drawn := map[string]int{}
		groups := map[int]bool{}
		for _, c := range g.Counts {
			groups[c[0]] = true
			for i, n := range c[1:] {
				drawn[g.States[i]] += n
			}
		}
		for _, node := range g.Heads {
			groups[node] = true
		}
		for node, state := range g.State {
			if !groups[node] {
				drawn[g.States[state]]++
			}
		}
		if drawn["succeeded"] != 6 || drawn["failed"] != 2 || drawn["allowed"] != 2 || drawn["skipped"] != 1 {
			t.Errorf("the graph%s counts %v, want %s", most, drawn, told)
		}
	}
	var found struct{ Tasks []struct{ Name string } }
	if s.read("/plans/"+p+"/search?state=allowed", &found); len(found.Tasks) != 2 {
		t.Errorf("2 tasks are allowed, and found are %v", found.Tasks)
	}

	if out := s.sluice("plan", "status", p); !strings.Contains(out, told) {
		t.Errorf("plan status says\n%s\nwant %s", out, told)
	}
	if out := s.sluice("plan", "list"); !strings.Contains(out, "11/11, 2 failed, 2 allowed") {
		t.Errorf("plan list says\n%s", out)
	}
	junit := filepath.Join(s.dir, "junit.xml")
	_ = exec.Command(program, "plan", "check", p, "--junit", junit, "--store", s.store).Run() // it says that the plan failed
	text, err := os.ReadFile(junit)
	if err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suite    struct {
			Case []struct{} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &suite); err != nil || suite.Tests != 11 || len(suite.Suite.Case) != 11 || suite.Failures+suite.Errors != 2 || suite.Skipped != 3 {
		t.Errorf("JUnit has %+v (%v), want 11 tests, 2 failures, 3 skipped", suite, err)
	}

	b := s.browse(light)
	b.open("/ui/")
	b.sees(".plans .count", "11 of 11")
	b.sees(".plans .broken", "2 failed, 2 allowed")
	b.until(`document.querySelector('.plans .progress').getAttribute('aria-label') === '` + told + `'`)
	for _, tab := range []string{"graph", "timeline", "tasks", "failures"} {
		b.open("/ui/plans/" + p + "/" + tab)
		b.sees(".legend", "11 of 11 done")
		b.until(`[...document.querySelectorAll('.legend a')].map((e) => e.innerText.trim()).join(', ') === '` + told + `'`)
		b.until(`document.querySelector('.tabs a:nth-child(3) .n').innerText === '11' && document.querySelector('.tabs a:nth-child(5) .n').innerText === '4'`)
		switch tab {
		case "graph":
			b.until(`['succeeded 6', 'failed 2', 'allowed 2', 'skipped 1'].every((s) => [...document.querySelectorAll('.legend-states li:not([hidden])')].some((e) => e.innerText.replace(/\s+/g, ' ').trim() === s))`)
		case "tasks":
			b.sees(".toolbar", "11 tasks, and 2 foreach tasks")
			b.sees(".trow .badge", "failed (allowed)")
			b.until(`getComputedStyle(document.querySelector('.trow .badge.s-allowed')).color !== getComputedStyle(document.querySelector('.trow .badge.s-failed')).color`)
		case "failures":
			b.sees("main", "2 tasks failed, and 2 as the plan allows, in 3 kinds")
			b.sees(".groups .badge", "failed (allowed)")
		}
		b.shot("numbers-" + tab)
	}
	b.open("/ui/plans/" + p + "/tasks")
	b.click(".legend a", "2 allowed")
	b.until(`[...document.querySelectorAll('.trow:not([hidden]) .badge')].map((e) => e.innerText.trim()).join() === 'failed (allowed),failed (allowed)'`)
	b.sees(".toolbar", "2 tasks")
	b.click(".legend a", "2 failed")
	b.sees(".toolbar", "2 tasks, 2 allowed, and 1 foreach task")
	b.sees(".cause", "more failures, which the plan allows")
	b.open("/ui/tasks/" + s.task(p, "may"))
	b.sees("h1 .badge", "failed (allowed)")
	b.shot("numbers-task")

	// A plan whose failures are all allowed succeeded, and nothing of it is red.
	lenient := s.submit("plan: lenient\ntasks:\n  may: {continue-on-error: true, run: 'exit 3'}\n")
	s.wait(lenient, "succeeded")
	b.open("/ui/plans/" + lenient)
	b.sees(".cause.allowed", "The plan allows that")
	b.until(`document.querySelector('.cause .s-failed') === null && document.querySelector('.legend .s-failed') === null`)
	b.shot("numbers-allowed")
}

// read asks the API.
func (s *site) read(path string, into any) {
	s.Helper()
	if err := json.Unmarshal(s.ask("GET", path, "", ""), into); err != nil {
		s.Fatal(err)
	}
}
