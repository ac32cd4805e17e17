package exec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/seed-1177d267/sluice/internal/folders"
	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/plan"
)

// scratch keeps the files of running tasks in folders of this process, which others cannot read. On a
// busy disk, a folder for each task would cost several times as much as the command /bin/true itself.
// So a folder has the files of perFolder tasks, and then the next one takes its place.
type scratch struct {
	under string // "" is TMPDIR, if it is set, else the folder of tasks below the user's state, else os.TempDir

	mu   sync.Mutex
	root string  // "" until there is a first task
	now  *folder // where the files of the next task go; nil: in a new one
}

// A folder is one of the root. It is removed when it has been replaced and its tasks have ended, with
// all that commands left in it.
type folder struct {
	path           string
	begun, running int // tasks; the mutex of scratch guards them
}

const (
	scratchPrefix = "sluice-exec-"
	paramsSuffix  = ".params.json"
	ownerFile     = "owner" // in the root: the identity of the process that it belongs to

	// perFolder is small, because ext4 without a journal skips the files that were removed within
	// the last minutes, one by one, each time it makes one near them: see folders.Spread. (After
	// some thousand commands that was a tenth of a millisecond for each.)
	perFolder = 256
)

// files are those of one task.
type files struct {
	in                       *folder
	params, output, progress string
}

// open writes the params of a task to a file and makes an empty one for its output. It names that
// for its progress, which is not there yet.
func (s *scratch) open(params []byte) (files, error) {
	for tries := 0; ; tries++ {
		f, err := s.begin()
		if err == nil {
			err = writeFile(f.params, params)
		}
		if err == nil {
			err = writeFile(f.output, nil)
		}
		if err == nil {
			return f, nil
		}
		s.close(f) // a part of it may be on the full disk
		// Without the folder, something tidied up, as many systems do with what is old among their temporary files.
		tidied, full := errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOSPC) || errors.Is(err, errQuota)
		if tries > 0 || !tidied && !full {
			return files{}, err
		}
		s.leave(f.in, full)
	}
}

// close removes the files of a task.
func (s *scratch) close(f files) {
	if f.in == nil {
		return
	}
	os.Remove(f.params)
	os.RemoveAll(f.output) // a command may have made anything of it
	if there(f.progress) {
		os.RemoveAll(f.progress)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.in.running--
	if f.in != s.now {
		f.in.tidy()
	}
}

// tidy removes a folder that was replaced, unless a task still has its files there.
func (f *folder) tidy() {
	if f.running == 0 {
		os.RemoveAll(f.path)
	}
}

// look returns what the output is when the command has ended, and whether somebody took it away
// while the command ran. A command that failed may have removed the file itself; it did not also
// remove its params.
func (f *files) look(failed bool) (output fs.FileInfo, vanished bool) {
	output, err := os.Lstat(f.output)
	if err != nil {
		return nil, !(failed && there(f.params))
	}
	return output, false
}

// there reports whether there is a file at the path.
func there(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Lstat(path)
	return err == nil
}

// begin names the files of the next task.
func (s *scratch) begin() (files, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.now; old != nil && old.begun == perFolder {
		s.now = nil // also if the next one cannot be made: see leave
		old.tidy()
	}
	if s.now == nil {
		next, err := s.folder()
		if err != nil {
			return files{}, err
		}
		s.now = next
	}
	s.now.begun++
	s.now.running++
	name := filepath.Join(s.now.path, strconv.Itoa(s.now.begun))
	return files{s.now, name + paramsSuffix, name + ".output.json", name + ".progress"}, nil
}

// folder makes a folder, and the root if there is none.
func (s *scratch) folder() (*folder, error) {
	path, err := "", fs.ErrNotExist
	if s.root != "" {
		path, err = os.MkdirTemp(s.root, "")
	}
	if errors.Is(err, fs.ErrNotExist) {
		for _, under := range s.places() {
			if s.root, err = makeRoot(under); err == nil {
				path, err = os.MkdirTemp(s.root, "")
				break
			}
		}
	}
	return &folder{path: path}, err
}

// places returns the folders that may hold the root, the best first. Sessions that end and jobs of
// clusters tidy the folders in memory, and systems tidy what is old among temporary files. Nobody
// tidies the user's state.
func (s *scratch) places() []string {
	if s.under != "" {
		return []string{s.under}
	}
	if state := stateFolder(); state != "" && os.Getenv("TMPDIR") == "" {
		return []string{state, os.TempDir()}
	}
	return []string{os.TempDir()}
}

// stateFolder returns the folder of tasks below the user's state, or "". It makes no home folder. On
// a network, the files of a task would take longer than a short command.
func stateFolder() string {
	state := folders.State()
	if state == "" || !there(filepath.Dir(filepath.Dir(state))) {
		return ""
	}
	dir := filepath.Join(state, "sluice", "tasks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	if kind, err := folders.Network(dir); err != nil || kind != "" {
		return ""
	}
	return dir
}

// makeRoot makes a root, and removes those of processes that are gone.
func makeRoot(under string) (string, error) {
	sweep(under)
	root, err := os.MkdirTemp(under, scratchPrefix)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(root, ownerFile), []byte(procid.Process().Identity), 0o600); err != nil {
		os.RemoveAll(root)
		return "", err
	}
	folders.Spread(root)
	return root, nil
}

// leave puts the next task's files into another folder, which is in another root if this one is full:
// on a disk, if nothing was said. Running tasks keep the old root, and a later process sweeps it.
func (s *scratch) leave(old *folder, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != old {
		return
	}
	if s.now = nil; old != nil {
		old.tidy()
	}
	if !full {
		return
	}
	if s.root = ""; s.under == "" {
		s.under = os.TempDir()
	}
}

// remove removes the root with all that is in it.
func (s *scratch) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	root := s.root
	s.root, s.now = "", nil
	if root == "" {
		return nil
	}
	return os.RemoveAll(root)
}

// sweep removes what processes left that were killed. A root without an owner is being made; what cannot be read is another user's.
func sweep(under string) {
	roots, _ := filepath.Glob(filepath.Join(under, scratchPrefix+"*")) // its only error is of a wrong pattern
	for _, root := range roots {
		owner, err := os.ReadFile(filepath.Join(root, ownerFile))
		if err == nil && procid.Gone(plan.Instance{Process: plan.Process{Identity: string(owner)}}) {
			os.RemoveAll(root)
		}
	}
}
