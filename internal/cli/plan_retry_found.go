package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/listing"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// foundLists reads the lines and files again that foreach tasks of a plan go over: of all such tasks that have
// items, or of those that are chosen. It reads them on this machine, where nodes read them too if they run here
// or share the files. replace has tasks that are to get other lists.
func foundLists(ctx context.Context, st store.Reader, p *plan.Plan, chosen []plan.TaskID, replace []plan.Task) (map[plan.TaskID][]json.RawMessage, error) {
	found := map[plan.TaskID][]json.RawMessage{}
	err := store.EachTask(ctx, st, store.TaskQuery{Plan: p.ID, NoItems: true}, func(t *plan.Task) error {
		if !t.HasItems() || len(chosen) > 0 && !slices.Contains(chosen, t.ID) {
			return nil
		}
		k := slices.IndexFunc(replace, func(r plan.Task) bool { return r.ID == t.ID })
		f := t.Foreach
		if k >= 0 {
			f = replace[k].Foreach
		}
		if f == nil || !f.OnNode() {
			return nil
		}
		var now *plan.Task
		if k >= 0 {
			now = &replace[k]
		} else if whole, err := st.Task(ctx, t.ID); err != nil {
			return err
		} else {
			now = &whole
		}
		items, err := listOf(ctx, now)
		if err != nil {
			return fmt.Errorf("task %q keeps its items: %w", t.Key(), err)
		}
		found[t.ID] = items
		return nil
	})
	return found, err
}

// listOf returns the items that a foreach task over files has now.
func listOf(ctx context.Context, t *plan.Task) ([]json.RawMessage, error) {
	var params struct {
		Dir string `json:"dir"`
	}
	_ = json.Unmarshal(t.Params, &params) // of another plugin dir may be anything
	switch path := t.Foreach.Lines + t.Foreach.Glob; {
	case filepath.IsAbs(path):
	case t.Template && strings.Contains(params.Dir, "${{"):
		return nil, fmt.Errorf("%s starts in the folder %s, which only a node can tell; run the task again with --downstream", path, params.Dir)
	case params.Dir == "":
		return nil, fmt.Errorf("%s starts in the folder of a node, which may be another one; run the task again with --downstream", path)
	}
	items, err := listing.Read(ctx, t.Foreach, params.Dir)
	if err != nil {
		return nil, fmt.Errorf("foreach: %w", err)
	}
	return items, nil
}
