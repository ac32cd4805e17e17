package listing

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestAByteOrderMarkIsNoPartOfTheFirstLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte("\uFEFFone\r\n\uFEFFtwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	items, err := linesOf(t.Context(), path)
	if got := fmt.Sprintf("%s", items); err != nil || got != "[\"one\" \"\uFEFFtwo\"]" {
		t.Errorf("the items are %s, %v; want one without the mark", got, err)
	}
}
