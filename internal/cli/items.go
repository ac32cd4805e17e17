package cli

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Values are what items of foreach tasks are for.
type values items.Values

// itemValues returns what the items among the tasks are for.
func itemValues(ctx context.Context, r store.Reader, tasks []plan.Task) (values, error) {
	v, err := items.Read(ctx, r, tasks)
	return values(v), err
}

// itemKeys is itemValues for callers that have no more of an item than its id and name.
func itemKeys(ctx context.Context, r store.Reader, tasks []plan.Task) (values, error) {
	v, err := items.ReadKeys(ctx, r, tasks)
	return values(v), err
}

// label names a task among others. It is report.Label with the task's item and a mark for cut text.
func (v values) label(t *plan.Task, mark string) string { return report.Label(t, v[t.ID], mark) }
