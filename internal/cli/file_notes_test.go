package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disco"
	"github.com/seed-1177d267/sluice/plugins/exec"
)

func TestTheExamplesAreAsTheyAreMeant(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/plan.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	r := plugins.NewRegistry()
	r.Register(exec.Name, exec.New(exec.Options{}))
	r.Register(disco.Name, disco.New(disco.Options{}))
	var out, notes bytes.Buffer
	p := Program{Plugins: r, Stdout: &out, Stderr: &notes, Getenv: func(string) string { return "" }}
	if code := p.Run(context.Background(), append([]string{"plan", "validate"}, files...)); code != 0 || notes.Len() > 0 {
		t.Errorf("exit code %d, notes:\n%s", code, &notes)
	}
}
