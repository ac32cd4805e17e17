package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"
)

// A bench is one run of the program.
type bench struct {
	settings
	stderr  io.Writer
	scratch string // removed at the end
	files   int    // databases made so far
	binary  func() (string, error)
}

func newBench(ctx context.Context, o settings, stderr io.Writer) (*bench, error) {
	scratch, err := os.MkdirTemp(o.dir, "sluice-bench-")
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{o.cpuProfile, o.memProfile} {
		if dir != "" {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
		}
	}
	b := &bench{settings: o, stderr: stderr, scratch: scratch}
	b.binary = sync.OnceValues(func() (string, error) { return b.build(ctx) })
	return b, nil
}

func (b *bench) close() {
	if err := os.RemoveAll(b.scratch); err != nil {
		fmt.Fprintln(b.stderr, "bench:", err)
	}
}

// build returns the path of the sluice binary, which it makes unless one was given.
func (b *bench) build(ctx context.Context) (string, error) {
	if b.sluice != "" {
		return filepath.Abs(b.sluice)
	}
	path := filepath.Join(b.scratch, "sluice")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/seed-1177d267/sluice/cmd/sluice").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build sluice: %w: %s", err, out)
	}
	return path, nil
}

// size chooses between the size to measure and that of a smoke test.
func (b *bench) size(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// lasts is size for how long something is measured.
func (b *bench) lasts(full, quick time.Duration) time.Duration {
	return time.Duration(b.size(int(full), int(quick)))
}

// repetitions returns how often to measure what is usually measured n times.
func (b *bench) repetitions(n int) int {
	if b.reps > 0 {
		return b.reps
	}
	return b.size(n, 1)
}

// measure runs the chosen scenarios one after another. A scenario that fails is a line of the
// report, and the others continue. Scenarios that miss a floor are measured again when all others
// are done, because a shared machine has slow minutes.
func (b *bench) measure(ctx context.Context, all []scenario) *report {
	r := &report{Machine: b.machine(ctx), Quick: b.quick}
	for _, s := range all {
		if b.only.MatchString(s.name) && ctx.Err() == nil {
			r.Results = append(r.Results, b.lines(ctx, s)...)
		}
	}
	for range b.again {
		for _, s := range all {
			if r.missed(s.name) && ctx.Err() == nil {
				r.replace(s.name, b.lines(ctx, s))
			}
		}
	}
	if ctx.Err() != nil {
		r.Results = append(r.Results, result{What: "interrupted", Error: "the rest was not measured"})
	}
	return r
}

// lines measures one scenario.
func (b *bench) lines(ctx context.Context, s scenario) (lines []result) {
	started := time.Now()
	fmt.Fprintf(b.stderr, "%s: %s\n", s.name, s.about)
	add := func(line result) {
		line.Scenario = s.name
		line.Floor = floorOf(line.Scenario, line.What)
		line.judge(b.quick)
		lines = append(lines, line)
		fmt.Fprintf(b.stderr, "  %s\n", line.brief())
	}
	if why := b.missing(s.on); why != "" {
		add(result{What: s.about, Skipped: why})
		return lines
	}
	if err := try(func() { b.profiled(s.name, func() { s.run(ctx, b.trial(s.on, add)) }) }); err != nil {
		add(result{What: "failed", Error: err.Error()})
	}
	fmt.Fprintf(b.stderr, "  took %v\n", time.Since(started).Round(100*time.Millisecond))
	return lines
}

// profiled calls run under the profiles that the options ask for.
func (b *bench) profiled(name string, run func()) {
	name = strings.ReplaceAll(name, "/", "-")
	if b.cpuProfile != "" {
		file := must(os.Create(filepath.Join(b.cpuProfile, name+".cpu.prof")))
		defer file.Close()
		check(pprof.StartCPUProfile(file))
		defer pprof.StopCPUProfile()
	}
	run()
	if b.memProfile != "" {
		file := must(os.Create(filepath.Join(b.memProfile, name+".mem.prof")))
		defer file.Close()
		check(pprof.Lookup("allocs").WriteTo(file, 0))
	}
}

// settle leaves no garbage of what was done before to the measurement that follows.
func settle() { runtime.GC() }

// settings are the command line.
type settings struct {
	only       *regexp.Regexp
	quick      bool
	json       bool
	reps       int
	again      int
	cpuProfile string
	memProfile string
	dir        string
	sluice     string
	mongodb    string
}
