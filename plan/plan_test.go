package plan_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestAPlanIsCalledByItsNameAndRun(t *testing.T) {
	p := plan.Plan{Name: "nightly", Run: 3}
	if got := p.Title(); got != "nightly#3" {
		t.Errorf("got %q, want nightly#3", got)
	}
}
