package api

import "github.com/seed-1177d267/sluice/plan"

// A Graph is a plan as it is drawn: boxes in levels from left to right, and lines between them. A node is one task, or, in a plan of many, a
// group of tasks. Lists are as long as there are nodes where nothing else is said: that is smaller, and quicker to read, than an object a node.
//
// An answer leaves out the fields that Layout covers if the caller already has that layout. States
// and counts are always in the answer.
type Graph struct {
	Plan   plan.PlanID `json:"plan"`
	Layout string      `json:"layout" doc:"The version of everything below width, and of the order of nodes. A request with it as since gets only the changes."`
	Tasks  int         `json:"tasks" doc:"The number of the plan's tasks, items included."`
	Open   string      `json:"open,omitempty" doc:"The key of the group that is open."`
	From   int         `json:"from,omitempty" doc:"With open: the first shown task of it."`
	States []string    `json:"states" doc:"The words for state and counts."`
	State  []int       `json:"state" doc:"For each node: the index in states. A foreach with its items has one state. -1: the node is a group of similar tasks; see counts."`
	Counts [][]int     `json:"counts" doc:"For each group: its node, then how many of its tasks are in each of states. A foreach task that has items is not counted."`
	// Left out if no running task has reported its progress. No event announces reports: ask again.
	Progress []GraphProgress `json:"progress,omitempty" doc:"The progress that running tasks reported, for tasks that are nodes."`

	Width     int      `json:"width,omitempty" doc:"The size of the whole, in pixels."`
	Height    int      `json:"height,omitempty"`
	BoxWidth  int      `json:"box_width,omitempty" doc:"The sizes of the boxes."`
	BoxHeight int      `json:"box_height,omitempty"`
	X         []int    `json:"x,omitempty" doc:"For each box: its upper left corner."`
	Y         []int    `json:"y,omitempty"`
	Level     []int    `json:"level,omitempty" doc:"Counted from 0 in the connected part that it is in."`
	Names     []string `json:"names,omitempty" doc:"For a group, the common part of its tasks' names, with * for numbers."`
	IDs       []string `json:"ids,omitempty" doc:"The id of the foreach task, for a foreach with its items; none for a group of similar tasks."`
	// Left out where no node is an item.
	ItemLabels []string     `json:"item_labels,omitempty" doc:"For each node that is an item of a foreach task, its label; for the first 2,000 items."`
	Groups     []GraphGroup `json:"groups,omitempty" doc:"As in counts."`
	Edges      []int        `json:"edges,omitempty" doc:"For each edge: its first node, the node that needs it, how many bends the line has between them, and x and y of each."`
	Along      []int        `json:"along,omitempty" doc:"Edges, by their place, whose tasks go over the same items, item by item (each). Left out if there are none, or no items yet."`
	Lane       []int        `json:"lane,omitempty" doc:"The lane of the handlers and clean-ups: x, y, width and height. Left out if there are none."`
	Finally    []int        `json:"finally,omitempty" doc:"The frame of the tasks of finally: x, y, width and height. Lines from the others to these stand for the end of all others. Left out if there are none."`
	Heads      []int        `json:"heads,omitempty" doc:"Nodes that are a foreach task whose items are nodes of their own: leave them out of a count of tasks."`
	Lenient    []int        `json:"lenient,omitempty" doc:"Nodes that are a task with continue_on_error: its failure is allowed."`
	Weights    []int        `json:"weights,omitempty" doc:"For each edge: the number of needs in it. Left out if that is 1 everywhere."`
}

// A GraphGroup is a node for several tasks: a foreach with its items, or similar tasks of one
// level.
type GraphGroup struct {
	Key   string `json:"key" doc:"A request with it as open shows the tasks."`
	From  int    `json:"from,omitempty" doc:"How many of the key's tasks are before these: an open group is shown in pieces."`
	Count int    `json:"count"`
	Of    int    `json:"of" doc:"The number of the key's tasks."`
}

