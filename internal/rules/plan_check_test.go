package rules_test

import (
	"errors"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAPlanIsReadyWithTheTasksThatItIsSubmittedWith(t *testing.T) {
	for _, c := range []struct {
		name        string
		size, tasks int
		want        string // the error; "" for none
	}{
		{"all are in", 3, 3, ""},
		{"none is in", 3, 0, "nightly#2 has 0 of its 3 tasks: its submission has not ended, or ended half-way"},
		{"one is missing", 6001, 6000, "nightly#2 has 6000 of its 6001 tasks: its submission has not ended, or ended half-way"},
		{"one is too many", 3, 4, "nightly#2 has 4 tasks, and was submitted with 3: others were added before it was ready; submit it anew"},
		{"it does not say how many, and has none", 0, 0, ""},
		{"it does not say how many, and has some", 0, 5, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan.Plan{Name: "nightly", Run: 2, Size: c.size}
			err := rules.CheckReady(&p, c.tasks)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want || errors.Is(err, plan.ErrConflict) != (c.want != "") {
				t.Errorf("got %q (%v), want %q", got, err, c.want)
			}
		})
	}
}
