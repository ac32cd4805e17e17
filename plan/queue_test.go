package plan_test

import (
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestNamesThatNoQueueIsGiven(t *testing.T) {
	for name, want := range map[string]string{ // "": it is taken
		"imap": "", "Disbatch::Plugin::Demo": "", "...": "", "a b": "", strings.Repeat("q", 200): "", strings.Repeat("a", 23): "", strings.Repeat("A1", 12): "",
		"":                       "a name cannot be empty; give one",
		strings.Repeat("q", 201): "a name has at most 200 bytes, and this one has 201; choose a shorter one",
		"a\x00b":                 "a name cannot have a NUL byte; remove it",
		".":                      "a name cannot be . or .., which the path of a URL drops; choose another name",
		"..":                     "a name cannot be . or .., which the path of a URL drops; choose another name",
		strings.Repeat("a1", 12): "24 hex digits would be taken for an id; choose another name",
	} {
		said := ""
		if err := plan.CheckQueueName(name); err != nil {
			said = err.Error()
		}
		if said != want {
			t.Errorf("%.30q: %q, want %q", name, said, want)
		}
	}
}

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
