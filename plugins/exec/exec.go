// Package exec is the plugin that runs commands: a shell line or a program with its arguments. A
// command runs in a session of its own, with the task's params as a file and as variables. Its
// output is read from a file. Package runner owns the processes.
//
// Its params, in addition to those that become variables:
//
//	run    a text, which is a line for `sh -ec` (of nothing but words, it is run without the shell: see plainWords); or a list: a
//	       program and its arguments, without a shell
//	shell  another shell for the line, as in "bash"; on Windows a line needs one
//	dir    the folder that it runs in
//	env    variables: texts, numbers, booleans, and secrets as {"from_env": NAME} or {"from_file": PATH}, which are read as it starts
//	stdin  "params": it reads its params, as JSON; else nothing
package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Name is what plans call the plugin.
const Name = plan.DefaultPlugin

// GuardMain has to be called first in main by a program that runs this plugin. The program is
// started once more as the guardian of its commands, so that they do not outlive it; there
// GuardMain does not return. Without the call no node begins that has the plugin.
func GuardMain() { runner.GuardMain() }

// Options say how commands are run. The zero value of a field means its default.
type Options struct {
	Grace   time.Duration // between SIGTERM and SIGKILL; default 10 s, less than 0 is none
	Limit   int           // the most bytes of an attempt's output that are kept: the first and the last half; default 1 MiB
	TempDir string        // where a folder for params and outputs is made; default $TMPDIR, else sluice/tasks in the state of the user, or os.TempDir
}

// A Plugin runs commands. Any number of goroutines may call Run at once. Close it when none does.
type Plugin struct {
	opts    Options
	base    baseEnv
	scratch scratch
}

// New returns the plugin. It takes the process's environment as it is now.
func New(o Options) *Plugin {
	return &Plugin{opts: o, base: newBaseEnv(os.Environ()), scratch: scratch{under: o.TempDir}}
}

// Close removes the plugin's files on disk. The next process removes the files of a killed one.
func (p *Plugin) Close() error { return p.scratch.remove() }

// errUnguarded says what the author of a program forgot.
var errUnguarded = errors.New("this program runs commands, which would outlive it; call exec.GuardMain first in main, or in TestMain")

// CheckStart implements plugins.Starter. Without GuardMain every command would fail.
func (p *Plugin) CheckStart() error {
	if !runner.Guarded() {
		return errUnguarded
	}
	return nil
}

// Lease implements plugins.Tenant.
func (p *Plugin) Lease(left time.Duration) { runner.Lease(left) }

// Run implements plugins.Plugin. Exit status 0 is success, and the output is the content of
// $SLUICE_OUTPUT. Any other end is a failure, with the status or the signal in Exit. A command that
// was stopped is Terminated, whatever its exit status.
func (p *Plugin) Run(ctx context.Context, t *plugins.Task) plan.Result {
	r, err := p.run(ctx, t)
	if err != nil {
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: err.Error(), Lacks: plugins.LacksOf(err)}
	}
	return r
}

func (p *Plugin) run(ctx context.Context, t *plugins.Task) (plan.Result, error) {
	s, err := readSettings(t.Params)
	if err != nil {
		return plan.Result{}, err
	}
	args, err := s.command(runtime.GOOS)
	if err != nil {
		return plan.Result{}, err
	}
	return p.perform(ctx, t, s, args)
}

// RunProgram runs the program at path, without arguments, for one attempt of a task of another
// plugin. The program runs like a command with stdin: params, in the node's folder. Params in lower
// case become variables. No param has another meaning, and there is no env. So the params do not
// choose what runs, and cannot ask for secrets of the node.
func (p *Plugin) RunProgram(ctx context.Context, t *plugins.Task, path string) plan.Result {
	s := &settings{argv: []string{path}, stdin: stdinParams}
	err := json.Unmarshal(t.Params, &s.params)
	var r plan.Result
	if err == nil {
		r, err = p.perform(ctx, t, s, s.argv)
	}
	if err != nil {
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: err.Error(), Lacks: plugins.LacksOf(err)}
	}
	return r
}

// perform starts what the settings say, args unless a plain line will do, and waits for its end.
func (p *Plugin) perform(ctx context.Context, t *plugins.Task, s *settings, args []string) (plan.Result, error) {
	files, err := p.scratch.open(t.Params)
	if err != nil {
		return plan.Result{}, plugins.NotBegun(fmt.Errorf("write the task's params to a file: %w; check the free space and the permissions", err))
	}
	defer func() { p.scratch.close(files) }()
	if s.long() {
		command, remove, err := s.scriptFile(args, files)
		if err != nil {
			return plan.Result{}, plugins.NotBegun(err)
		}
		defer remove()
		args = command
	}
	env, secrets, err := p.base.of(ctx, t, s, files)
	if err != nil && ctx.Err() != nil {
		return plan.Result{Status: plan.Terminated, Detail: err.Error()}, nil
	}
	if err != nil {
		return plan.Result{}, err
	}
	cmd := runner.Command{Env: env, Dir: s.dir, Grace: p.opts.Grace, Hurry: t.Hurry}
	if s.stdin == stdinParams {
		cmd.Stdin = t.Params
	}
	follower := follow(files.progress, t, secrets)
	defer follower.stop()
	var out *runner.Output
	start := func(args []string) (runner.Result, error) {
		cmd.Args = args
		out = runner.NewOutput(p.opts.Limit, slices.Concat(secrets, t.Secrets)...)
		t.Log.Attach(out.Entries)
		if whole := t.Log.Capture(); whole != nil {
			out.Tee(func(s runner.Stream, text string) { whole.Write(s.Log(), text) })
		}
		return runner.Run(ctx, cmd, out)
	}
	var ended runner.Result
	if words := s.plain(runtime.GOOS); words != nil {
		ended, err = start(words)
	}
	if ended.Started.IsZero() && ended.Stopped == nil { // of a plain line that could not be started, the shell says why; or it is a script without #!
		ended, err = start(args)
	}
	if err != nil {
		return plan.Result{}, err
	}
	output, vanished := files.look(ended.Code != 0)
	if ended.Stopped == nil && vanished {
		exit := &plan.Exit{Code: ended.Code, Signal: ended.Signal}
		return plan.Result{Status: plan.Queued, Reason: plan.ReasonLost, Detail: vanishedText, Exit: exit}, nil
	}
	empty := output != nil && output.Mode().IsRegular() && output.Size() == 0
	r := hide(result(ctx, ended, out.Said(), s.argv == nil, empty, files.output), secrets)
	if (ended.Code == notFound || ended.Code == notExecutable) && ended.Stopped == nil {
		if word := s.onlyProgram(); word != "" && runner.Missing(runner.Command{Args: []string{word}, Env: env, Dir: s.dir}) {
			r.Lacks = plan.LacksMeans
		}
	}
	return r, nil
}

