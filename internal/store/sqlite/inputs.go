package sqlite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// inputs returns the outputs of the parents of some tasks, by task, each in the order of its needs.
// Tasks without parents are left out.
func (c *conn) inputs(children []int64) map[int64][]plan.Input {
	frozen := map[int64][]plan.Input{}
	for r := c.query("SELECT n, inputs FROM frozen WHERE n IN (SELECT value FROM json_each(?))", list(children)); r.next(); {
		var in []plan.Input
		c.fail(json.Unmarshal(r.bytes(1), &in))
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
		out[child] = among(found, ns, make([]plan.Input, 0, len(ns)))
	}
	return out
}

// among adds those that were found of some tasks, in their order.
func among(found map[int64]plan.Input, tasks []int64, in []plan.Input) []plan.Input {
	for _, n := range tasks {
		if i, ok := found[n]; ok {
			in = append(in, i)
		}
	}
	return in
}

// outputsOf ends with the column of the tasks' numbers.
var outputsOf = fmt.Sprintf(`SELECT t.n, CASE t.name WHEN '' THEN lower(hex(t.id)) ELSE t.name END, t.output,
	CASE WHEN t.flags & %d <> 0 THEN 2 ELSE t.output IS NULL AND t.out_len > 0 END, t.of <> 0 FROM tasks AS t WHERE t.n`, flagGathered)

// outputs returns the outputs of tasks that have finished, with their keys. It sorts the tasks.
func (c *conn) outputs(tasks []int64) map[int64]plan.Input {
	found := make(map[int64]plan.Input, len(tasks))
	if len(tasks) == 0 {
		return found
	}
	var gathered, longer []int64
	c.queryEach(outputsOf, tasks, func(r *rows) {
		n := r.int(0)
		found[n] = plan.Input{Name: rules.InputName(r.text(1), r.bool(4) && !c.ownNames), Output: r.bytes(2)} // an empty name is replaced as by plan.Task.Key
		switch r.int(3) {
		case 1:
			longer = append(longer, n)
		case 2:
			gathered = append(gathered, n)
		}
	})
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

// heads is what is known of the outputs of a task's parents before they are read.
type heads struct {
	parents []int64 // in the order of its needs
	sizes   map[int64]rules.InputSize
}

func (c *conn) heads(n int64) heads {
	h := heads{parents: c.parentsOf([]int64{n})[n]}
	h.sizes = make(map[int64]rules.InputSize, len(h.parents))
	for r := c.query(`SELECT t.n, CASE t.name WHEN '' THEN lower(hex(t.id)) ELSE t.name END, t.out_len, t.flags
		FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.n = j.value`, list(h.parents)); r.next(); {
		h.sizes[r.int(0)] = rules.InputSize{Name: r.text(1), Bytes: int(r.int(2)), Gathered: r.int(3)&flagGathered != 0}
	}
	return h
}

// A shared is what the items of a foreach task over groups have of its parents' outputs. A stage has hundreds
// of items, which ask for the same megabytes.
type shared struct {
	mu sync.Mutex
	kept
}

// kept is a shared of one task: the one whose items asked last, or were made last.
type kept struct {
	of    int64
	edits int64 // of the plan: only a retry changes outputs, or the definition of the task
	in    []plan.Input
}

// mostShared is how many bytes of outputs are kept for the next item.
const mostShared = 16 << 20

// get returns what read does for items of a task, without asking it again for the same.
func (s *shared) get(of, edits int64, read func() ([]plan.Input, error)) ([]plan.Input, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == of && s.edits == edits {
		return s.in, nil
	}
	in, err := read()
	if err == nil {
		s.keep(kept{of, edits, in})
	}
	return in, err
}

// keep keeps k if it is small enough.
func (s *shared) keep(k kept) {
	size := 0
	for i := range k.in {
		size += len(k.in[i].Output)
	}
	if size <= mostShared {
		s.kept = k
	}
}

// listed keeps what items were made of, once that is committed: nothing else is to be read for them.
func (s *shared) listed(k kept) {
	if k.of == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(k)
}

func (h *heads) all() []rules.InputSize { return slices.Collect(maps.Values(h.sizes)) }

// check is rules.CheckInputs.
func (h *heads) check() error {
	sum := 0
	for _, in := range h.sizes {
		sum += in.Bytes
	}
	return rules.CheckInputs(sum)
}

// listInputs returns the one input of a foreach task that its list comes from, if it comes from one. all
// reports whether that is all that the task needs.
func (c *conn) listInputs(n int64, f *plan.Foreach) (in []plan.Input, all bool, err error) {
	if rules.ListFrom(f) == "" {
		return nil, false, nil
	}
	h := c.heads(n)
	for _, p := range h.parents {
		if in, there := h.sizes[p]; there && in.Name == rules.ListFrom(f) {
			if err := rules.CheckInputs(in.Bytes); err != nil {
				return nil, false, err
			}
			return []plan.Input{c.outputs([]int64{p})[p]}, len(h.parents) == 1, nil
		}
	}
	return nil, false, nil
}

// itemInputs returns what the items of a foreach task have of its parents' outputs.
func (c *conn) itemInputs(h heads, f *plan.Foreach) []plan.Input {
	found := c.outputs(slices.DeleteFunc(slices.Clone(h.parents), func(p int64) bool { return rules.TakesAll(f, h.sizes[p]) }))
	in := make([]plan.Input, 0, len(h.parents))
	for _, p := range h.parents {
		if i, there := found[p]; there {
			in = append(in, i)
		} else if size, there := h.sizes[p]; there {
			in = append(in, plan.Input{Name: size.Name})
		}
	}
	return rules.ItemInputs(f, in)
}

// freeze keeps the inputs of finished children that a retry of their parents would change.
func (t *tx) freeze(children []int64) {
	for _, n := range children { // one at a time: together they may be large
		if in := t.given(n); in != nil {
			t.exec(keepInputs, n, in)
		}
	}
}

const keepInputs = "INSERT OR IGNORE INTO frozen (n, inputs) VALUES (?, ?)"

// given returns the inputs that a task was given, as JSON; nil: none.
func (c *conn) given(n int64) []byte {
	if h := c.heads(n); h.check() != nil {
		return nil
	}
	in := c.inputs([]int64{n})[n]
	if in == nil {
		return nil
	}
	b, err := jsontext.Marshal(in)
	c.fail(err)
	return b
}

// gathered puts the output of a foreach task together, as rules.List does. It may have many megabytes, so each output
// is read into its place.
func (c *conn) gathered(n int64) json.RawMessage {
	f := c.storedForeach(n)
	out := append(make([]byte, 0, f.bytes+f.items+2), '[')
	for r := c.query(`SELECT coalesce(t.output, o.output) FROM tasks AS t INDEXED BY tasks_of LEFT JOIN outputs AS o ON o.n = t.n
		WHERE t.of = ? AND t.of <> 0 ORDER BY t.idx`, n); r.next(); {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if size := r.len(0); size > 0 {
			out = slices.Grow(out, size)[:len(out)+size]
			r.read(0, out[len(out)-size:])
		} else {
			out = append(out, "null"...)
		}
	}
	return append(out, ']')
}
