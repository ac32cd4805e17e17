package hint

import "testing"

func TestACommandIsTypedAsItStands(t *testing.T) {
	for want, words := range map[string][]string{
		"sluice task logs p#1 'copy[3]'":      {"task", "logs", "p#1", "copy[3]"},
		`sluice queue set 'it'\''s' --pin ''`: {"queue", "set", "it's", "--pin", ""},
		`sluice x $'a\x1b[2J\xc3\xa9\'b\\'`:   {"x", "a\x1b[2Jé'b\\"},
	} {
		if got := Line(words); got != want {
			t.Errorf("%q is typed as %s, want %s", words, got, want)
		}
	}
}

func TestOnlyWhatRunsTasksNeedsTheStore(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  bool
	}{
		{[]string{"worker"}, true},
		{[]string{"plan", "run", "--resume", "p#1"}, true},
		{[]string{"plan", "retry", "p#1", "--run"}, true},
		{[]string{"plan", "retry", "p#1"}, false},
		{[]string{"plan"}, false},
		{[]string{"task", "logs", "run"}, false},
	} {
		if got := NeedsStore(c.words); got != c.want {
			t.Errorf("%q: got %v", c.words, got)
		}
	}
}
