package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// execJobs is how many commands run at once, here as there.
const execJobs = 8

func execScenarios() []scenario {
	var all []scenario
	for _, s := range []struct {
		shape string
		make  func(n int) *graph
	}{{"fan-out", fanOut}, {"chain", chain}, {"layered", func(n int) *graph { return layered(n, 40) }}} {
		all = append(all, scenario{
			"exec/" + s.shape, fmt.Sprintf("commands that do nothing, by sluice plan run as a whole process, against ninja -j%d: %s", execJobs, s.shape), "",
			func(ctx context.Context, t *trial) { againstNinja(ctx, t, s.make(t.size(2000, 100))) },
		})
	}
	return all
}

// againstNinja runs the graph by both, in turn, each time from nothing: a new database for one, no
// log for the other. For a line of plain words Sluice starts the program itself, as for a list of
// arguments, whereas ninja starts a shell. So another line, which needs a shell in both, is
// measured too. A third is nothing but the shell.
func againstNinja(ctx context.Context, t *trial, g *graph) {
	command, err := exec.LookPath("true")
	if err != nil {
		t.add(result{What: "commands", Skipped: "there is no command true"})
		return
	}
	ninja, _ := exec.LookPath("ninja")
	quoted := command + ` "a b"`
	ways := []struct{ run, line, about string }{ // run is of Sluice, and line of ninja
		{"'true'", "true", "a line that the shell runs by itself, of both"},
		{command, command, "a line of plain words, which needs no shell"},
		{"'" + quoted + "'", quoted, "a line for the shell, of both"},
	}
	sample := func(series string, d drive) {
		t.sample(series, milliseconds(d.took))
		t.sample("processor of "+series, milliseconds(d.processor))
	}
	t.again(5, func() {
		for _, w := range ways {
			sample(w.run, runSluice(ctx, t, g, w.run))
			if ninja != "" {
				sample("ninja "+w.run, runNinja(ctx, t, ninja, g, w.line))
			}
		}
	})
	for _, w := range ways {
		r := result{
			What: "run: " + w.run, Value: t.median(w.run), Unit: "ms", Peer: "ninja is not installed (Debian: apt-get install ninja-build)",
			Note: fmt.Sprintf("%s; %.0f ms of processor, commands included", w.about, t.median("processor of "+w.run)),
		}
		if r.PeerVal = t.median("ninja " + w.run); r.PeerVal > 0 {
			r.Peer = fmt.Sprintf("ninja -j%d", execJobs)
			r.Note += fmt.Sprintf(", ninja %.0f", t.median("processor of ninja "+w.run))
		}
		r.Note += fmt.Sprintf("; %d tasks, %d needs; new SQLite database each time, %s", g.tasks(), g.edges(), onSQLite.durability())
		t.add(r)
	}
}

// runSluice returns how long the whole process takes to run a plan file of the graph, each of whose
// tasks runs the given command.
func runSluice(ctx context.Context, t *trial, g *graph, run string) drive {
	dir := t.newFile("plan.yaml", planFile(g, "run: "+run))
	defer os.RemoveAll(dir)
	return timed(ctx, dir, must(t.binary()), "plan", "run", filepath.Join(dir, "plan.yaml"), "--threads", fmt.Sprint(execJobs), "--store", "sqlite:"+filepath.Join(dir, "sluice.db"))
}

// planFile writes the graph as a plan file whose tasks have their needs and the given keys.
func planFile(g *graph, keys string) []byte {
	var out bytes.Buffer
	out.WriteString("plan: bench\ntasks:\n")
	for i, parents := range g.needs {
		needs := ""
		if len(parents) > 0 {
			needs = ", needs: [" + taskNames(parents, ", ") + "]"
		}
		fmt.Fprintf(&out, "  %s: {%s%s}\n", taskName(i), keys, needs)
	}
	return out.Bytes()
}

// runNinja returns how long ninja takes for the graph. The outputs of its edges are never made, so
// that it runs all of them.
func runNinja(ctx context.Context, t *trial, ninja string, g *graph, command string) drive {
	var out bytes.Buffer
	fmt.Fprintf(&out, "rule run\n  command = %s\n", command)
	for i, parents := range g.needs {
		fmt.Fprintf(&out, "build %s: run %s\n", taskName(i), taskNames(parents, " "))
	}
	dir := t.newFile("build.ninja", out.Bytes())
	defer os.RemoveAll(dir)
	return timed(ctx, dir, ninja, fmt.Sprintf("-j%d", execJobs))
}
