package exec

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesGoToADiskWhenMemoryIsFull(t *testing.T) {
	memory := t.TempDir() // takes the part of it
	root := filepath.Join(memory, "root")
	first := &folder{path: filepath.Join(root, "first")}
	if err := os.MkdirAll(first.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(first.path, "1.params.json")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	s := scratch{root: root, now: first}
	f, err := s.open([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := filepath.Dir(filepath.Dir(f.in.path)); got != os.TempDir() {
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

// TestFilesGoToADiskWhenNoFolderCanBeMade is the same, where a folder was used up and there is no room for the next one.
func TestFilesGoToADiskWhenNoFolderCanBeMade(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	root := filepath.Join(t.TempDir(), "root")
	if err := os.WriteFile(root, nil, 0o600); err != nil { // so that nothing can be made in it
		t.Fatal(err)
	}
	s := scratch{root: root, now: &folder{path: filepath.Join(root, "first"), begun: perFolder}}
	f, err := s.begin()
	if err == nil {
		t.Fatal("a folder was made in a file")
	}
	s.leave(f.in, true)
	if f, err = s.begin(); err != nil || filepath.Dir(filepath.Dir(f.in.path)) != os.TempDir() {
		t.Errorf("the files are to be %+v, %v; want them in %s", f, err, os.TempDir())
	}
}
