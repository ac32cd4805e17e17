// Package approval is the plugin of tasks that wait for a person (plan.Approval). A node that has the
// plugin asks their questions. The node does that itself, so that the plugin runs nothing.
package approval

import (
	"context"
	"errors"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Name is what plans call the plugin.
const Name = plan.ApprovalPlugin

// Plugin fails tasks that ask nothing.
var Plugin = plugins.Func(func(context.Context, *plugins.Task) (any, error) {
	return nil, &plugins.StatusError{Err: errors.New("the task has no question to ask: write approve: QUESTION in a plan file"), Final: true}
})
