// Package program makes plugins of programs, in whatever language: each executable file of a folder is a plugin, and [Folders] keeps a
// registry as the folders are, while nodes run.
//
// A program gets the task's params as JSON on its standard input, prints its log, says in the file $SLUICE_PROGRESS how far it is, leaves its
// output as JSON in the file $SLUICE_OUTPUT, and says by its exit status how it went. It is run as a command of package exec is: in a process group of its own that does not outlive the
// node, with a timeout, and without the node's private variables. docs/plugins.md is for who writes one.
package program

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/exec"
)

// A Plugin is one program.
type Plugin struct {
	path     string
	commands *exec.Plugin
}

// New returns the plugin that is the program at the path, which has to be absolute.
func New(path string, commands *exec.Plugin) *Plugin { return &Plugin{path, commands} }

// Lease implements plugins.Tenant.
func (p *Plugin) Lease(left time.Duration) { p.commands.Lease(left) }

// Run implements plugins.Plugin. Exit status 0 is success. Status 1, and the end by a signal, is plan.Failed, which is 2; any status from 2
// on is the task's status. Before each run the file is looked at as Find does: if it has gone, or may not be run any more, the task is given
// back, when Folders have had the time to see it too.
func (p *Plugin) Run(ctx context.Context, t *plugins.Task) plan.Result {
	_, err := plugins.Within(ctx, func() (struct{}, error) { _, err := check(p.path); return struct{}{}, err })
	switch {
	case err != nil && ctx.Err() != nil:
		return plan.Result{Status: plan.Terminated, Detail: err.Error()}
	case err != nil:
		t.Log.Append(plan.System, fmt.Sprintf("not begun: %v", err))
		select {
		case <-ctx.Done():
			return plan.Result{Status: plan.Terminated, Detail: err.Error()}
		case <-time.After(2 * Every):
			return plan.Result{Status: plan.Queued}
		}
	}
	r := p.commands.RunProgram(ctx, t, p.path)
	if r.Status == plan.Failed && r.Exit != nil && r.Exit.Signal == "" && r.Exit.Code > int(plan.Failed) {
		r.Status = plan.Status(r.Exit.Code)
	}
	return r
}
