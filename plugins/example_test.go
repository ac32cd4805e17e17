package plugins_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A Go function is a plugin: what it returns is the task's output, and an error fails the attempt.
func ExampleFunc() {
	square := plugins.Func(func(_ context.Context, t *plugins.Task) (any, error) {
		var params struct{ N *int }
		if err := json.Unmarshal(t.Params, &params); err != nil {
			return nil, err
		}
		if params.N == nil {
			return nil, errors.New("the param n is missing")
		}
		t.Log.Printf("squaring %d", *params.N)
		return *params.N * *params.N, nil
	})
	reg := plugins.NewRegistry()
	reg.Register("square", square) // for den.Config.Plugins

	var log plugins.Log
	for _, params := range []string{`{"n": 7}`, `{}`} { // as a node calls it
		r := square.Run(context.Background(), &plugins.Task{Params: json.RawMessage(params), Log: &log})
		fmt.Printf("%v %s %q\n", r.Status, r.Output, r.Detail)
	}
	fmt.Print(log.Drain()[0].Text)
	// Output:
	// succeeded 49 ""
	// failed  "the param n is missing"
	// squaring 7
}

// An error may choose the status that a task fails with.
func ExampleStatusError() {
	full := plugins.Func(func(context.Context, *plugins.Task) (any, error) {
		return nil, &plugins.StatusError{Status: 28, Err: errors.New("the disk is full")}
	})
	r := full.Run(context.Background(), &plugins.Task{})
	fmt.Println(int(r.Status), r.Status > plan.Succeeded, r.Detail)
	// Output: 28 true the disk is full
}
