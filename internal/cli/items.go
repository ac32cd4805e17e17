package cli

import (
	"context"
	"encoding/json"

	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Values are what items of foreach tasks are for: an index alone says nothing to who wrote the list.
type values map[plan.TaskID]json.RawMessage

// itemValues returns what the items among the tasks are for. Only their params are read: those of other tasks may be large.
func itemValues(ctx context.Context, r store.Reader, tasks []plan.Task) (values, error) {
	var ids []plan.TaskID
	for i := range tasks {
		if !tasks[i].Of.IsZero() {
			ids = append(ids, tasks[i].ID)
		}
	}
	const page = 500
	v := make(values, len(ids))
	for at := 0; at < len(ids); at += page {
		some := ids[at:min(at+page, len(ids))]
		found, err := r.Tasks(ctx, store.TaskQuery{IDs: some, Params: true, Limit: len(some)})
		if err != nil {
			return nil, err
		}
		for i := range found {
			var params struct {
				Item json.RawMessage `json:"item"`
			}
			if json.Unmarshal(found[i].Params, &params) == nil && len(params.Item) > 0 {
				v[found[i].ID] = params.Item
			}
		}
	}
	return v, nil
}

// label names a task among others: report.Label, with what it is for, and a mark where that is cut.
func (v values) label(t *plan.Task, mark string) string { return report.Label(t, v[t.ID], mark) }
