package api

import (
	"encoding/json"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// The bodies of answers that the client reads.

// A PlanList is a page of plans.
type PlanList struct {
	Plans []Plan      `json:"plans"`
	Next  plan.PlanID `json:"next,omitzero" doc:"There are more: ask again with it as before."`
}

// A TaskList is a page of tasks.
type TaskList struct {
	Tasks []Task      `json:"tasks"`
	Next  plan.TaskID `json:"next,omitzero" doc:"There are more: ask again with it as after."`
}

// An ApprovalList is all tasks that wait for an answer.
type ApprovalList struct {
	Tasks []Task `json:"tasks"`
}

// A NowAnswer is the time, and who tells it.
type NowAnswer struct {
	Now     time.Time `json:"now" doc:"By the store's clock."`
	Version string    `json:"version" doc:"Of this program."`
}

// A ChangesAnswer is a part of the feed of changes.
type ChangesAnswer struct {
	Changes []Change     `json:"changes"`
	Cursor  store.Cursor `json:"cursor" doc:"The cursor after these tasks."`
}

// A NodesAnswer is the nodes of a store.
type NodesAnswer struct {
	Nodes  []Node                `json:"nodes"`
	Limits map[plan.NodeName]int `json:"limits" doc:"The limits of set-node, by node, also of nodes that are gone."`
}

// A BalanceAnswer is the document by which QueueBalance works.
type BalanceAnswer struct {
	Document json.RawMessage `json:"document" doc:"null: it has none."`
}

// A RetriedAnswer is what a retry takes.
type RetriedAnswer struct {
	Tasks []Retried `json:"tasks" doc:"The tasks that run again."`
}

// A LeftAnswer is how far a deletion came.
type LeftAnswer struct {
	Plans int  `json:"plans" doc:"How many were deleted."`
	More  bool `json:"more" doc:"More has to be deleted: call again."`
}

// A QueuesAnswer is the queues of a store.
type QueuesAnswer struct {
	Queues  []Queue  `json:"queues" doc:"By name."`
	Refused []string `json:"refused,omitempty" doc:"With counts: records of other programs that no node can serve, by name, with the remedy."`
}

// A ScheduleList is a page of schedules.
type ScheduleList struct {
	Schedules []plan.Schedule `json:"schedules" doc:"By name, without the text of their plan files."`
	Next      string          `json:"next,omitempty" doc:"There are more: ask again with it as after."`
}

// An InstantsAnswer is the next instants of a schedule.
type InstantsAnswer struct {
	Instants []Instant `json:"instants" doc:"The earliest first."`
}

// A BackfilledAnswer is how much a backfill starts.
type BackfilledAnswer struct {
	Instants int `json:"instants" doc:"The number of instants of the span that have no occurrence. If the schedule starts plans, it is a limit: instants that have a plan count too."`
}

// A TaskAnswer is one task, with all that is known of it.
type TaskAnswer struct {
	Task
	OutputLeftOut string `json:"output_left_out,omitempty" doc:"Why the output is left out."`
}

// An InputsAnswer is the outputs of a task's parents.
type InputsAnswer struct {
	Inputs []Input `json:"inputs"`
}

// A ParentsAnswer is how a task's parents ended.
type ParentsAnswer struct {
	Parents []Parent `json:"parents"`
}

// A LogAnswer is a part of a task's log.
type LogAnswer struct {
	Entries []LogEntry `json:"entries" doc:"Oldest first."`
	Next    int64      `json:"next" doc:"The cursor after them, also if there are none yet."`
}

// Each returns what of returns for each element of a list. It is never nil, so that JSON has a list
// as well.
func Each[T, U any](list []T, of func(*T) U) []U {
	out := make([]U, len(list))
	for i := range list {
		out[i] = of(&list[i])
	}
	return out
}

// Domain returns what a list on the wire says.
func Domain[D, W any, P interface {
	*W
	Domain() D
}](list []W) []D {
	return Each(list, func(w *W) D { return P(w).Domain() })
}
