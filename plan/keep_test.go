package plan_test

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestAKeepHasAFieldForEachStatus(t *testing.T) {
	var k plan.Keep
	if *k.Of(plan.Failed + 40) = time.Hour; k.Failed != time.Hour {
		t.Errorf("a code above 1 is no failure: %+v", k)
	}
	if k.Of(plan.Held) != nil || k.Of(plan.Running) != nil {
		t.Error("a status that is not finished has a field")
	}
}
