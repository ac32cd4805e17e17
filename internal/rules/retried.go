package rules

import (
	"encoding/json"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// An Ask says which tasks of a plan, or of none, are to run again, and how. The zero value is every
// task that SelectRetry chooses by itself.
type Ask struct {
	// Tasks are those that a person named, as SelectRetry takes them.
	Tasks []plan.TaskID
	// Downstream takes all tasks below them too, even if they succeeded.
	Downstream bool
	// Lists says what becomes of the lists of foreach tasks whose items are made: see SelectLists and SelectRelisted.
	Lists ListAsk
	// Found has, for ListsCompared, the lists of the foreach tasks whose items a node finds in files
	// (plan.Foreach.OnNode), as the caller has read them now.
	Found map[plan.TaskID][]json.RawMessage
	// Replace has, by id, a new Definition, Params and Queue for some of the tasks that the retry takes.
	Replace []plan.Task
	// Params are those of the plan from now on. If they are nil, the plan keeps its own.
	Params json.RawMessage
	// Choices are, by param, those of the file that Params are from. Only a server asks for them, which has no file but
	// that of the plan. If they are nil, the file of the plan has them.
	Choices map[string]Choices
	// Timeout is that of the plan from now on; 0: as long as it takes. If it is nil, the plan keeps its own.
	Timeout *time.Duration
	// Check changes nothing: it asks only what the retry would take.
	Check bool
}

// Retried is a task that a retry takes back to held, with the state that it was in.
type Retried struct {
	ID     plan.TaskID
	Status plan.Status
	Ran    bool // the task keeps, or gets, its Ran: what it did may still have to be undone
	Anew   bool // a foreach task whose items are made again, even if no parent of it but a head runs again
	Gone   bool // an item that leaves its list: it is skipped
	// Items says of a foreach task whose list was compared how that differs from its items; else nil.
	Items *RelistCounts
}

// AbandonAfter is the time after its last touch when a submission is abandoned.
const AbandonAfter = time.Hour
