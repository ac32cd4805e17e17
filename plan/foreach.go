package plan

import (
	"encoding/json"
)

// Foreach says over what a task is repeated. Exactly one field is set, but for Key, and for Group, which goes
// with Value or List.
//
// The release that finds the task's parents finished makes the items of a literal list, and of a
// parent's output, in the write that finishes the last parent. Lines and Glob name files of a
// node's host. Such a task is queued; a node claims it, reads the items and ends its claim with
// them.
//
// Each names other foreach tasks of the plan, which go over the same items, and which the task needs. The
// task has an item for each of theirs. That item needs the items with the same index of these tasks, and
// what else the task needs.
//
// Group makes the items of inputs for workers of the plugin disco: Value is "needs.NAME" of such a task, or
// List is a list as the param inputs of that plugin takes it. An item is a group of them, a rules.Group.
//
// Key names items: a text with expressions over the item, such as "${{ item.name }}". No two items have the
// same key. Empty means that an item that is a text or a number names itself.
type Foreach struct {
	List  json.RawMessage `json:"list,omitempty"`  // a JSON array
	Value string          `json:"value,omitempty"` // a path into needs, as in "needs.list.mailboxes"; its value is an array
	Lines string          `json:"lines,omitempty"` // a file: an item for each line, without its end; blank lines are left out
	Glob  string          `json:"glob,omitempty"`  // a pattern of files: an item for each path, sorted
	Each  []string        `json:"each,omitempty"`  // names of other foreach tasks
	Key   string          `json:"key,omitempty"`   // names items
	Group string          `json:"group,omitempty"` // how inputs are grouped: split, group_label, group_node, group_node_label or group_all
}

// OnNode reports whether a node has to make the items, since they come from files.
func (f *Foreach) OnNode() bool { return f.Lines != "" || f.Glob != "" }
