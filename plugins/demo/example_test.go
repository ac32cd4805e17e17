package demo_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/demo"
)

// The plugin stands in for real work, as in a test of the order of a plan.
func Example() {
	ctx := context.Background()
	st, err := sluice.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	reg := plugins.NewRegistry()
	reg.Register(demo.Name, demo.Plugin)
	spec := plan.New("show")
	spec.Add(plan.TaskSpec{Name: "flaky", Plugin: demo.Name, Retry: plan.Retry{Attempts: 2, Delay: plan.NoDelay},
		Params: map[string]any{"fail": 1, "return": "done at last"}})
	run, err := st.Submit(ctx, spec)
	if err != nil {
		log.Fatal(err)
	}
	if err := den.Run(ctx, st, den.Config{Plugins: reg, Plan: run.ID}); err != nil {
		log.Fatal(err)
	}
	for t, err := range st.Tasks(ctx, sluice.TaskQuery{Plan: run.ID, Details: true}) {
		fmt.Println(t.Name, t.Attempt, t.Status, string(t.Output), err)
	}
	// Output: flaky 2 succeeded "done at last" <nil>
}
