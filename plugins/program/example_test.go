package program_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/program"
)

// Each executable file of a folder is a plugin. The program's main begins with exec.GuardMain().
func ExampleFolders() {
	dir, err := os.MkdirTemp("", "plugins")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	shout := "#!/bin/sh\ntr a-z A-Z > \"$SLUICE_OUTPUT\"\n" // its params come on standard input, as JSON
	if err := os.WriteFile(filepath.Join(dir, "shout"), []byte(shout), 0o700); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	reg := plugins.NewRegistry()
	folders := &program.Folders{Paths: []string{dir}, Registry: reg}
	folders.Look(ctx)     // what is there now,
	go folders.Watch(ctx) // and what comes and goes later
	fmt.Println(reg.Names())

	st, err := sluice.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	spec := plan.New("loud")
	spec.Add(plan.TaskSpec{Name: "shout", Plugin: "shout", Params: map[string]any{"text": "hello"}})
	run, err := st.Submit(ctx, spec)
	if err != nil {
		log.Fatal(err)
	}
	if err := den.Run(ctx, st, den.Config{Plugins: reg, Plan: run.ID}); err != nil {
		log.Fatal(err)
	}
	out, err := st.Output(ctx, run.ID, "shout")
	fmt.Println(string(out), err)
	// Output:
	// [shout]
	// {"TEXT":"HELLO"} <nil>
}
