package exec

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

const (
	progressEvery = 500 * time.Millisecond // the interval for reading a command's file; a command that ends before costs only a timer
	progressTail  = 4 << 10                // bytes at the end of it that are read
)

// A follower tells what a command writes to the file of its progress: the last line counts. It
// reads in a goroutine of its own. If a read hangs, as on a file server that does not answer, the
// goroutine is left behind.
type follower struct {
	path    string
	task    *plugins.Task
	secrets []string // of its env

	mu      sync.Mutex // of what follows
	timer   *time.Timer
	over    bool
	seen    stamp // of the file at the last look,
	told    bool  // whose last line was told, or refused
	refused bool
}

// A stamp is what changes when a file is written.
type stamp struct {
	modified time.Time
	size     int64
}

func follow(path string, t *plugins.Task, secrets []string) *follower {
	f := &follower{path: path, task: t, secrets: secrets}
	if t.Reached != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.timer = time.AfterFunc(progressEvery, f.look)
	}
	return f
}

// stop ends it. A look that is under way tells nothing more.
func (f *follower) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over = true; f.timer != nil {
		f.timer.Stop()
	}
}

// look tells what is new, and arranges for the next look.
func (f *follower) look() {
	line, whole, is := lastLine(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	if is != f.seen {
		f.told = false
	}
	// A line without an end may still be being written: it counts once the file was the same at two looks.
	if line != "" && !f.told && (whole || is == f.seen) {
		f.told = true
		f.tell(line)
	}
	f.seen = is
	f.timer.Reset(progressEvery)
}

func (f *follower) tell(line string) {
	fraction, text, err := rules.ParseProgress(line)
	if err == nil {
		err = f.task.Progress(fraction, f.shown(text))
	}
	if err != nil && !f.refused {
		f.refused = true
		err = fmt.Errorf("$SLUICE_PROGRESS: %w, and a text may follow it, as in: 0.4 copied 400 of 1000", err)
		f.task.Log.Append(plan.System, f.shown(err.Error()))
	}
}

// shown returns a text without the secrets of the env. A text that spells a secret in another way
// is hidden whole.
func (f *follower) shown(text string) string {
	if !secret.Holds([]byte(text), f.secrets) {
		return text
	}
	values := slices.DeleteFunc(slices.Clone(f.secrets), func(s string) bool { return s == "" })
	if text = secret.HideText(text, secret.LongestFirst(values)); secret.Holds([]byte(text), f.secrets) {
		return secret.Hidden
	}
	return text
}

// lastLine returns the last line of the file that is not empty, or "", and whether the line is
// complete.
func lastLine(path string) (line string, whole bool, is stamp) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // opening a FIFO might never end
		return "", false, stamp{}
	}
	is = stamp{info.ModTime(), info.Size()}
	tail, err := readTail(path, info)
	if err != nil {
		return "", false, is
	}
	text := bytes.TrimRight(tail, "\r\n")
	whole = len(text) < len(tail)
	begin := bytes.LastIndexByte(text, '\n') + 1
	if begin == 0 && int64(len(tail)) < info.Size() { // longer than anything that is meant
		return "", false, is
	}
	return string(text[begin:]), whole, is
}

func readTail(path string, info fs.FileInfo) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tail := make([]byte, min(info.Size(), progressTail))
	_, err = file.ReadAt(tail, info.Size()-int64(len(tail)))
	return tail, err
}
