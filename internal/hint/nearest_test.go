package hint

import "testing"

func TestTheNearestWord(t *testing.T) {
	known := []string{"needs", "when", "retry", "timeout", "continue-on-error", "on_lost", "run"}
	for word, want := range map[string]string{
		"neds": "needs", "Needs": "needs", "need": "needs", "timout": "timeout", "tmieout": "timeout",
		"continue_on_error": "continue-on-error", "continueOnError": "continue-on-error", "on-lost": "on_lost", "rum": "run", "ran": "run",
		"": "", "flavour": "", "x": "", "retries": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}
