package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func buildScenarios() []scenario {
	return []scenario{
		{"build/size", "how large the binary is", "", func(_ context.Context, t *trial) {
			t.add(result{What: "binary", Value: float64(must(os.Stat(must(t.binary()))).Size()) / 1e6, Unit: "MB"})
		}},
		{"build/demo", "from a clone and an empty build cache to the end of make demo", "", demoFromClone},
	}
}

// demoFromClone is the first thing that a newcomer does. Go's cache of modules is as it is on this
// machine: how fast they arrive is the network's.
func demoFromClone(ctx context.Context, t *trial) {
	if t.quick {
		t.add(result{What: "make demo", Skipped: "it compiles everything"})
		return
	}
	top, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.add(result{What: "make demo", Skipped: "this is no clone"})
		return
	}
	clone, cache := filepath.Join(t.scratch, "clone"), filepath.Join(t.scratch, "cache")
	start(ctx, "", "git", "clone", "--quiet", strings.TrimSpace(string(top)), clone).await()
	d := timed(ctx, clone, "env", "GOCACHE="+cache, "make", "demo")
	t.add(result{What: "make demo", Value: d.took.Seconds(), Unit: "s", Note: fmt.Sprintf("%.0f s of processor time", d.processor.Seconds())})
}
