package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatARunnerMayTake(t *testing.T) {
	runner := plan.Instance{ID: plan.InstanceID{ID: plan.ID{1}}, Node: "n1"}
	for _, c := range []struct {
		name  string
		task  plan.Task
		other bool
		want  string // in the error; "": it may
	}{
		{"what its node claimed", plan.Task{Status: plan.Claimed, Node: "n1", Instance: plan.InstanceID{ID: plan.ID{2}}}, false, ""},
		{"what another program claimed", plan.Task{Status: plan.Claimed, Node: "n1"}, false, ""},
		{"what it has taken", plan.Task{Status: plan.Claimed, Node: "n1", Instance: runner.ID}, true, ""},
		{"what it runs", plan.Task{Status: plan.Running, Node: "n1", Instance: runner.ID}, true, ""},
		{"what it ran", plan.Task{Status: plan.Succeeded, Node: "n1", Instance: runner.ID}, false, `is succeeded: a runner takes`},
		{"what its node runs", plan.Task{Status: plan.Running, Node: "n1"}, false, `is running: a runner takes`},
		{"what another node claimed", plan.Task{Status: plan.Claimed, Node: "n2"}, false, `is claimed by node "n2", and not by "n1"`},
		{"what another runner has taken", plan.Task{Status: plan.Claimed, Node: "n1"}, true, `is claimed, and another runner has it`},
		{"what another runner runs", plan.Task{Status: plan.Running, Node: "n1"}, true, `is running, and another runner has it`},
		{"what is queued again", plan.Task{Status: plan.Queued}, false, `is queued: a runner takes`},
		{"what was skipped", plan.Task{Status: plan.Cancelled, Reason: plan.ReasonSkipped}, false, `is skipped: a runner takes`},
		{"what no code stands for", plan.Task{Status: plan.Unknown, Node: "n1"}, false, `is unknown: a runner takes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.task.Name = "a"
			err := rules.CheckTake(&c.task, &runner, c.other)
			switch {
			case c.want == "" && err == nil:
			case c.want == "" || !errors.Is(err, plan.ErrConflict) || !strings.Contains(err.Error(), `task "a" `+c.want):
				t.Errorf("got error %v, want %q", err, c.want)
			}
		})
	}
}

func TestATakenTaskEndsIfItWasCancelledBefore(t *testing.T) {
	for status, ends := range map[plan.Status]bool{plan.Claimed: true, plan.Running: false} {
		for _, cancel := range []bool{true, false} {
			err := rules.CheckTakeCancelled(&plan.Task{Status: status, Cancel: cancel})
			if want := ends && cancel; errors.Is(err, plan.ErrConflict) != want {
				t.Errorf("%v, cancelled: %v: got error %v", status, cancel, err)
			}
		}
	}
}
