package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

const (
	// DefaultGrace is how long a command that is stopped has between SIGTERM and SIGKILL.
	DefaultGrace = 10 * time.Second

	// DefaultLinger is how long processes that a command left in the background may continue to
	// write after its end.
	DefaultLinger = time.Second

	// hurriedGrace is the rest of the grace period once the command has to end quickly.
	hurriedGrace = 250 * time.Millisecond
)

// dying is how long killed processes may take to be gone before that is given up. Tests set it.
var dying = time.Second

// ErrTimeout is why a command was stopped that ran longer than its Timeout.
var ErrTimeout = errors.New("timeout")

// A Command is what to run.
type Command struct {
	Args    []string        // the program and its arguments; a name without a slash is looked up in the PATH of Env
	Env     []string        // NAME=VALUE, each name once; nothing else is inherited; SLUICE_COMMAND is added
	Dir     string          // where it runs; "" is this process's working directory
	Stdin   []byte          // standard input; empty is /dev/null
	Timeout time.Duration   // when it is stopped, from its start; 0 is never
	Grace   time.Duration   // from SIGTERM to SIGKILL; 0 is DefaultGrace, less is SIGKILL at once
	Hurry   <-chan struct{} // once it is closed, a command that is stopped, before or after, has a quarter of a second left of its Grace
	Linger  time.Duration   // how long its output is read after its end, if something still holds it open; 0 is DefaultLinger
}

// A Result is how a command that was started ended.
type Result struct {
	Started, Ended time.Time
	Code           int    // its exit status; -1 if a signal ended it
	Signal         string // which, as in "SIGKILL"; "" if none did
	Stopped        error  // why it was stopped: an error that is ErrTimeout, or the cause of the context; nil: it ended without a stop
}

// Missing reports whether the command's program is certainly not there, or may not be executed, for a
// command in a shell's line: the shell has begun nothing then.
func Missing(cmd Command) bool {
	program, err := lookup(&cmd)
	if err != nil {
		return plugins.LacksOf(err) != plan.LacksNothing
	}
	if !filepath.IsAbs(program) {
		program = filepath.Join(cmd.Dir, program)
	}
	_, err = os.Stat(program)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !executable(program)
}

// Run runs the command and returns when it has ended, all of its group is gone, and out has all of its output. It fails if the
// command could not be started; the error then says by name what is missing, and what to do. It is a
// plugins.NotBegun, unless no node could start the command. (It also fails if this program waits
// for the command elsewhere, since how it ended is not known then.)
//
// When ctx ends, or the Timeout is over, the command's process group gets SIGTERM. After the Grace
// it gets SIGKILL, if any process of it is left. If ctx has ended already, nothing is started, and
// Started is zero. A command that has ended is not stopped any more: its processes in the
// background may write for the Linger, and are then killed.
//
// Any number of goroutines may call Run at once, each with an Output of its own.
func Run(ctx context.Context, cmd Command, out *Output) (Result, error) {
	defer out.close()
	if ctx.Err() != nil {
		return Result{Code: -1, Stopped: context.Cause(ctx)}, nil
	}
	r, err := launch(&cmd, out)
	if err != nil {
		return Result{}, err
	}
	result := Result{Started: time.Now()}
	w, over := observe(ctx, r.process, &cmd)
	defer over()
	r.await()
	err = w.conclude(&result, func() {
		linger := cmd.Linger
		if linger == 0 {
			linger = DefaultLinger
		}
		r.wait(linger)
	})
	r.finish()
	return result, err
}

// observe begins to watch a command that was started. The caller calls over when all is done.
func observe(ctx context.Context, p *process, cmd *Command) (w *watch, over func()) {
	w = &watch{process: p, grace: cmd.Grace, hurry: cmd.Hurry, done: make(chan struct{})}
	if w.grace == 0 {
		w.grace = DefaultGrace
	}
	unwatch := context.AfterFunc(ctx, func() { w.stop(context.Cause(ctx)) })
	var timer *time.Timer
	if cmd.Timeout > 0 {
		timer = time.AfterFunc(cmd.Timeout, func() { w.stop(fmt.Errorf("%w after %v", ErrTimeout, cmd.Timeout)) })
	}
	return w, func() {
		if timer != nil {
			timer.Stop()
		}
		unwatch()
		close(w.done)
		w.hasteners.Wait()
	}
}

// conclude ends what is left of the command once its own process has exited, and fills the result.
// A command that was not stopped may have processes in the background: linger waits for these.
func (w *watch) conclude(result *Result, linger func()) (err error) {
	stopped := w.ended()
	result.Ended, result.Stopped = time.Now(), stopped
	if stopped == nil {
		linger()
		w.process.kill()
		result.Code, result.Signal, err = w.process.reap()
	} else {
		// Its children may still be cleaning up after the SIGTERM, which a shell does not wait for.
		result.Code, result.Signal, err = w.process.reap()
		for left := w.left(); left > 0 && !w.process.gone(min(left, hurriedGrace)); left = w.left() {
			continue // in steps, since the grace may be cut short
		}
		w.process.kill()
	}
	w.process.gone(dying)
	w.process.release()
	return err
}

// watch stops a command, once, unless it has ended.
type watch struct {
	process *process
	grace   time.Duration
	hurry   <-chan struct{}
	done    chan struct{} // closed when all is over

	hasteners sync.WaitGroup

	mu     sync.Mutex
	cause  error
	over   bool
	killAt time.Time
	killer *time.Timer
}

func (w *watch) stop(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.cause != nil {
		return
	}
	w.cause, w.killAt = cause, time.Now().Add(w.grace)
	if w.grace < 0 {
		w.process.kill()
		return
	}
	w.process.terminate()
	w.killer = time.AfterFunc(w.grace, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.over {
			w.process.kill()
		}
	})
	if w.hurry != nil {
		w.hasteners.Go(w.hasten)
	}
}

// hasten shortens the grace of a command that is being stopped when it is to go quickly.
func (w *watch) hasten() {
	select {
	case <-w.hurry:
	case <-w.done:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := time.Now().Add(hurriedGrace); at.Before(w.killAt) {
		w.killAt = at
		w.killer.Reset(hurriedGrace)
	}
}

// left returns how much of the grace is left.
func (w *watch) left() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Until(w.killAt)
}

// ended says that the command's own process has exited, and returns why it was stopped, if it was.
func (w *watch) ended() (cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.killer != nil {
		w.killer.Stop()
	}
	return w.cause
}
