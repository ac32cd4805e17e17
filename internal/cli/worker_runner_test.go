package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/dtr"
	"github.com/seed-1177d267/sluice/plugins"
)

// writeRunner makes a program at a path below the folder.
func writeRunner(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "task_runner"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// Disbatch's task runner looks for tasks that are claimed by its host's name.
func TestANodeWhoseTaskRunnerWouldNotFindItsTasksIsRefused(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	writeRunner(t, dir)
	if err := os.WriteFile("config.json", []byte(`{"mongohost": "127.0.0.1:1", "database": "d", "plugins": ["A"], "task_runner": "./bin/task_runner"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	p := Program{
		Plugins: plugins.NewRegistry(), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" },
		DefaultStore: func() (string, bool) { return "", false },
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a node that is not refused ends as it starts
	code := p.Run(ctx, []string{"den", "--config", "config.json", "--name", "other"})
	if want := "leave --name out, or, if your task runner does not look for that name, add --runner-ignores-name"; code != exitUsage || !strings.Contains(errs.String(), want) ||
		!strings.Contains(errs.String(), host) {
		t.Errorf("it ended with %d, and said %swant %q", code, &errs, want)
	}
	program, inside := &dtr.Runners{Default: "/bin/sh"}, &dtr.Runners{Default: dtr.Sluice, ByQueue: map[string]string{"q": dtr.Inside}}
	for name, c := range map[string]struct {
		set     denSettings
		runners *dtr.Runners
		refused bool
	}{
		"another name":                     {denSettings{name: "other"}, program, true},
		"another name for one queue":       {denSettings{name: "other"}, &dtr.Runners{Default: dtr.Inside, ByQueue: map[string]string{"q": "/bin/sh"}}, true},
		"the host's name":                  {denSettings{name: host}, program, false},
		"no name":                          {denSettings{}, program, false},
		"a runner that ignores the name":   {denSettings{name: "other", anyName: true}, program, false},
		"another name without such runner": {denSettings{name: "other"}, inside, false},
	} {
		if err := c.set.checkRunnersName(c.runners); (err != nil) != c.refused {
			t.Errorf("%s: %v; want it refused: %v", name, err, c.refused)
		}
	}
}

func TestARelativeTaskRunnerIsLookedForFromTheFolderOfTheNode(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	conf := &config.Config{TaskRunner: "./bin/task_runner"}
	if _, err := taskRunners(nil, conf); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "bin", "task_runner")+" is not there") {
		t.Errorf("a program that is not there: %v", err)
	}
	writeRunner(t, dir)
	r, err := taskRunners(nil, conf)
	if err != nil || r.Default != filepath.Join(dir, "bin", "task_runner") {
		t.Errorf("it is %+v, %v", r, err)
	}
}