const vanishedText = "somebody removed its $SLUICE_OUTPUT while it ran, as programs that tidy folders do; let TMPDIR of the node name a folder that nothing tidies"

// hide fails a success whose output holds one of the task's secrets, because the store keeps
// outputs. It puts no mask in place of the secret: a reader of the output would take the mask for
// the value.
func hide(r plan.Result, secrets []string) plan.Result {
	if !secret.Holds(r.Output, secrets) {
		return r
	}
	return plan.Result{
		Status: plan.Failed, Reason: plan.ReasonOutput, Exit: r.Exit,
		Detail: "its output holds a secret of its env, and the store keeps outputs; leave the secret out, and let its readers read it at its source",
	}
}

// result returns the result of a command, with its last words as the detail. line reports whether a
// shell ran the command. output is the file with its output, if it is not empty.
func result(ctx context.Context, r runner.Result, said string, line, empty bool, output string) plan.Result {
	if r.Started.IsZero() {
		return plan.Result{Status: plan.Terminated, Detail: r.Stopped.Error()}
	}
	exit := &plan.Exit{Code: r.Code, Signal: r.Signal}
	switch {
	case errors.Is(r.Stopped, plugins.ErrTimeout):
		return plan.Result{Status: plan.Terminated, Reason: plan.ReasonTimeout, Detail: r.Stopped.Error(), Exit: exit}
	case r.Stopped != nil:
		return plan.Result{Status: plan.Terminated, Detail: r.Stopped.Error(), Exit: exit}
	case r.Signal != "":
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonSignal, Detail: failure(r, said, line), Exit: exit}
	case r.Code != 0:
		return plan.Result{Status: plan.Failed, Detail: failure(r, said, line), Exit: exit}
	case empty:
		return plan.Result{Status: plan.Succeeded, Exit: exit}
	}
	value, err := plugins.Within(ctx, func() (json.RawMessage, error) { return readOutput(output) }) // the command may have made it a link to what hangs
	switch {
	case err != nil && ctx.Err() != nil:
		return plan.Result{Status: plan.Terminated, Detail: err.Error(), Exit: exit}
	case errors.Is(err, errNoOutput):
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonOutput, Detail: err.Error(), Exit: exit}
	case err != nil:
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: fmt.Sprintf("its output cannot be read: %v", err), Exit: exit}
	}
	return plan.Result{Status: plan.Succeeded, Output: value, Exit: exit}
}

// failure says why a command failed: its last words, and how it ended. A signal from others is the
// cause itself.
func failure(r runner.Result, said string, line bool) string {
	how := fmt.Sprintf("exit status %d", r.Code)
	if r.Signal != "" {
		how = "ended by " + r.Signal
	}
	if said == "" || slices.Contains([]string{"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"}, r.Signal) {
		return how + advice(r, line)
	}
	return failures.Detail(said, how)
}

// hint says what an ending that a command seldom chooses itself usually means.
func advice(r runner.Result, line bool) string {
	switch {
	case r.Signal == "SIGKILL":
		return ", as the system does when memory runs out"
	case line && r.Code == 126:
		return ": a program of the line is not executable"
	case line && r.Code == notFound:
		return ": a program of the line was not found"
	}
	return ""
}

// The exit statuses of a shell that does not find a program, and that may not execute it.
const (
	notFound      = 127
	notExecutable = 126
)

var errNoOutput = errors.New("$SLUICE_OUTPUT is no longer a file; write to the file, and do not replace it")

// readOutput returns the command's output, or nil if the file is empty. It reads no more than it takes to see that the
// output is too large; rules.Conclude reports that.
func readOutput(path string) (json.RawMessage, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a FIFO might never end
		return nil, errNoOutput
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	value := bytes.NewBuffer(make([]byte, 0, min(info.Size(), plan.MaxOutput)+bytes.MinRead))
	if _, err := value.ReadFrom(io.LimitReader(f, plan.MaxOutput+1)); err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(textfile.WithoutMark(value.Bytes())); len(trimmed) > 0 {
		return trimmed, nil
	}
	return nil, nil
}
