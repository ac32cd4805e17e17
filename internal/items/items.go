// Package items says what the items of foreach tasks are for: an index alone, as in copy[17], says nothing to who wrote the list. Commands
// and the REST API ask it, so that a person sees the same in a terminal, a report and a page.
package items

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Values are what items are for, as they stand in the list. A task that is no item, or does not say, has none.
type Values map[plan.TaskID]json.RawMessage

// page is how many tasks are read at once: each may have 512 KiB of its parents' outputs with its
// item.
const page = 200

// Read returns what the items among the tasks are for. Only their params are read, unless the tasks have them: those of others may be large.
func Read(ctx context.Context, r store.TaskReader, tasks []plan.Task) (Values, error) {
	return read(ctx, r, tasks, func(t *plan.Task) json.RawMessage { return rules.ItemOf(t.Params) })
}

// ReadKeys is Read with the key in place of the item, where an item has one: for callers that show it and have
// no more of the task.
func ReadKeys(ctx context.Context, r store.TaskReader, tasks []plan.Task) (Values, error) {
	return read(ctx, r, tasks, func(t *plan.Task) json.RawMessage { return Shown(t, rules.ItemOf(t.Params)) })
}

// Shown returns what people see of an item: its key, if it has one, or the item.
func Shown(t *plan.Task, item json.RawMessage) json.RawMessage {
	if t.ItemKey == "" {
		return item
	}
	key, _ := json.Marshal(t.ItemKey) // a text
	return key
}

func read(ctx context.Context, r store.TaskReader, tasks []plan.Task, of func(*plan.Task) json.RawMessage) (Values, error) {
	var ids []plan.TaskID
	v := Values{}
	add := func(t *plan.Task) {
		if item := of(t); item != nil {
			v[t.ID] = item
		}
	}
	for i := range tasks {
		switch t := &tasks[i]; {
		case t.Of.IsZero():
		case t.Params != nil:
			add(t)
		default:
			ids = append(ids, t.ID)
		}
	}
	for some := range slices.Chunk(ids, page) {
		found, err := r.Tasks(ctx, store.TaskQuery{IDs: some, Params: true, Limit: len(some)})
		if err != nil {
			return nil, err
		}
		for i := range found {
			add(&found[i])
		}
	}
	return v, nil
}

// Label is Label of what the task is for; "" of one that has no value.
func (v Values) Label(id plan.TaskID, mark string) string { return Label(v[id], mark) }

// mostCells is the most cells of an item that are shown with its task's name.
const mostCells = 40

// Label returns the label of an item, in at most 40 cells of one line without control characters. A
// text is shown as it is, a group of inputs as its label and its node, and anything else as compact JSON. mark marks a cut label. "" means that
// there is nothing to show.
func Label(item json.RawMessage, mark string) string {
	if len(item) == 0 {
		return ""
	}
	if g := rules.GroupOf(item); g != nil {
		return cells.Cut(cells.Clean(g.String()), mostCells, mark)
	}
	var text string
	if json.Unmarshal(item, &text) != nil || text == "" { // also null, and a text of nothing is seen by its quotes
		var short bytes.Buffer
		if json.Compact(&short, item) != nil {
			return ""
		}
		text = short.String()
	}
	return cells.Cut(cells.Clean(text), mostCells, mark)
}
