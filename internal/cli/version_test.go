package cli

import (
	"strings"
	"testing"
)

func TestAVersionHasItsCommitAndDate(t *testing.T) {
	for want, p := range map[string]Program{
		"v1.2.3 (0123456789ab, 2030-01-02) go": {Version: "v1.2.3", Revision: "0123456789abcdef", Date: "2030-01-02T03:04:05Z"},
		"v1.2.3 (0123) go":                     {Version: "v1.2.3", Revision: "0123"},
	} {
		if got := (&app{Program: p}).version().String(); !strings.HasPrefix(got, want) {
			t.Errorf("it is %q, want %s…", got, want)
		}
	}
}
