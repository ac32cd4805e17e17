package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/demo"
)

// cancelling is a store in which a person cancels each plan before its tasks are in.
type cancelling struct{ lasting }

func (c cancelling) AddTasks(ctx context.Context, id plan.PlanID, tasks []plan.Task) error {
	if err := c.CancelPlan(ctx, id, false); err != nil {
		return err
	}
	return c.lasting.AddTasks(ctx, id, tasks)
}

func TestAPlanThatIsCancelledWhileItIsSubmittedEndsAsCancelled(t *testing.T) {
	m := model.New(model.Options{})
	dir := t.TempDir()
	file, junit := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "junit.xml")
	if err := os.WriteFile(file, []byte("plan: p\ntasks:\n  a: {plugin: demo}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	open := func(context.Context, string) (store.Store, error) { return cancelling{lasting{m, m}}, nil }
	reg := plugins.NewRegistry()
	reg.Register(demo.Name, demo.Plugin)
	code := Program{
		Open: open, Existing: open, DefaultStore: func() (string, bool) { return "memory:", true }, Redact: strings.Clone, Plugins: reg,
		Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" },
	}.Run(t.Context(), []string{"plan", "run", file, "--junit", junit})
	if code != exitCancelled || !strings.Contains(stdout.String(), "p#1 cancelled") || strings.Contains(stdout.String(), "plan retry") {
		t.Errorf("it ends with %d, and prints\n%s%s", code, stdout.String(), stderr.String())
	}
	if _, err := os.Stat(junit); err != nil {
		t.Error(err)
	}
}