// GraphProgress is how far a running task said it is.
type GraphProgress struct {
	Node int `json:"node" doc:"The bar, in a time line."`
	plan.Progress
}

// A ForeachState is how far a foreach task with its items is.
type ForeachState struct {
	ID    plan.TaskID `json:"id"`
	State string      `json:"state"`
	Items int         `json:"items"`
	Done  int         `json:"done" doc:"How many items have ended, in any way."`
}

// A Timeline is when the tasks of a plan ran. Times are in milliseconds after Begin. Lists are as long as there are bars where nothing else is
// said.
type Timeline struct {
	Plan    plan.PlanID `json:"plan"`
	Begin   int64       `json:"begin" doc:"When the plan was created, in milliseconds since 1970."`
	Now     float64     `json:"now" doc:"The present, by the store's clock."`
	End     float64     `json:"end" doc:"When the plan ended, or the present time if it has not."`
	Retried float64     `json:"retried,omitempty" doc:"When a retry last let the plan run again after it had ended."`
	Ended   bool        `json:"ended"`
	// Left out unless a retry let the plan run again long after it had ended.
	Breaks  [][2]float64 `json:"breaks,omitempty" doc:"The long spans before the last retry in which nothing ran: the first and the last instant of each."`
	Tasks   int          `json:"tasks" doc:"The number of the plan's tasks."`
	Started int          `json:"started" doc:"How many tasks were started, or ended without a start."`
	States  []string     `json:"states" doc:"The words for state."`

	Rows []string `json:"rows" doc:"The name of each row: a task's name, or the common part of several names."`
	Size []int    `json:"size" doc:"For each row: how many tasks it shows."`
	Keys []string `json:"keys" doc:"For each row of several tasks: a request with it as open gives each task its own row. Empty for a row of one task."`
	// All of them are 0, and left out, unless a row of more tasks than are shown at once is open.
	RowFrom []int `json:"row_from,omitempty" doc:"For each row of several tasks: how many of the key's tasks are before these."`
	// The one state of a foreach with its items.
	RowState []int `json:"row_state" doc:"For each row: the index in states; -1: it shows similar tasks."`
	// In a row of many tasks only the longest and failed ones are bars. The others count in the number
	// of tasks that ran at a time.
	Bins  int         `json:"bins,omitempty" doc:"Into how many equal spans of the time to end, without breaks, density is cut."`
	Dense [][]float64 `json:"dense,omitempty" doc:"For rows of many tasks: the row, the first bin, then how many tasks ran in it and in each later bin, on average."`

	Row   []int     `json:"row"`
	From  []float64 `json:"from"`
	To    []float64 `json:"to" doc:"-1: it still runs."`
	State []int     `json:"state"`
	IDs   []string  `json:"ids"`
	Names []string  `json:"names"`
	// Left out where no bar is an item.
	ItemLabels []string `json:"item_labels,omitempty" doc:"For each bar of an item of a foreach task, its label; for the first 2,000 items."`

	Progress []GraphProgress `json:"progress,omitempty" doc:"The progress that running tasks reported, for tasks that are bars."`

	Path     []PathLink `json:"path" doc:"The tasks that determined the plan's length, first to last: the critical path."`
	PathLeft int        `json:"path_left,omitempty" doc:"How many links are left out, the shortest."`
}

// A PathLink is one task of the critical path.
type PathLink struct {
	ID        plan.TaskID `json:"id"`
	Name      string      `json:"name"`
	ItemLabel string      `json:"item_label,omitempty" doc:"The label of an item of a foreach task."`
	Row       int         `json:"row" doc:"-1: it was never started, and has no start."`
	State     int         `json:"state"`
	From      float64     `json:"from"`
	To        float64     `json:"to"`
	Wait      float64     `json:"wait" doc:"The wait since the end of the link before it, without breaks."`
	// Left out of a task that did not wait, that had an earlier attempt, or that was to begin later.
	Queue   string `json:"queue,omitempty" doc:"The queue in which it waited."`
	Threads *int   `json:"threads,omitempty" doc:"The present limit of that queue. Left out without a limit."`
}
