package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAKeepHasAFieldForEachStatus(t *testing.T) {
	var k plan.Keep
	if *rules.KeepOf(&k, plan.Failed+40) = plan.Duration(time.Hour); k.Failed != plan.Duration(time.Hour) {
		t.Errorf("a code above 1 is no failure: %+v", k)
	}
	if rules.KeepOf(&k, plan.Held) != nil || rules.KeepOf(&k, plan.Running) != nil {
		t.Error("a status that is not finished has a field")
	}
}

func TestAnAgeBelowZeroIsForEverAndNoOther(t *testing.T) {
	for _, c := range []struct {
		was, is plan.Keep
		want    string // "": it is taken
	}{
		{is: plan.Keep{Succeeded: plan.Duration(time.Hour), Failed: -1}},
		{is: plan.Keep{Terminated: -2}, want: "keep.terminated is -2ns; it is an age, as in 30d, 2w or 12h, or -1ns for ever, or 0s for the store's default"},
		{is: plan.Keep{Orphaned: plan.Duration(-time.Hour)}, want: "keep.orphaned is -1h0m0s; it is an age"},
		{was: plan.Keep{Failed: plan.Duration(-time.Hour)}, is: plan.Keep{Failed: plan.Duration(-time.Hour)}}, // as another program stored it
	} {
		err := rules.CheckKeep("keep", c.was, c.is)
		if (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v after %+v: %v, want %q", c.is, c.was, err, c.want)
		}
	}
}
