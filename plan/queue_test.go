package plan_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

// TestSettingsThatCannotBeReadSayNothing is about what a person, or another program, wrote by hand.
func TestSettingsThatCannotBeReadSayNothing(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "{}": "", "5": "", "{": "", "null": "",
		`{"on_lost":"fail","secrets":["a"],"keep":{"failed":"1h"}}`: `{"on_lost":"fail","secrets":["a"],"keep":{"failed":"1h0m0s"}}`,
		`{"on_lost":"never","secrets":["a"]}`:                       `{"secrets":["a"]}`,
		`{"on_lost":5,"secrets":["a"],"keep":"30d","else":[1]}`:     `{"secrets":["a"]}`,
		`{"secrets":"a","on_lost":"retry"}`:                         `{"on_lost":"retry"}`,
	} {
		s := plan.QueueSettingsOf(text)
		if got := s.Text(); got != want {
			t.Errorf("%s is read as %s, want %s", text, got, want)
		}
	}
}
