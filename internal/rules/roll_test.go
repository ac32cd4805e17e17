package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestFinishedTasksAreHandedOverByHowTheyEnded(t *testing.T) {
	for status, want := range map[plan.Status]rules.RollKind{
		plan.Succeeded: rules.RollSuccess, plan.Failed: rules.RollDeadLetter, 300: rules.RollDeadLetter, plan.Terminated: rules.RollDeadLetter,
		plan.Orphaned: rules.RollDeadLetter, plan.Cancelled: "", plan.Held: "", plan.Queued: "", plan.Claimed: "", plan.Running: "",
	} {
		if got := rules.RollKindOf(status); got != want {
			t.Errorf("a task with %v is of the kind %q, want %q", status, got, want)
		}
	}
}

// rollGroups are groups with and without receivers.
var rollGroups = []plan.Group{
	{Name: "acme", GroupSettings: plan.GroupSettings{SuccessURI: "http://a/parent"}},
	{Name: "both", GroupSettings: plan.GroupSettings{Parent: "acme", SuccessURI: "http://a/ok", DeadLetterURI: "http://a/bad"}},
	{Name: "bad", GroupSettings: plan.GroupSettings{Parent: "acme", DeadLetterURI: "http://b/bad"}},
	{Name: "none", GroupSettings: plan.GroupSettings{Parent: "acme"}},
}

func TestAQueueHandsOverWhatItLimitsAndItsGroupReceives(t *testing.T) {
	d := plan.Duration(day)
	all := plan.Keep{Succeeded: d, Failed: 2 * d, Terminated: 3 * d, Cancelled: d, Orphaned: 4 * d}
	for _, c := range []struct {
		name, group string
		keep        plan.Keep
		want        string
	}{
		{"it is in no group", "", all, ""},
		{"its group is not there", "gone", all, ""},
		{"its group has no URI, and that of the parent does not count", "none", all, ""},
		{"its group has both", "both", all, "success http://a/ok map[succeeded:24h0m0s] dead-letter http://a/bad map[orphaned:96h0m0s terminated:72h0m0s failed:48h0m0s] "},
		{"its group has one", "bad", all, "dead-letter http://b/bad map[orphaned:96h0m0s terminated:72h0m0s failed:48h0m0s] "},
		{"it says no limit", "both", plan.Keep{Cancelled: d}, ""},
		{"it keeps them for ever", "both", plan.Keep{Succeeded: -1, Failed: -1}, ""},
		{"it limits one status", "both", plan.Keep{Failed: d}, "dead-letter http://a/bad map[failed:24h0m0s] "},
	} {
		got := ""
		for _, r := range rules.Rolls(rollGroups, []plan.Queue{{Name: "q", QueueSettings: plan.QueueSettings{Group: c.group, Keep: c.keep}}}) {
			got += fmt.Sprintln(r.Kind, r.URI, r.Limits)
			got = got[:len(got)-1] + " "
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestASweepLeavesWhatIsHandedOver(t *testing.T) {
	queues := map[string]plan.QueueSettings{
		"free": {}, "both": {Group: "both", Keep: plan.Keep{Succeeded: plan.Duration(time.Hour)}}, "bad": {Group: "bad"}, "gone": {Group: "gone"},
	}
	limits := rules.KeepLimits(queues, rollGroups, day)
	for of, want := range map[rules.Kept[string]]time.Duration{
		{Queue: "free", Status: plan.Succeeded}: day, {Queue: "free", Status: plan.Failed}: day,
		{Queue: "both", Status: plan.Succeeded}: 0, {Queue: "both", Status: plan.Failed}: 0, {Queue: "both", Status: plan.Orphaned}: 0,
		{Queue: "both", Status: plan.Cancelled}: day,
		{Queue: "bad", Status: plan.Succeeded}:  day, {Queue: "bad", Status: plan.Terminated}: 0,
		{Queue: "gone", Status: plan.Failed}: day,
	} {
		if got := limits[of]; got != want {
			t.Errorf("tasks of queue %s with %v have the limit %v, want %v", of.Queue, of.Status, got, want)
		}
	}
}

func TestABatchIsLimitedByTasksAndBytes(t *testing.T) {
	for _, c := range []struct {
		name               string
		tasks, bytes, more int
		want               bool
	}{
		{"the first task, however large", 0, 0, 100 << 20, true},
		{"the last task", rules.MostRolled - 1, 1000, 1000, true},
		{"one task too many", rules.MostRolled, 1000, 1000, false},
		{"the last byte", 1, rules.MostRolledBytes - 10, 10, true},
		{"one byte too many", 1, rules.MostRolledBytes - 10, 11, false},
	} {
		if got := rules.RollFits(c.tasks, c.bytes, c.more); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestAReceiverThatFailsIsAskedAgainAtLeastEachHour(t *testing.T) {
	for _, c := range []struct {
		failures    int
		asked, want time.Duration
	}{
		{1, 0, 10 * time.Second}, {2, 0, 20 * time.Second}, {5, 0, 160 * time.Second}, {9, 0, 2560 * time.Second}, {10, 0, time.Hour}, {1000, 0, time.Hour},
		{1, time.Minute, time.Minute}, {1, day, time.Hour},
	} {
		if got := rules.RollPause(c.failures, c.asked); got != c.want {
			t.Errorf("after %d failures, and asked for %v, the pause is %v, want %v", c.failures, c.asked, got, c.want)
		}
	}
}
