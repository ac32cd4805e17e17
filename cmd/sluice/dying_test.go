//go:build unix

package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/seed-1177d267/sluice/internal/cli"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/demo"
	execplugin "github.com/seed-1177d267/sluice/plugins/exec"
)

// diesVariable, in its environment, makes the tests' program a sluice that kills itself. Its value
// is a death.
const diesVariable = "SLUICE_TEST_DIES"

// A death says at which of its writes to the store a process kills itself.
type death struct {
	write int64
	after bool // the write was made; otherwise the process dies before it
}

func (d death) String() string {
	if d.after {
		return fmt.Sprint("after write ", d.write)
	}
	return fmt.Sprint("before write ", d.write)
}

// dies returns a command of a sluice that kills itself so.
func (s *site) dies(d death, args ...string) *exec.Cmd {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	c := s.command(args...)
	c.Path, c.Env = self, append(c.Env, diesVariable+"="+d.String())
	return c
}

// runDying is main of such a process. It is wired as cmd/sluice is, but for the hook of its store.
func runDying(when string) {
	var d death
	var side string
	if _, err := fmt.Sscanf(when, "%s write %d", &side, &d.write); err != nil {
		panic(err)
	}
	d.after = side == "after"
	commands := execplugin.New(execplugin.Options{})
	reg := plugins.NewRegistry()
	reg.Register(execplugin.Name, commands)
	reg.Register(demo.Name, demo.Plugin)
	code := cli.Program{
		Open: d.open(false), Existing: d.open(true), Private: open.Private, DefaultStore: open.Default, Redact: open.Redact,
		Plugins: reg, Commands: commands, Version: "dying", Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr, Getenv: os.Getenv,
	}.Run(context.Background(), os.Args[1:])
	_ = commands.Close()
	os.Exit(code)
}

// open returns what opens a store at one of whose writes the process kills itself.
func (d death) open(existing bool) func(context.Context, string) (store.Store, error) {
	var before, after atomic.Int64
	hook := func(written bool) error {
		n := &before
		if written {
			n = &after
		}
		if n.Add(1) == d.write && written == d.after {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing is written any more
		}
		return nil
	}
	return func(ctx context.Context, uri string) (s store.Store, err error) {
		if path, is := strings.CutPrefix(uri, "sqlite:"); is {
			s, err = sqlite.Open(ctx, path, sqlite.Options{Existing: existing, Hook: hook})
		} else {
			s, err = mongodb.Open(ctx, uri, mongodb.Options{Existing: existing, Hook: hook})
		}
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// killed reports whether a process was killed, and did not exit by itself.
func killed(c *exec.Cmd) bool {
	status, is := c.ProcessState.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == syscall.SIGKILL
}
