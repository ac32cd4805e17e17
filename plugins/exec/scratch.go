package exec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/seed-1177d267/sluice/internal/folders"
	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/plan"
)

// scratch keeps the files of running tasks in one folder of this process, which others cannot read.
// The files of a task begin with its number. On a busy disk, a folder for each task would cost
// several times as much as the command /bin/true itself.
type scratch struct {
	under string // "" is TMPDIR, if it is set, else the folder of tasks below the user's state, else os.TempDir

	mu      sync.Mutex
	root    string // "" until there is a first task
	last    uint64
	running map[uint64]bool
}

const (
	scratchPrefix = "sluice-exec-"
	paramsSuffix  = ".params.json"
	ownerFile     = "owner" // in the root: the identity of the process that it belongs to

	// tidyEvery is the number of tasks between two searches for files that commands left beside
	// their outputs.
	tidyEvery = 1024
)

// files are those of one task.
type files struct {
	task                     uint64
	params, output, progress string
}

// open writes the params of a task to a file and makes an empty one for its output. It names that
// for its progress, which is not there yet.
func (s *scratch) open(params []byte) (files, error) {
	f := files{task: s.begin()}
	for tries := 0; ; tries++ {
		root, err := s.folder()
		if err == nil {
			name := filepath.Join(root, strconv.FormatUint(f.task, 10))
			f.params, f.output, f.progress = name+paramsSuffix, name+".output.json", name+".progress"
			err = writeFile(f.params, params)
		}
		if err == nil {
			err = writeFile(f.output, nil)
		}
		if err == nil {
			return f, nil
		}
		// Without the folder, something tidied up, as many systems do with what is old among their temporary files.
		tidied, full := errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOSPC) || errors.Is(err, errQuota)
		if root == "" || tries > 0 || !tidied && !full {
			s.close(f)
			return files{}, err
		}
		os.Remove(f.params) // a part of it may be on the full disk
		os.Remove(f.output)
		s.leave(root, full)
	}
}

// close removes the files of a task.
func (s *scratch) close(f files) {
	if f.params != "" {
		os.Remove(f.params)
		for _, path := range []string{f.output, f.progress} {
			if there(path) {
				os.RemoveAll(path) // a command may have made anything of it
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, f.task)
	if f.task%tidyEvery == 0 {
		s.tidy()
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

func (s *scratch) begin() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	if s.running == nil {
		s.running = map[uint64]bool{}
	}
	s.running[s.last] = true
	return s.last
}

// tidy removes the files that ended commands left beside their outputs.
func (s *scratch) tidy() {
	left, _ := os.ReadDir(s.root) // the next time, if not now
	for _, entry := range left {
		number, _, _ := strings.Cut(entry.Name(), ".")
		if task, err := strconv.ParseUint(number, 10, 64); err == nil && !s.running[task] {
			os.RemoveAll(filepath.Join(s.root, entry.Name()))
		}
	}
}

// folder returns the root, which it makes if there is none.
func (s *scratch) folder() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root != "" {
		return s.root, nil
	}
	var err error
	for _, under := range s.places() {
		var root string
		if root, err = makeRoot(under); err == nil {
			s.root = root
			return root, nil
		}
	}
	return "", err
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
	return root, nil
}

// leave puts the next task's files into another root, which is on a disk if this one is full.
// Running tasks keep the old root, and a later process sweeps it.
func (s *scratch) leave(root string, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root != root {
		return
	}
	s.root = ""
	if full && s.under == "" {
		s.under = os.TempDir()
	}
}

// remove removes the root with all that is in it.
func (s *scratch) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	root := s.root
	s.root = ""
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
