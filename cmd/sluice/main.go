// Sluice runs plans: graphs of tasks that survive whatever dies.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cli"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/approval"
	"github.com/seed-1177d267/sluice/plugins/demo"
	"github.com/seed-1177d267/sluice/plugins/disbatchdemo"
	"github.com/seed-1177d267/sluice/plugins/disco"
	"github.com/seed-1177d267/sluice/plugins/exec"
	"github.com/seed-1177d267/sluice/plugins/http"
)

// The linker sets these when a release is built. A build by go install, or in a clone, knows its own.
var version, revision, date string

func main() {
	runner.InitMain()      // does not return if this process is the first one of a container
	runner.GuardMain()     // does not return if this process is the guardian of another one
	runner.QuietChildren() // a node has many
	commands := exec.New(exec.Options{})
	reg := plugins.NewRegistry()
	reg.Register(exec.Name, commands)
	reg.Register(approval.Name, approval.Plugin)
	reg.Register(demo.Name, demo.Plugin)
	reg.Register(disbatchdemo.Name, disbatchdemo.Plugin)
	workers := disco.New(disco.Options{})
	reg.Register(disco.Name, workers)
	requests := http.New(http.Options{})
	reg.Register(http.Name, requests)
	args := os.Args[1:]
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "task_runner" { // a link of that name is Disbatch's task runner
		args = append([]string{"runner"}, args...)
	}
	code := cli.Program{
		Open: open.Open, Existing: open.Existing, Private: open.Private, DefaultStore: open.Default, StoreFiles: open.Files, Redact: open.Redact, Plugins: reg, Commands: commands, Requests: requests, Disco: workers, Version: version, Revision: revision, Date: date,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
	}.Run(context.Background(), args)
	_ = requests.Close()
	_ = commands.Close() // only scratch files are lost
	os.Exit(code)
}
