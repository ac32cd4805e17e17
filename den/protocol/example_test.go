package protocol_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// A node registers, claims a task with a turn, and ends the attempt with the next one. [den.Run] does
// this for a program.
func Example() {
	ctx := context.Background()
	st, err := sluice.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	spec := plan.New("greet")
	spec.Add(plan.TaskSpec{Name: "hello", Params: map[string]any{"run": "true"}})
	run, err := st.Submit(ctx, spec)
	if err != nil {
		log.Fatal(err)
	}

	node := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "node1", Lease: time.Minute, Plugins: []string{"exec"}}
	if err := st.Register(ctx, node); err != nil {
		log.Fatal(err)
	}
	turn := protocol.Turn{Instance: node.ID, Plugins: node.Plugins, Slots: 1, Start: true}
	turned, err := st.Turn(ctx, turn)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range turned.Claimed {
		fmt.Println("claimed", t.Name, "for attempt", t.Attempt)
		turn.Ended = append(turn.Ended, protocol.Ending{Claim: t.Claim, Status: plan.Succeeded})
	}
	if turned, err = st.Turn(ctx, turn); err != nil {
		log.Fatal(err)
	}
	for _, p := range turned.Ended {
		fmt.Println("the plan", p.State, p.ID == run.ID)
	}
	// Output:
	// claimed hello for attempt 1
	// the plan succeeded true
}
