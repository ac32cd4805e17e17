package den_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// With a Plan, Run returns when the plan has ended. Without one it serves all plans until ctx ends.
func ExampleRun() {
	ctx := context.Background()
	st, err := sluice.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	reg := plugins.NewRegistry()
	reg.Register("double", plugins.Func(func(_ context.Context, t *plugins.Task) (any, error) {
		args, err := t.Args()
		if err != nil || len(args) == 0 {
			return "ab", err
		}
		return string(args[0][1:len(args[0])-1]) + "ab", nil
	}))
	spec := plan.New("doubles")
	spec.Add(plan.TaskSpec{Name: "one", Plugin: "double"})
	spec.Add(plan.TaskSpec{Name: "two", Plugin: "double", Needs: []string{"one"}})
	run, err := st.Submit(ctx, spec)
	if err != nil {
		log.Fatal(err)
	}
	err = den.Run(ctx, st, den.Config{
		Threads: 4, Plugins: reg, Plan: run.ID,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), // failures, if there are some
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := st.Output(ctx, run.ID, "two")
	fmt.Println(string(out), err)
	// Output: "abab" <nil>
}
