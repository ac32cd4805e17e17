package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// execJobs is how many commands run at once, here as there.
const execJobs = 8

func execScenarios() []scenario {
	var all []scenario
	for _, s := range []struct {
		shape string
		make  func(n int) *graph
	}{
		{"fan-out", fanOut},
		{"chain", chain},
		{"layered", func(n int) *graph { return layered(n, 40) }},
	} {
		all = append(all, scenario{
			name:  "exec/" + s.shape,
			about: fmt.Sprintf("commands that do nothing, by sluice plan run as a whole process, against ninja -j%d: %s", execJobs, s.shape),
			run: func(ctx context.Context, b *bench, add func(result)) error {
				return againstNinja(ctx, b, s.make(b.size(2000, 100)), add)
			},
		})
	}
	return all
}

// againstNinja runs the graph by both, in turn, each time from nothing: a new database for one, no
// log for the other. For a line of plain words Sluice starts the program itself, as for a list of
// arguments, whereas ninja starts a shell. So another line, which needs a shell in both, is
// measured too. A third is nothing but the shell.
func againstNinja(ctx context.Context, b *bench, g *graph, add func(result)) error {
	command, err := exec.LookPath("true")
	if err != nil {
		add(result{What: "commands", Skipped: "there is no command true"})
		return nil
	}
	sluice, err := b.binary()
	if err != nil {
		return err
	}
	ninja, _ := exec.LookPath("ninja")
	quoted := command + ` "a b"`
	ways := []struct {
		run, line   string // of Sluice and of ninja
		floor       *floor
		about       string
		took, peers spent
	}{
		{run: "'true'", line: "true", floor: ratioAtMost(1.3), about: "a line that the shell runs by itself, of both"},
		{run: command, line: command, floor: ratioAtMost(1.3), about: "a line of plain words, which needs no shell"},
		{run: "'" + quoted + "'", line: quoted, about: "a line for the shell, of both"},
	}
	for range b.repetitions(5) {
		for i := range ways {
			w := &ways[i]
			took, err := runSluice(ctx, b, sluice, g, w.run)
			if err != nil {
				return err
			}
			w.took.add(took)
			if ninja == "" {
				continue
			}
			if took, err = runNinja(ctx, b, ninja, g, w.line); err != nil {
				return err
			}
			w.peers.add(took)
		}
	}
	for _, w := range ways {
		r := result{What: "run: " + w.run, Value: median(w.took.took), Unit: "ms", Floor: w.floor}
		r.Note = fmt.Sprintf("%s; %.0f ms of processor, commands included", w.about, median(w.took.processor))
		r.Peer = "ninja is not installed (Debian: apt-get install ninja-build)"
		if len(w.peers.took) > 0 {
			r.Peer, r.PeerVal = fmt.Sprintf("ninja -j%d", execJobs), median(w.peers.took)
			r.Note += fmt.Sprintf(", ninja %.0f", median(w.peers.processor))
		}
		r.Note += fmt.Sprintf("; %d tasks, %d needs; new SQLite database each time, %s", g.tasks(), g.edges(), onSQLite.durability())
		add(r)
	}
	return nil
}

// spent is what several runs of a program took, in milliseconds.
type spent struct{ took, processor []float64 }

func (s *spent) add(d drive) {
	s.took = append(s.took, milliseconds(d.took))
	s.processor = append(s.processor, milliseconds(d.processor))
}

// runSluice returns how long the binary takes from its start to its end for a plan file of the graph, whose tasks run what is given.
func runSluice(ctx context.Context, b *bench, sluice string, g *graph, run string) (drive, error) {
	dir, err := b.newDir()
	if err != nil {
		return drive{}, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, planFile(g, "run: "+run), 0o600); err != nil {
		return drive{}, err
	}
	return timed(ctx, dir, sluice, "plan", "run", file, "--threads", fmt.Sprint(execJobs), "--store", "sqlite:"+filepath.Join(dir, "sluice.db"))
}

// planFile writes the graph as a plan file whose tasks have their needs and the given keys.
func planFile(g *graph, keys string) []byte {
	var out bytes.Buffer
	out.WriteString("plan: bench\ntasks:\n")
	for i, parents := range g.needs {
		fmt.Fprintf(&out, "  %s: {%s", taskName(i), keys)
		for k, p := range parents {
			sep := ", "
			if k == 0 {
				sep = ", needs: ["
			}
			out.WriteString(sep + taskName(p))
		}
		if len(parents) > 0 {
			out.WriteByte(']')
		}
		out.WriteString("}\n")
	}
	return out.Bytes()
}

// runNinja returns how long ninja takes for the graph. The outputs of its edges are never made, so
// that it runs all of them.
func runNinja(ctx context.Context, b *bench, ninja string, g *graph, command string) (drive, error) {
	dir, err := b.newDir()
	if err != nil {
		return drive{}, err
	}
	defer os.RemoveAll(dir)
	var out bytes.Buffer
	fmt.Fprintf(&out, "rule run\n  command = %s\n", command)
	for i, parents := range g.needs {
		fmt.Fprintf(&out, "build %s: run", taskName(i))
		for _, p := range parents {
			out.WriteString(" " + taskName(p))
		}
		out.WriteByte('\n')
	}
	if err := os.WriteFile(filepath.Join(dir, "build.ninja"), out.Bytes(), 0o600); err != nil {
		return drive{}, err
	}
	return timed(ctx, dir, ninja, fmt.Sprintf("-j%d", execJobs))
}

// timed runs a program that must end with 0. It returns how long the program took, and the
// processor time of the program and the commands that it waited for.
func timed(ctx context.Context, dir, program string, args ...string) (drive, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	settle()
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		return drive{}, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, lastLines(out.String(), 5))
	}
	return drive{took: took, processor: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
