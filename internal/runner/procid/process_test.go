package procid

import (
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestOnlyAProcessThatIsCertainlyGoneIsGone(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if p := Process(); p.PID != self.PID || p.Identity != self.String() {
		t.Fatalf("this process is %+v, want pid %d and %s", p, self.PID, self)
	}
	earlier := self
	earlier.Start--
	elsewhere := self
	elsewhere.Boot, elsewhere.Machine = "another", "another"
	for _, c := range []struct {
		name     string
		identity string
		want     bool
	}{
		{"this process", self.String(), false},
		{"one of the same pid that started earlier", earlier.String(), true},
		{"one of another machine", elsewhere.String(), false},
		{"one that has no identity", "", false},
		{"one whose identity cannot be read", strings.Repeat("x", 20), false},
	} {
		if got := Gone(plan.Instance{Process: plan.Process{PID: self.PID, Identity: c.identity}}); got != c.want {
			t.Errorf("%s: gone = %v, want %v", c.name, got, c.want)
		}
	}
}
