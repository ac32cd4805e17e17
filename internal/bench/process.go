package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A process is a program that a scenario started.
type process struct {
	*exec.Cmd
	in   io.WriteCloser // of a child
	out  *bufio.Reader  // of a child, or of a server
	said bytes.Buffer   // what any other program wrote
}

// start starts a program in a folder.
func start(ctx context.Context, dir, program string, args ...string) *process {
	return startWith(ctx, dir, func(p *process) { p.Stdout, p.Stderr = &p.said, &p.said }, program, args...)
}

// startWith starts a program whose output goes where connect says.
func startWith(ctx context.Context, dir string, connect func(*process), program string, args ...string) *process {
	p := &process{Cmd: exec.CommandContext(ctx, program, args...)}
	p.Dir = dir
	connect(p)
	check(p.Start())
	return p
}

// start starts the sluice binary on a database.
func (t *trial) start(ctx context.Context, db *database, args ...string) *process {
	return start(ctx, "", must(t.binary()), append(args, "--store", db.uri)...)
}

// line reads a line that a child writes.
func (p *process) line() string {
	line, err := p.out.ReadString('\n')
	if err != nil {
		failf("process %s did not come up, or ended: %w", p.Args[1], err)
	}
	return line
}

// kill ends the process as a crash does, and returns when that was.
func (p *process) kill() time.Time {
	at := time.Now()
	_ = p.Process.Kill() // it may have ended already
	_ = p.Wait()         // which says that it was killed
	return at
}

// await waits for the end of the process, which has to be a good one.
func (p *process) await() { p.ended(p.Wait(), 0) }

// ended checks how a process ended: with 0, or the code that is given.
func (p *process) ended(err error, code int) {
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == code) {
		failf("%s: %w: %s", strings.Join(p.Args, " "), err, lastLines(p.said.String(), 5))
	}
}

// stop ends the process as Ctrl-C does, or a child by the end of its input, unless it has ended.
func (p *process) stop() {
	if p.ProcessState != nil {
		return
	}
	if p.in != nil {
		_ = p.in.Close() // it may have ended already
	} else {
		_ = p.Process.Signal(os.Interrupt)
	}
	p.ended(p.Wait(), 130)
}

// used is the processor time of a process that has ended, and of those that it waited for.
func (p *process) used() time.Duration {
	return p.ProcessState.UserTime() + p.ProcessState.SystemTime()
}

// timed runs a program that must end with 0. It returns how long the program took, and the
// processor time of the program and the commands that it waited for.
func timed(ctx context.Context, dir, program string, args ...string) drive {
	settle()
	began := time.Now()
	p := start(ctx, dir, program, args...)
	p.await()
	return drive{took: time.Since(began), processor: p.used()}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
