package approval_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/approval"
)

// A program runs a plan that asks, and has a person answer.
func Example() {
	ctx := context.Background()
	st, err := sluice.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	reg := plugins.NewRegistry()
	reg.Register(approval.Name, approval.Plugin)
	spec := plan.New("release")
	spec.Add(plan.TaskSpec{Name: "switch", Approve: &plan.Approval{Question: "Switch the mailboxes?"}})
	run, err := st.Submit(ctx, spec)
	if err != nil {
		log.Fatal(err)
	}
	changes := st.Watch(ctx, run.ID) // from now on
	go den.Run(ctx, st, den.Config{Plugins: reg, Plan: run.ID})
	for c, err := range changes {
		switch {
		case err != nil:
			log.Fatal(err)
		case c.Reason == plan.ReasonApproval && c.Status == plan.Held:
			t, err := st.Task(ctx, c.Task)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(t.Detail)
			if err := st.AnswerTask(ctx, t, sluice.Answer{Approve: true, By: "anna", Note: "checked with ops"}); err != nil {
				log.Fatal(err)
			}
		case c.Status == plan.Succeeded:
			fmt.Println(c.Detail)
		}
	}
	// Output:
	// Switch the mailboxes?
	// approved by anna: checked with ops
}
