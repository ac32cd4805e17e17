// Package program makes plugins of programs in any language. Each executable file of a folder is a
// plugin. [Folders] keeps a registry in step with the folders while nodes run.
//
// A program reads the task's params as JSON on its standard input, and prints its log. It writes
// its progress to the file $SLUICE_PROGRESS, and its output as JSON to the file $SLUICE_OUTPUT. Its
// exit status ends the task. It runs like a command of package exec: with a timeout, without the
// node's private variables, and in a process group that does not outlive the node. docs/plugins.md
// is for authors of such programs.
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

// Run implements plugins.Plugin. Exit status 0 is success. Status 1, and the end by a signal, is
// plan.Failed, which is 2. Any status from 2 on is the task's status. Before each run Run checks
// the file as Find does. If the file has gone, or may not run any more, Run gives the task back,
// after Folders had the time to notice.
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
