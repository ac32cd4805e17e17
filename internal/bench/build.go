package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func buildScenarios() []scenario {
	return []scenario{
		{"build/size", "how large the binary is", binarySize},
		{"build/demo", "from a clone and an empty build cache to the end of make demo", demoFromClone},
	}
}

func binarySize(_ context.Context, b *bench, add func(result)) error {
	path, err := b.binary()
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	add(result{What: "binary", Value: float64(info.Size()) / 1e6, Unit: "MB", Floor: atMost(30)})
	return nil
}

// demoFromClone is the first thing that a newcomer does. Go's cache of modules is as it is on this
// machine: how fast they arrive is the network's.
func demoFromClone(ctx context.Context, b *bench, add func(result)) error {
	if b.quick {
		add(result{What: "make demo", Skipped: "it compiles everything"})
		return nil
	}
	top, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		add(result{What: "make demo", Skipped: "this is no clone"})
		return nil
	}
	clone, cache := filepath.Join(b.scratch, "clone"), filepath.Join(b.scratch, "cache")
	if out, err := exec.CommandContext(ctx, "git", "clone", "--quiet", strings.TrimSpace(string(top)), clone).CombinedOutput(); err != nil {
		return fmt.Errorf("git clone: %w: %s", err, out)
	}
	cmd := exec.CommandContext(ctx, "make", "demo")
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "GOCACHE="+cache)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make demo: %w: %s", err, out)
	}
	took := time.Since(began)
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	add(result{What: "make demo", Value: took.Seconds(), Unit: "s", Floor: atMost(90), Note: fmt.Sprintf("%.0f s of processor time", used.Seconds())})
	return nil
}
