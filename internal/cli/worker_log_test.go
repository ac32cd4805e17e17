package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/config"
)

// The log names the settings of a new configuration only if they hold from then on.
func TestALogThatCannotBeWrittenIsNotSaidToBeTakenOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	read := func(level, log string) {
		t.Helper()
		text := fmt.Sprintf(`{"mongohost": "a", "database": "b", "log4perl": {"level": %q, "appenders": {"f": {"type": "X::File", "args": {"filename": %q}}}}}`, level, log)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := filepath.Join(filepath.Dir(file), "log")
	read("INFO", there)
	conf, err := config.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newDenLog(&strings.Builder{}, "text", "", "", conf.Log, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer l.out.Close()
	says := func(level, log string, taken bool) {
		t.Helper()
		read(level, log)
		if err := os.Truncate(there, 0); err != nil {
			t.Fatal(err)
		}
		conf = l.reload(conf)
		b, err := os.ReadFile(there)
		text := string(b)
		if err != nil || strings.Contains(text, `level=INFO msg="configuration read"`) != taken || strings.Contains(text, "stay as they were") == taken {
			t.Errorf("with level %s and the log %s it says (%v), want it taken over: %v\n%s", level, log, err, taken, text)
		}
	}
	says("INFO", there, true)
	says("ERROR", filepath.Join(filepath.Dir(file), "nosuch", "log"), false)
	says("INFO", there, true)
}
