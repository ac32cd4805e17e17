package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// NoItemsDetail is the detail of a foreach task that succeeded without an item. Without the detail, a
// mistyped pattern would look like success. dir is the folder of a relative pattern; "" for an
// absolute one.
func NoItemsDetail(f *plan.Foreach, dir string) string {
	switch {
	case f.Glob != "" && dir != "":
		return "no items: nothing matches " + f.Glob + " in " + dir
	case f.Glob != "":
		return "no items: nothing matches " + f.Glob
	case f.Lines != "":
		return "no items: " + f.Lines + " has no lines"
	case f.Group != "" && f.Value != "":
		return "no items: " + f.Value + " has no outputs"
	case f.Group != "":
		return "no items: there are no inputs"
	case f.Value != "":
		return "no items: " + f.Value + " is an empty list"
	}
	return "no items: its list is empty"
}

// ExpandItems returns the items of a foreach whose source is a list or a parent's output. It needs no other input than that of From.
func ExpandItems(f *plan.Foreach, inputs []plan.Input) ([]json.RawMessage, error) {
	items, err := expandItems(f, inputs)
	if err == nil {
		err = CheckKeys(f, items)
	}
	return items, err
}

func expandItems(f *plan.Foreach, inputs []plan.Input) ([]json.RawMessage, error) {
	list := f.List
	if from := ListFrom(f); f.Group != "" && from != "" {
		for _, in := range inputs {
			if in.Name == from {
				list = in.Output
			}
		}
	} else if f.Value != "" {
		var err error
		list, _, err = expr.Lookup(f.Value, func(steps []string) (json.RawMessage, bool, error) {
			if steps[0] != "needs" {
				return nil, false, fmt.Errorf("foreach over ${{ %s }}: %q is not known when its parents have finished", f.Value, steps[0])
			}
			needs := []byte{'{'}
			for i, in := range inputs {
				if i > 0 {
					needs = append(needs, ',')
				}
				needs = appendOutput(append(appendName(needs, in.Name), ':'), in.Output)
			}
			return append(needs, '}'), true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	if f.Group != "" {
		return groups(f, list)
	}
	return ParseItems(list)
}

// ListFrom returns the name of the parent whose output the list is, or is in; "" if there is none.
func ListFrom(f *plan.Foreach) string {
	name, _ := listFrom(f)
	return name
}

func listFrom(f *plan.Foreach) (parent string, whole bool) {
	steps, err := expr.Parse(f.Value)
	if err != nil || len(steps) < 2 {
		return "", false
	}
	return steps[1], len(steps) == 2
}

// TakesAll reports whether items are made of all of the parent's output, so that ItemInputs leaves them nothing of it.
// Groups say which of the outputs are theirs, and need them.
func TakesAll(f *plan.Foreach, in InputSize) bool {
	parent, whole := listFrom(f)
	return in.Name == parent && f.Group == "" && (whole || in.Gathered)
}

// CheckItemInputs is CheckInputs for the inputs of items: the outputs of their foreach task's
// parents. If the list is only a part of an output, the size of the rest shows only when it is
// read. Such an output counts whole.
func CheckItemInputs(f *plan.Foreach, inputs []InputSize) error {
	sum := 0
	for _, in := range inputs {
		if !TakesAll(f, in) {
			sum += in.Bytes
		}
	}
	return CheckInputs(sum)
}

// MayCopyIntoItems reports whether CopiedIntoItems can hold, as far as that is known before the outputs are read.
func MayCopyIntoItems(f *plan.Foreach, inputs []InputSize) bool {
	from, sum := ListFrom(f), 0
	for _, in := range inputs {
		if in.Name != from || f.Group != "" {
			sum += in.Bytes
		}
	}
	return sum <= plan.MaxCopiedItem
}

// ItemInputs returns the inputs of items: the outputs of their foreach task's parents, without the
// list that the items were made of. A list that is a parent's whole output becomes null. A list
// inside an output is taken out. Otherwise 100,000 items would get 100,000 copies of a list of
// 100,000. Groups get the list, since they say which outputs of it are theirs.
func ItemInputs(f *plan.Foreach, inputs []plan.Input) []plan.Input {
	steps, err := expr.Parse(f.Value)
	if err != nil || len(steps) < 2 || f.Group != "" {
		return inputs
	}
	out := slices.Clone(inputs)
	for i := range out {
		if out[i].Name == steps[1] {
			out[i].Output = without(out[i].Output, steps[2:])
		}
	}
	return out
}

// without returns a JSON value without what the path leads to, null if that is all of it.
func without(value json.RawMessage, path []string) json.RawMessage {
	if len(path) == 0 {
		return nil
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(value, &m) != nil {
		return nil // the path led into a list
	}
	if len(path) == 1 {
		delete(m, path[0])
	} else if inner := without(m[path[0]], path[1:]); inner == nil {
		m[path[0]] = json.RawMessage("null")
	} else {
		m[path[0]] = inner
	}
	value, err := jsontext.Marshal(m)
	if err != nil {
		return nil
	}
	return value
}

// CopiedIntoItems reports whether what items get of their foreach task's parents is copied into each of them, or read by reference.
func CopiedIntoItems(inputs []plan.Input) bool {
	sum := 0
	for _, in := range inputs {
		sum += len(in.Output)
	}
	return sum <= plan.MaxCopiedItem
}

// ParseItems reads a JSON array of at most MaxItems items.
func ParseItems(list json.RawMessage) ([]json.RawMessage, error) {
	list = bytes.TrimSpace(list)
	if len(list) == 0 || list[0] != '[' {
		return nil, fmt.Errorf("foreach over %s, which %w", jsontext.Excerpt(list), errNotList)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil {
		return nil, fmt.Errorf("foreach over %s: %w", jsontext.Excerpt(list), err)
	}
	return items, CheckItems(len(items))
}

// CheckItems refuses more items than are made.
func CheckItems(n int) error {
	if n > plan.MaxItems {
		return fmt.Errorf("too many items: at most %d are made; put several values into one item", plan.MaxItems)
	}
	return nil
}

// ItemTask makes the task of the item with the given index (from 0). Its name is as in "copy[17]",
// and its params hold the item. It inherits the settings of its runs from the foreach task. By
// Foreach.Each it asks the When of the foreach task of its own parents; Needs are the caller's to add.
func ItemTask(of *plan.Task, index int, item json.RawMessage, params json.RawMessage, now time.Time) plan.Task {
	d := of.Definition
	if d.Foreach == nil || len(d.Foreach.Each) == 0 {
		d.When = ""
	}
	d.ItemKey, _ = KeyOf(d.Foreach, item) // which was checked with the list
	d.ContinueOnError = d.ContinueOnError || d.MaxFailures != ""
	d.Foreach, d.Description, d.Subject = nil, "", itemSubject(d.Subject, item)
	return plan.Task{
		ID: ItemID(of.ID, index), Plan: of.Plan, Name: ItemName(of.Name, index), Queue: of.Queue, Definition: d,
		Params: WithItem(params, item), Of: of.ID, Index: index, Status: FirstStatus, Created: now, Modified: now,
	}
}

// ItemName returns the name of an item's task.
func ItemName(of string, index int) string { return fmt.Sprintf("%s[%d]", of, index) }

// InputName returns the name that a parent has for its child: for an item the name of its foreach task.
func InputName(parent string, item bool) string {
	if item {
		parent, _, _ = strings.Cut(parent, "[")
	}
	return parent
}

// GoesAlong reports whether the item of a foreach task needs the item with the same index of the parent
// with that name, and not the parent itself.
func GoesAlong(f *plan.Foreach, parent string) bool {
	return f != nil && slices.Contains(f.Each, parent)
}

// WithItem returns params, a JSON object or nil, with the item in them. It replaces an earlier
// value of that key. Other params stay as they are.
func WithItem(params, item json.RawMessage) json.RawMessage {
	with, err := withMember(params, "item", item)
	if err != nil {
		return params
	}
	return with
}

// ItemOf returns the item that params hold, as WithItem put it there; nil if they hold none, or are no JSON object.
func ItemOf(params json.RawMessage) json.RawMessage {
	var held map[string]json.RawMessage
	if json.Unmarshal(params, &held) != nil {
		return nil
	}
	return held["item"]
}

var errNotList = errors.New("is not a list")
