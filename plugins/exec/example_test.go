package exec_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/exec"
)

// A program whose nodes run commands. Its main begins with exec.GuardMain().
func Example() {
	ctx := context.Background()
	st, err := sluice.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	commands := exec.New(exec.Options{})
	defer commands.Close()
	reg := plugins.NewRegistry()
	reg.Register(exec.Name, commands)
	spec := plan.New("commands")
	spec.Add(plan.TaskSpec{Name: "list", Params: map[string]any{"run": `echo '["a", "b"]' > "$SLUICE_OUTPUT"`}})
	spec.Add(plan.TaskSpec{Name: "each", Needs: []string{"list"}, Foreach: &plan.Foreach{Value: "needs.list"},
		Params: map[string]any{"run": []string{"echo", "it is ${{ item }}"}}})
	run, err := st.Submit(ctx, spec)
	if err != nil {
		log.Fatal(err)
	}
	if err := den.Run(ctx, st, den.Config{Plugins: reg, Plan: run.ID}); err != nil {
		log.Fatal(err)
	}
	for t, err := range st.Tasks(ctx, sluice.TaskQuery{Plan: run.ID}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.Name, t.Status)
		for e, err := range st.Log(ctx, t.ID) {
			fmt.Print("  ", e.Text, err, "\n")
		}
	}
	// Unordered output:
	// list succeeded
	// each succeeded
	// each[0] succeeded
	//   it is a
	// <nil>
	// each[1] succeeded
	//   it is b
	// <nil>
}
