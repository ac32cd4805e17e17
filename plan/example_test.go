package plan_test

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A plan is built task by task; tasks need each other by name.
func ExampleNew() {
	s := plan.New("nightly")
	list := s.Add(plan.TaskSpec{Name: "list", Params: map[string]any{"run": "./list > \"$SLUICE_OUTPUT\""}})
	s.Add(plan.TaskSpec{
		Name: "copy", Needs: []string{list.Name},
		Foreach: &plan.Foreach{Value: "needs.list"}, // a task for each element that list returns
		Params:  map[string]any{"run": []string{"./copy", "${{ item }}"}},
		Retry:   plan.Retry{Attempts: 5, Delay: time.Second},
		Timeout: 30 * time.Minute,
	})
	s.Add(plan.TaskSpec{Name: "report", Needs: []string{"copy"}, When: plan.AllDone, Params: map[string]any{"run": "./report"}})
	fmt.Println(len(s.Tasks), s.Tasks[2].Needs)
	// Output: 3 [copy]
}
