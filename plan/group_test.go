package plan_test

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestAGroupReadsItsText(t *testing.T) {
	g := plan.Group{
		Name: "mail", Changed: time.Date(2030, 1, 2, 3, 4, 5, 678000000, time.UTC), GroupSettings: plan.GroupSettings{
			Parent: "acme", Weight: 4, Rate: plan.Rate{Starts: 10, Per: plan.Duration(time.Second), Burst: 20}, Paused: true,
			SuccessURI: "https://example.com/ok", DeadLetterURI: "https://example.com/bad",
		},
	}
	if got := plan.GroupOf("mail", g.Text()); got != g {
		t.Errorf("%s is read as %+v", g.Text(), got)
	}
	for text, want := range map[string]plan.GroupSettings{
		"": {}, "{": {}, "[]": {}, `{"weight": "x", "parent": "acme"}`: {Parent: "acme"}, `{"weight": 5000, "paused": true}`: {Paused: true},
		`{"rate": {"starts": 5, "per": "0s"}, "paused": true}`: {Paused: true}, `{"name": "other", "weight": 7}`: {Weight: 7},
	} {
		if got := plan.GroupOf("mail", text); got.Name != "mail" || got.GroupSettings != want {
			t.Errorf("%s is read as %+v, want %+v", text, got, want)
		}
	}
}

func TestSettingsOfAQueueInAGroup(t *testing.T) {
	s := plan.QueueSettings{Group: "acme", Weight: 3}
	if got := plan.QueueSettingsOf(s.Text()); got.Group != "acme" || got.Weight != 3 {
		t.Errorf("%s is read as %+v", s.Text(), got)
	}
	if got := plan.QueueSettingsOf(`{"group": "acme", "weight": -3}`); got.Group != "acme" || got.Weight != 0 {
		t.Errorf("a weight of -3 is read as %d", got.Weight)
	}
}
