package dtr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// Runners of tasks, in addition to the paths of programs.
const (
	Inside = "inside" // the node's own process
	Sluice = "sluice" // `sluice runner`
)

// Runners starts the runners of a node. It implements den.Outside.
type Runners struct {
	Executable string            // this program's path
	Node       plan.NodeName     // whose runners they are
	Args       []string          // of `sluice runner`, before those of the task
	Env        []string          // NAME=VALUE, in addition to Environ
	Default    string            // what runs a task: Inside, Sluice, or the path of a program
	ByQueue    map[string]string // the same of queues that have their own, by name
	Programs   []string          // plugins that a Default that is a program runs; all others are run inside
	Log        io.Writer         // gets the lines of the runners' logs; any number of goroutines write to it
	Level      func() slog.Level // from which on runners log; nil: warnings
}

// Any reports whether anything is run outside.
func (r *Runners) Any() bool {
	for _, p := range r.ByQueue {
		if p != Inside {
			return true
		}
	}
	return r.Default != Inside
}

// Foreign reports whether another program runs anything.
func (r *Runners) Foreign() bool { return len(r.programs()) > 0 }

// Check says what is wrong with the programs that it names.
func (r *Runners) Check() error {
	for _, p := range r.programs() {
		if err := Check(p); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runners) programs() (all []string) {
	for _, p := range append(slices.Sorted(maps.Values(r.ByQueue)), r.Default) {
		if isProgram(p) {
			all = append(all, p)
		}
	}
	return all
}

func isProgram(p string) bool { return p != Inside && p != Sluice }

// by returns what runs the tasks of a queue.
func (r *Runners) by(queue, plugin string) string {
	if p, own := r.ByQueue[queue]; own {
		return p
	}
	if isProgram(r.Default) && !slices.Contains(r.Programs, plugin) {
		return Inside
	}
	return r.Default
}

// Runs implements den.Outside.
func (r *Runners) Runs(queue, plugin string) bool { return r.by(queue, plugin) != Inside }

// A QueueLister lists all queues.
type QueueLister interface {
	Queues(ctx context.Context) ([]plan.Queue, error)
}

// Elsewhere returns the plugins, among those that the node does not have, that another program's
// task runner runs. Each comes with the queues that the runner does not run: other nodes have to
// serve these.
func (r *Runners) Elsewhere(ctx context.Context, st QueueLister, missing []string) (map[string][]plan.QueueID, error) {
	found := map[string][]plan.QueueID{}
	if len(missing) == 0 || !r.Foreign() {
		return found, nil
	}
	queues, err := st.Queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range missing {
		runs := isProgram(r.Default) && slices.Contains(r.Programs, name)
		var not []plan.QueueID
		for i := range queues {
			switch q := &queues[i]; {
			case q.Plugin != name:
			case isProgram(r.by(q.Name, name)):
				runs = true
			default:
				not = append(not, q.ID)
			}
		}
		if runs {
			found[name] = not
		}
	}
	return found, nil
}

// Run implements den.Outside. A runner has a session of its own, so that no signal to the node's group, and no hangup of its terminal,
// reaches it.
func (r *Runners) Run(ctx context.Context, t *protocol.ClaimedTask, as plan.InstanceID, abandon <-chan struct{}) error {
	args := append([]string{"runner", "--task", t.Task.String(), "--as", as.String(), "--node", string(r.Node), "--plugin", t.Plugin, "--quiet"}, r.Args...)
	if r.Level != nil {
		args = append(args, "--log-level", r.Level().String())
	}
	if p := r.by(t.QueueName, t.Plugin); isProgram(p) {
		if err := Check(p); err != nil {
			return err
		}
		args = append(args, "--program", p)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	said := lastWords{log: r.Log}
	cmd := exec.Command(r.Executable, args...)
	cmd.Env = append(Environ(), r.Env...)
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second // its children may hold its standard error open
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a runner: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-abandon:
		_ = cmd.Process.Kill() // its guardian ends its processes, and another program's runner too
		<-ended
		return errors.New("its runner hung, and was ended: it did not take the task in time, or sent no heartbeat for too long")
	case err := <-ended:
		if err == nil || errors.Is(err, exec.ErrWaitDelay) {
			return nil
		}
		if words := said.text(); words != "" {
			return fmt.Errorf("its runner ended with %w: %s", err, words)
		}
		return fmt.Errorf("its runner ended with %w", err)
	}
}

// lastWords passes the lines of a runner's log on, and keeps the end of what else it says.
type lastWords struct {
	log  io.Writer
	mu   sync.Mutex
	line []byte // that has not ended yet
	kept []byte
}

const mostWords = 4 << 10

// Write implements io.Writer.
func (w *lastWords) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = append(w.line, b...)
	for {
		end := bytes.IndexByte(w.line, '\n') + 1
		if end == 0 && len(w.line) > mostWords {
			end = len(w.line)
		}
		if end == 0 {
			return len(b), nil
		}
		w.say(w.line[:end])
		w.line = w.line[end:]
	}
}

func (w *lastWords) say(line []byte) {
	if w.log != nil && (bytes.HasPrefix(line, []byte("time=")) || bytes.HasPrefix(line, []byte(`{"time":`))) {
		_, _ = w.log.Write(line) // what cannot be logged is nobody's to tell
		return
	}
	w.kept = append(w.kept, line...)
	if more := len(w.kept) - mostWords; more > 0 {
		w.kept = slices.Delete(w.kept, 0, more)
	}
}

func (w *lastWords) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(w.kept)+string(w.line), "?"))
}
