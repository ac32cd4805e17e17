package api

import "github.com/seed-1177d267/sluice/plan"

// A Graph is a plan as it is drawn: boxes in levels from left to right, and lines between them. A node is one task, or, in a plan of many, a
// group of tasks. Lists are as long as there are nodes where nothing else is said: that is smaller, and quicker to read, than an object a node.
//
// An answer leaves out the fields that Layout covers if the caller already has that layout. States
// and counts are always in the answer.
type Graph struct {
	Plan   plan.PlanID `json:"plan"`
	Layout string      `json:"layout" doc:"Names everything below width, and the order of nodes; ask with it as since, and only what changed since is told."`
	Tasks  int         `json:"tasks" doc:"How many the plan has, items included."`
	Open   string      `json:"open,omitempty" doc:"The key of the group that is open."`
	From   int         `json:"from,omitempty" doc:"With open: the first task that is shown of it."`
	States []string    `json:"states" doc:"The words that state and counts stand for."`
	State  []int       `json:"state" doc:"Of each node: which of states. A foreach with its items has one state. -1: the node is a group of tasks alike, and counts tells."`
	Counts [][]int     `json:"counts" doc:"Of each group: its node, then how many of its tasks are in each of states. A foreach task that has items is not counted beside them."`
	// Left out if no running task has reported its progress. No event announces reports: ask again.
	Progress []GraphProgress `json:"progress,omitempty" doc:"How far running tasks that are nodes said they are."`

	Width     int      `json:"width,omitempty" doc:"Of the whole, in pixels."`
	Height    int      `json:"height,omitempty"`
	BoxWidth  int      `json:"box_width,omitempty" doc:"Of each box."`
	BoxHeight int      `json:"box_height,omitempty"`
	X         []int    `json:"x,omitempty" doc:"Of each box's upper left corner."`
	Y         []int    `json:"y,omitempty"`
	Level     []int    `json:"level,omitempty" doc:"Counted from 0 in the connected part that it is in."`
	Names     []string `json:"names,omitempty" doc:"Of a group, what its tasks' names have in common, with * for numbers."`
	IDs       []string `json:"ids,omitempty" doc:"Of a foreach with its items, that of the foreach task; of a group of tasks alike, none."`
	// Left out where no node is an item.
	ItemLabels []string     `json:"item_labels,omitempty" doc:"Of each node that is an item of a foreach task, what it is for, in few words; of the first 2,000 of them."`
	Groups     []GraphGroup `json:"groups,omitempty" doc:"As in counts."`
	Edges      []int        `json:"edges,omitempty" doc:"Of each edge: its first node, the node that needs it, how many bends the line has between them, and x and y of each."`
	Lane       []int        `json:"lane,omitempty" doc:"Where the handlers and clean-ups lie: x, y, width and height. Left out where there are none."`
	Heads      []int        `json:"heads,omitempty" doc:"Nodes that are a foreach task whose items are drawn beside it: who counts tasks leaves them out."`
	Lenient    []int        `json:"lenient,omitempty" doc:"Nodes that are a task with continue_on_error: a failure of it is allowed."`
	Weights    []int        `json:"weights,omitempty" doc:"Of each edge: how many needs it stands for. Left out where that is 1 everywhere."`
}

// A GraphGroup is a node for several tasks: a foreach with its items, or similar tasks of one
// level.
type GraphGroup struct {
	Key   string `json:"key" doc:"Ask with it as open, and its tasks are shown."`
	From  int    `json:"from,omitempty" doc:"How many of the key's tasks are before these: a group that is open is shown in pieces."`
	Count int    `json:"count"`
	Of    int    `json:"of" doc:"How many tasks the key has."`
}

// GraphProgress is how far a running task said it is.
type GraphProgress struct {
	Node int `json:"node" doc:"Of a time line: the bar."`
	plan.Progress
}

// A ForeachState is how far a foreach task with its items is.
type ForeachState struct {
	ID    plan.TaskID `json:"id"`
	State string      `json:"state"`
	Items int         `json:"items"`
	Done  int         `json:"done" doc:"How many items have ended, in whatever way."`
}

// A Timeline is when the tasks of a plan ran. Times are in milliseconds after Begin. Lists are as long as there are bars where nothing else is
// said.
type Timeline struct {
	Plan    plan.PlanID `json:"plan"`
	Begin   int64       `json:"begin" doc:"When the plan was created, in milliseconds since 1970."`
	Now     float64     `json:"now" doc:"The present, by the store's clock."`
	End     float64     `json:"end" doc:"When the plan ended; of one that has not, the present."`
	Ended   bool        `json:"ended"`
	Tasks   int         `json:"tasks" doc:"How many the plan has."`
	Started int         `json:"started" doc:"How many of them were started, or ended without."`
	States  []string    `json:"states" doc:"The words that state stands for."`

	Rows []string `json:"rows" doc:"What each row shows: a task's name, or what the names of several have in common."`
	Size []int    `json:"size" doc:"Of each row: how many tasks it shows."`
	Keys []string `json:"keys" doc:"Of each row of several tasks: ask with it as open, and they have rows for themselves. Of a row of one task, none."`
	// All of them are 0, and left out, unless a row of more tasks than are shown at once is open.
	RowFrom []int `json:"row_from,omitempty" doc:"Of each row of several tasks: how many of the key's are before these."`
	// The one state of a foreach with its items.
	RowState []int `json:"row_state" doc:"Of each row: which of states; -1: it shows tasks alike."`
	// In a row of many tasks only the longest are bars. The others count in the number of tasks
	// that ran at a time.
	Bins  int         `json:"bins,omitempty" doc:"Into how many equal spans of the time to end density is cut."`
	Dense [][]float64 `json:"dense,omitempty" doc:"Of rows of many tasks: the row, the first bin, then how many tasks ran in it and each after it, on average."`

	Row   []int     `json:"row"`
	From  []float64 `json:"from"`
	To    []float64 `json:"to" doc:"-1: it still runs."`
	State []int     `json:"state"`
	IDs   []string  `json:"ids"`
	Names []string  `json:"names"`
	// Left out where no bar is an item.
	ItemLabels []string `json:"item_labels,omitempty" doc:"Of each bar of an item of a foreach task, what that is for, in few words; of the first 2,000 of them."`

	Progress []GraphProgress `json:"progress,omitempty" doc:"How far running tasks that are bars said they are."`

	Path     []PathLink `json:"path" doc:"What the plan's length was made of, first to last: the critical path."`
	PathLeft int        `json:"path_left,omitempty" doc:"How many links are not told, the shortest."`
}

// A PathLink is one task of the critical path.
type PathLink struct {
	ID        plan.TaskID `json:"id"`
	Name      string      `json:"name"`
	ItemLabel string      `json:"item_label,omitempty" doc:"What an item of a foreach task is for, in few words."`
	Row       int         `json:"row" doc:"-1: it was never started, and has none."`
	State     int         `json:"state"`
	From      float64     `json:"from"`
	To        float64     `json:"to"`
	Wait      float64     `json:"wait" doc:"Since the link before it ended."`
}
