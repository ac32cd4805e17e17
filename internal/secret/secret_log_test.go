package secret_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// printed makes entries of texts. Texts that begin with ! are of another stream.
func printed(texts ...string) (entries []plan.LogEntry) {
	for _, text := range texts {
		e := plan.LogEntry{Attempt: 1, Stream: plan.Stdout, Text: text}
		if text, other := strings.CutPrefix(text, "!"); other {
			e.Stream, e.Text = plan.Stderr, text
		}
		entries = append(entries, e)
	}
	return entries
}

func TestASecretIsHiddenWhereEntriesOfALogCutIt(t *testing.T) {
	values := []string{"secret-one", "one-two"}
	for _, c := range []struct {
		name                          string
		before, entries, after, shown []string
	}{
		{"in one entry", nil, []string{"a secret-one b\n"}, nil, []string{"a *** b\n"}},
		{"twice", nil, []string{"secret-onesecret-one\n"}, nil, []string{"******\n"}},
		{"in two", nil, []string{"a secr", "et-one b\n"}, nil, []string{"a ***", " b\n"}},
		{"in three", nil, []string{"a s", "ecret-on", "e b secret-one\n"}, nil, []string{"a ***", "", " b ***\n"}},
		{"with another stream between", nil, []string{"a secr", "!oops\n", "et-one\n"}, nil, []string{"a ***", "oops\n", "\n"}},
		{"of two streams it is none", nil, []string{"a sec\n", "!ret-one\n"}, nil, []string{"a sec\n", "ret-one\n"}},
		{"two that overlap", nil, []string{"secret-", "one-two\n"}, nil, []string{"***", "\n"}},
		{"begun before the page", []string{"x secr"}, []string{"et-one\n", "y\n"}, nil, []string{"\n", "y\n"}},
		{"whole before the page", []string{"secret-one"}, []string{"one\n"}, nil, []string{"one\n"}},
		{"ended after the page", nil, []string{"y\n", "x s"}, []string{"!oops\n", "ecret-one\n"}, []string{"y\n", "x ***"}},
		{"not ended after the page", nil, []string{"x secr"}, []string{"ecy\n"}, []string{"x secr"}},
		{"through the page", []string{"s"}, []string{"ecret-"}, []string{"one"}, []string{""}},
		{"not ended yet", nil, []string{"x secr"}, nil, []string{"x ***"}},
		{"hardly begun", nil, []string{"x sec"}, nil, []string{"x sec"}},
		{"nothing", nil, []string{"x\n", "!y", "", "z"}, nil, []string{"x\n", "y", "", "z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := printed(c.entries...)
			secret.HideLog(printed(c.before...), entries, printed(c.after...), values)
			var shown []string
			for _, e := range entries {
				shown = append(shown, e.Text)
			}
			if !slices.Equal(shown, c.shown) {
				t.Errorf("shown as %q, want %q", shown, c.shown)
			}
		})
	}
}

func TestAnAttemptBeginsItsLogAnew(t *testing.T) {
	entries := printed("secr", "et-one")
	entries[1].Attempt = 2
	secret.HideLog(nil, entries, nil, []string{"secret-one"})
	if entries[1].Text != "et-one" {
		t.Errorf("what the second attempt prints is shown as %q", entries[1].Text)
	}
}
