package rules_test

import (
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
