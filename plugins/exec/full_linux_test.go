package exec

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesGoToADiskWhenMemoryIsFull(t *testing.T) {
	memory := t.TempDir() // takes the part of it
	root := filepath.Join(memory, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(root, "1.params.json")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	s := scratch{root: root}
	f, err := s.open([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := filepath.Dir(filepath.Dir(f.params)); got != os.TempDir() {
		t.Errorf("the files are in %s, want %s", got, os.TempDir())
	}
	if text, err := os.ReadFile(f.params); err != nil || string(text) != "{}" {
		t.Errorf("the params are %q, %v", text, err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("in the full folder there is %v, %v", left, err)
	}
	s.close(f)
	if err := s.remove(); err != nil {
		t.Error(err)
	}
}
