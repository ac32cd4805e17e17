package states_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAStateIsReadByWordByNameAndByNumber(t *testing.T) {
	skipped := plan.Task{Status: plan.Cancelled, Reason: plan.ReasonSkipped}
	for _, c := range []struct {
		name, text string
		task       plan.Task
		want       bool
	}{
		{"a failure of any code is failed", "failed", plan.Task{Status: 7}, true},
		{"a code is that code alone", "7", plan.Task{Status: 7}, true},
		{"another code is not", "2", plan.Task{Status: 7}, false},
		{"what was skipped is skipped", "skipped", skipped, true},
		{"what was skipped is not cancelled", "cancelled", skipped, false},
		{"its code finds it", "-5", skipped, true},
		{"what a person cancelled is cancelled", "cancelled", plan.Task{Status: plan.Cancelled}, true},
		{"an allowed failure is failed", "failed", plan.Task{Status: 7, Definition: plan.Definition{ContinueOnError: true}}, true},
		{"and found as allowed", "allowed", plan.Task{Status: 7, Definition: plan.Definition{ContinueOnError: true}}, true},
		{"an allowed loss too", "allowed", plan.Task{Status: plan.Orphaned, Definition: plan.Definition{ContinueOnError: true}}, true},
		{"another failure is not allowed", "allowed", plan.Task{Status: plan.Failed}, false},
		{"held by its name", "held", plan.Task{Status: plan.Held}, true},
		{"held by its word", "waiting", plan.Task{Status: plan.Held}, true},
		{"claimed by its word", "starting", plan.Task{Status: plan.Claimed}, true},
		{"terminated by its word", "stopped", plan.Task{Status: plan.Terminated}, true},
		{"orphaned by its word", "lost", plan.Task{Status: plan.Orphaned}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			codes, keep, err := states.Parse([]string{c.text})
			if err != nil {
				t.Fatal(err)
			}
			asked := slices.Contains(codes, c.task.Status) || slices.Contains(codes, plan.Failed) && c.task.Status > plan.Failed
			if got := asked && (keep == nil || keep(&c.task)); got != c.want {
				t.Errorf("%s finds a task that is %s (%d): %v, want %v", c.text, c.task.State(), c.task.Status, got, c.want)
			}
		})
	}
	for _, text := range []string{"-7", "Running", "", "unknown"} {
		if _, _, err := states.Parse([]string{text}); err == nil {
			t.Errorf("%q is read as a state", text)
		}
	}
}

func TestAPlansStateIsReadAsItIsWritten(t *testing.T) {
	for _, c := range []struct {
		state plan.Lifecycle
		word  string
		ended bool
	}{
		{plan.PlanAbandoned, "abandoned", true}, {plan.PlanCancelled, "cancelled", true}, {plan.PlanSubmitting, "submitting", false},
		{plan.PlanRunning, "running", false}, {plan.PlanSucceeded, "succeeded", true}, {plan.PlanFailed, "failed", true},
	} {
		got, err := states.ParseLifecycle(c.word)
		if err != nil || got != c.state || c.state.String() != c.word || c.state.Ended() != c.ended {
			t.Errorf("%q is read as %v (%v) and written as %q, ended: %v", c.word, got, err, c.state, c.state.Ended())
		}
	}
	if _, err := states.ParseLifecycle("queued"); err == nil {
		t.Error("queued is not a plan's state, and was read as one")
	}
	if got := plan.Lifecycle(9).String(); got != "9" {
		t.Errorf("an unknown state prints as %q, want its number", got)
	}
}

// The picture of the pages has each state by its word, and an arrow only where a task can go.
func TestThePictureShowsTheLifeOfATask(t *testing.T) {
	text, err := os.ReadFile("../../docs/states.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range states.Words() {
		if word != "allowed" && !strings.Contains(string(text), ">"+word+"</text>") {
			t.Errorf("the picture does not have %q", word)
		}
	}
	arrows := regexp.MustCompile(`data-from="([a-z]*)" data-to="([a-z]*)"`).FindAllStringSubmatch(string(text), -1)
	for _, m := range arrows {
		from, _, err := states.Parse(m[1:2])
		to, _, other := states.Parse(m[2:])
		if err := errors.Join(err, other); err != nil {
			t.Fatal(err)
		}
		if !from[0].CanBecome(to[0]) {
			t.Errorf("the picture leads from %s to %s, and no task goes there", m[1], m[2])
		}
	}
	if len(arrows) < 10 {
		t.Errorf("the picture has %d arrows", len(arrows))
	}
}
