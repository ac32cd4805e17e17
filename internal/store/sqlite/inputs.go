package sqlite

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/plan"
)

// inputs returns what the parents of some tasks have for them, by task, each in the order of its needs. Who has none is not there.
func (c *conn) inputs(children []int64) map[int64][]plan.Input {
	frozen := map[int64][]plan.Input{}
	for r := c.query("SELECT n, inputs FROM frozen WHERE n IN (SELECT value FROM json_each(?))", list(children)); r.next(); {
		var in []plan.Input
		if err := json.Unmarshal(r.bytes(1), &in); err != nil {
			c.fail(err)
		}
		frozen[r.int(0)] = in
	}
	out := c.live(c.parentsOf(slices.DeleteFunc(slices.Clone(children), func(n int64) bool { return frozen[n] != nil })))
	maps.Copy(out, frozen)
	return out
}

// live is inputs for tasks whose inputs are not frozen, such as all that have not finished, by their parents.
func (c *conn) live(parents map[int64][]int64) map[int64][]plan.Input {
	found := c.outputs(all(parents))
	out := make(map[int64][]plan.Input, len(parents))
	for child, ns := range parents {
		in := make([]plan.Input, 0, len(ns))
		for _, n := range ns {
			if i, ok := found[n]; ok {
				in = append(in, i)
			}
		}
		out[child] = in
	}
	return out
}

// outputs returns the outputs of tasks that have finished, with their keys; null for what was deleted.
func (c *conn) outputs(tasks []int64) map[int64]plan.Input {
	found := make(map[int64]plan.Input, len(tasks))
	if len(tasks) == 0 {
		return found
	}
	var gathered, longer []int64
	for r := c.query(`SELECT t.n, CASE t.name WHEN '' THEN lower(hex(t.id)) ELSE t.name END, t.output,
		CASE WHEN t.flags & ? <> 0 THEN 2 ELSE t.output IS NULL AND t.out_len > 0 END
		FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.n = j.value`, flagGathered, list(tasks)); r.next(); {
		n := r.int(0)
		found[n] = plan.Input{Name: r.text(1), Output: r.bytes(2)} // an empty name is replaced as by plan.Task.Key
		switch r.int(3) {
		case 1:
			longer = append(longer, n)
		case 2:
			gathered = append(gathered, n)
		}
	}
	if len(found) < len(tasks) {
		for r := c.query("SELECT n, name, id FROM ghosts WHERE n IN (SELECT value FROM json_each(?))", list(tasks)); r.next(); {
			found[r.int(0)] = plan.Input{Name: cmp.Or(r.text(1), hex.EncodeToString(r.bytes(2)))}
		}
	}
	if len(longer) > 0 {
		for r := c.query("SELECT n, output FROM outputs WHERE n IN (SELECT value FROM json_each(?))", list(longer)); r.next(); {
			in := found[r.int(0)]
			in.Output = r.bytes(1)
			found[r.int(0)] = in
		}
	}
	for _, n := range gathered {
		in := found[n]
		in.Output = c.gathered(n)
		found[n] = in
	}
	return found
}

// listInputs returns the inputs of a foreach task with the outputs of those parents only that its list comes from.
func (t *tx) listInputs(n int64, f *plan.Foreach) []plan.Input {
	if f.Value == "" {
		return nil
	}
	var of []int64
	for r := t.query("SELECT t.n, t.name FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.n = j.value", list(t.parentsOf([]int64{n})[n])); r.next(); {
		if strings.HasPrefix(f.Value, "needs."+r.text(1)) {
			of = append(of, r.int(0))
		}
	}
	found := t.outputs(of)
	inputs := make([]plan.Input, 0, len(of))
	for _, p := range of {
		inputs = append(inputs, found[p])
	}
	return inputs
}

// Inputs implements store.Node.
func (s *Store) Inputs(ctx context.Context, id plan.TaskID) (in []plan.Input, err error) {
	err = s.read(ctx, func(c *conn) error {
		r := c.query("SELECT n, of FROM tasks WHERE id = ?", id.ID[:])
		if !r.one() {
			return fmt.Errorf("task %s: %w", id, plan.ErrNotFound)
		}
		n, of := r.int(0), r.int(1)
		if of == 0 {
			in = c.inputs([]int64{n})[n]
			return nil
		}
		var d plan.Definition
		if r = c.query("SELECT def FROM bodies WHERE n = ?", of); !r.one() || json.Unmarshal(r.bytes(0), &d) != nil || d.Foreach == nil {
			return fmt.Errorf("the foreach task of %s is damaged", id)
		}
		in = d.Foreach.ItemInputs(c.inputs([]int64{of})[of])
		return nil
	})
	return in, err
}

// freeze keeps the inputs of finished children that a retry, or a deletion, of their parents would change.
func (t *tx) freeze(children []int64) {
	for _, n := range children { // one at a time: together they may be large
		in := t.inputs([]int64{n})[n]
		if in == nil {
			continue
		}
		b, err := marshal(in)
		if err != nil {
			t.fail(err)
			return
		}
		t.exec("INSERT OR IGNORE INTO frozen (n, inputs) VALUES (?, ?)", n, b)
	}
}
