package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func TestLacksOf(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want plan.Lack
	}{
		{"no error lacks nothing", plugins.NotBegun(nil), plan.LacksNothing},
		{"an error that is not marked is the task's", fs.ErrNotExist, plan.LacksNothing},
		{"a file that is missing is a means", plugins.NotBegun(fs.ErrNotExist), plan.LacksMeans},
		{"so it is below other words", fmt.Errorf("env TOKEN: %w", plugins.NotBegun(errors.New("the node has no variable TOKEN"))), plan.LacksMeans},
		{"open files are room", plugins.NotBegun(&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}), plan.LacksRoom},
		{"processes are room", plugins.NotBegun(fmt.Errorf("fork: %w", syscall.EAGAIN)), plan.LacksRoom},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := plugins.LacksOf(c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			f := plugins.Func(func(context.Context, *plugins.Task) (any, error) { return nil, c.err })
			if got := f.Run(t.Context(), &plugins.Task{}).Lacks; got != c.want {
				t.Errorf("a function that returns it lacks %q, want %q", got, c.want)
			}
		})
	}
}
