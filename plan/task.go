package plan

import (
	"encoding/json"
	"time"
)

// Limits of what a store keeps of a task, a plan, a queue and a node.
const (
	MaxOutput      = 8 << 20   // bytes of JSON of a task's own output; more and the task fails with ReasonOutput
	MaxOutputDepth = 1000      // arrays and objects within each other in an output; the same. Children that got more could not read it
	MaxCopiedOne   = 64 << 10  // bytes of one parent's output that are copied into a child's params
	MaxCopied      = 512 << 10 // bytes of all outputs that are copied into one child; above either all go by reference
	MaxWhole       = 12 << 20  // bytes of a task's params with all outputs in them, where another program is to run it: see rules.CheckWhole
	MaxCopiedItem  = 1 << 10   // bytes of outputs that are copied into each item of a foreach task, see rules.ItemInputs
	MaxInputs      = 64 << 20  // bytes of all outputs that one task is given; more and it fails with ReasonInput
	MaxFailures    = 1 << 20   // bytes of JSON of the failures that one task is told
	MaxItems       = 100_000   // items of a foreach
	DefaultRescues = 3         // how often a task is queued again after its node died

	// MaxFile is how many bytes the text of a plan file has at most that is kept with its plan.
	MaxFile = 256 << 10

	// MaxPlanParams is the most bytes of a plan's params as JSON. Lists of plans read params by the
	// thousand, every exec task has a copy, and all stores have the same limit.
	MaxPlanParams = 1 << 20

	// MaxDetail is how many bytes of the detail of an attempt are kept. It is for people: what is long belongs into the log.
	MaxDetail = 4 << 10

	// MaxSubject is how many bytes of text say at most what a task is about. Databases index them.
	MaxSubject = 200

	// MaxProgressText is how many bytes of text are kept of how far an attempt is.
	MaxProgressText = 200

	// MaxQueueName is how many bytes the name of a queue, or of its plugin, has at most: databases have to index it, and people to read it.
	// Names of plans and tasks have the same limit. Other programs may have made queues of longer names.
	MaxQueueName = 200

	// MaxThreads is the highest limit that a person gives a queue, where more is what unlimited queues are for, and the most threads of a node.
	MaxThreads = 1_000_000
)

// OnLost says what becomes of a task whose node died while it ran. A task without an OnLost has its
// queue's. rules.Lost is the rule.
type OnLost string

const (
	OnLostDefault OnLost = ""      // of a task: as its queue says; of a queue: retry for a plan's task, fail for one of no plan, as Disbatch has it
	OnLostRetry   OnLost = "retry" // queue it again
	OnLostFail    OnLost = "fail"  // it must not run twice: orphaned
)

// Retry says how often a task that fails is tried again and how long it is held before that.
type Retry struct {
	Attempts int           `json:"attempts,omitempty"` // in all, the first included, without those lost with their nodes; 0 and 1 mean no retry
	Delay    time.Duration `json:"delay,omitempty"`    // before the second attempt; 0 means the default, 1 s; or NoDelay
	Factor   float64       `json:"factor,omitempty"`   // by which each further delay is longer; default 2
	Max      time.Duration `json:"max,omitempty"`      // the longest delay; 0 means the default, 1 minute; or NoDelay
	On       Causes        `json:"on,omitempty"`       // the only failures after which it is tried again; "": see NotOn
	NotOn    Causes        `json:"not_on,omitempty"`   // failures after which it is not
}

// NoDelay lets a task be tried again at once. Nothing negative was ever stored before, and backoff.Retry takes it for no delay.
const NoDelay time.Duration = -1

// Definition is what a person wrote about a task; a store keeps it as it is and changes it only by a retry with a
// new one. The API has it in the same form, but durations are texts there.
type Definition struct {
	Description string `json:"description,omitempty"`
	Subject     string `json:"subject,omitempty" doc:"What it is about, as an order number: one line of at most 200 bytes. For a foreach task it may hold ${{ item }}, which its items have their own value for."`
	When        When   `json:"when,omitempty" doc:"Whether it runs, given how its parents ended; default all_succeeded."`
	// If is a condition that the node decides as an attempt begins, with the task's params at hand. Empty: it runs.
	If      string        `json:"if,omitempty" doc:"A condition that the node decides as an attempt begins, as in needs.check.changed > 0. If it does not hold, the attempt ends as skipped. Each item of a foreach task is asked."`
	SkipOn  Causes        `json:"skip_on,omitempty" doc:"Exit statuses by which a command says that there was nothing to do: the attempt ends as skipped."`
	Foreach *Foreach      `json:"foreach,omitempty" doc:"The source of its items: one of list, value, lines, glob and each. Beside list or value, group says how inputs of workers are grouped."`
	Approve *Approval     `json:"approve,omitempty" doc:"The task runs nothing: it asks a question, and a person's answer ends it."`
	Retry   Retry         `json:"retry,omitzero"`
	Timeout time.Duration `json:"timeout,omitempty"` // of one attempt; 0 is none
	OnLost  OnLost        `json:"on_lost,omitempty"`
	// MaxRescues is DefaultRescues if it is 0.
	MaxRescues      int  `json:"max_rescues,omitempty" minimum:"1" doc:"How often it is queued again after its node died, at most 2147483647; left out: 3."`
	ContinueOnError bool `json:"continue_on_error,omitempty"`
	// Finally says that the task is one of finally. It is held until all tasks of its plan that are none
	// have ended, whatever ends them. Its needs are tasks of finally, and only order them.
	Finally bool   `json:"finally,omitempty" doc:"It is one of finally: it runs when all other tasks of the plan have ended, and its when asks how these ended together."`
	ItemKey string `json:"item_key,omitempty" doc:"Of an item of a foreach task: its key, by the key of the foreach."`
	// MaxFailures is how many items of a foreach task may fail: a number, or a share of the items such as
	// 1%, rounded down. Empty means none, and that other items start after a failure all the same. An item
	// of such a task has it too, with ContinueOnError: its plan allows the failure, and its children see it.
	MaxFailures string        `json:"max_failures,omitempty" doc:"Of a foreach task: how many of its items may fail, as 3 or 1%. An item of such a task has it too, with continue_on_error."`
	Estimate    time.Duration `json:"estimate,omitempty"` // how long it is thought to run
	Rank        int64         `json:"rank,omitempty" doc:"The longest path to the plan's end, in microseconds of estimates; a higher rank is claimed first."`
	Template    bool          `json:"template,omitempty" doc:"The params hold expressions."`
	Secrets     []string      `json:"secrets,omitempty" doc:"Names of params that are never shown, including those of its plan."`
	Schedule    string        `json:"schedule,omitempty" readOnly:"true" doc:"The schedule that started it."`
}

// A Task is one unit of work. Which fields a reader fills is said where it is read.
type Task struct {
	ID    TaskID  `json:"id"`
	Plan  PlanID  `json:"plan,omitzero"` // none: a task of no plan, as Disbatch knows them
	Name  string  `json:"name,omitempty"`
	Queue QueueID `json:"queue"`
	Definition
	Params json.RawMessage `json:"params,omitempty"` // a JSON object; from queued on with needs and args in it, see Deliver
	Needs  []TaskID        `json:"needs,omitempty"`  // its parents, in order
	Of     TaskID          `json:"of,omitzero"`      // the foreach task that it is an item of
	Index  int             `json:"index,omitempty"`  // its place among the items, from 0

	// ItemLabel says what an item of a foreach task is for, in one line, as commands show it behind the
	// name: alice@example.com of copy[17]. It is empty for other tasks. Only package sluice fills it in:
	// Store.Task does, and Store.Tasks with Details or Labels.
	ItemLabel string `json:"item_label,omitempty"`

	Status    Status          `json:"status"`
	Reason    Reason          `json:"reason,omitempty"`
	Detail    string          `json:"detail,omitempty"`  // for people: what went wrong, or Foreach.NoItems
	Exit      *Exit           `json:"exit,omitempty"`    // of the last attempt, if it was a command
	Output    json.RawMessage `json:"output,omitempty"`  // nil: null
	Attempt   int             `json:"attempt,omitempty"` // of the last or present claim; the first is 1
	Rescues   int             `json:"rescues,omitempty"` // claims lost, with their nodes or their outputs
	Expanding bool            `json:"expanding,omitempty"`
	Expanded  bool            `json:"expanded,omitempty"` // a foreach task whose items are all in
	Items     int             `json:"items,omitempty"`    // how many
	Cancel    bool            `json:"cancel,omitempty"`   // a person wants it ended
	Ran       bool            `json:"ran,omitempty"`      // it waits, or was cancelled, after an attempt of it began; a retry keeps this while a clean-up of it is to run
	Node      NodeName        `json:"node,omitempty"`
	Instance  InstanceID      `json:"instance,omitzero"`
	Progress  *Progress       `json:"progress,omitempty"` // of a running task whose attempt has said how far it is

	// Batch is the batch in which the finished task is being handed over to a receiver. Only Reader.Task
	// fills it in, and it is zero for a task that is in none.
	Batch ID `json:"batch,omitzero"`

	NotBefore time.Time `json:"not_before,omitzero"` // held until then
	Created   time.Time `json:"created,omitzero"`
	Modified  time.Time `json:"modified,omitzero"` // of the store's clock, as all of these
	Started   time.Time `json:"started,omitzero"`  // of the last attempt; of a foreach task that no node claims, when its items began to be made
	Ended     time.Time `json:"ended,omitzero"`
}

// Key returns what the task is called among its child's params.needs: its name, or its id if it has none.
func (t *Task) Key() string {
	if t.Name != "" {
		return t.Name
	}
	return t.ID.String()
}

// State returns what programs read: the name of the status, or "skipped" for what was cancelled for
// that reason.
func (t *Task) State() string { return State(t.Status, t.Reason) }

// Exit is how a command ended.
type Exit struct {
	Code   int    `json:"code"`             // -1 if a signal ended it
	Signal string `json:"signal,omitempty"` // as in "SIGKILL"
}

// Stream is where a line of a task's log came from.
type Stream uint8

const (
	Stdout Stream = 1
	Stderr Stream = 2
	System Stream = 3 // Sluice itself
	Runner Stream = 4 // another program's task runner itself, which keeps elsewhere what the task printed
)

// A LogEntry is a piece of what a task printed: usually one line, with its newline if it had one.
type LogEntry struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	Stream  Stream    `json:"stream"`
	Text    string    `json:"text"`
}

// An Input is a parent's contribution to a child's params.
type Input struct {
	Name   string          // the parent's Key
	Output json.RawMessage // nil: null
}

// Value returns the output as JSON.
func (in Input) Value() json.RawMessage {
	if len(in.Output) == 0 {
		return json.RawMessage("null")
	}
	return in.Output
}

// A Parent is how a parent of a task ended.
type Parent struct {
	Name  string // its Key
	State string // as of Task.State; of one that is gone that of a cancelled task
}

// A Failure is how a task failed, as the tasks that handle the failure find it among their params.
type Failure struct {
	Task    string          `json:"task"`           // its name, of an item as in copy[17]
	Item    json.RawMessage `json:"item,omitempty"` // of an item
	Key     string          `json:"key,omitempty"`  // of an item with one: see Definition.ItemKey
	Attempt int             `json:"attempt"`
	Exit    *Exit           `json:"exit,omitempty"` // of the attempt, if it was a command
	Detail  string          `json:"detail,omitempty"`
	Lines   []string        `json:"lines,omitempty"` // the last ones that the attempt printed
}

// A Result is how one attempt went, as its plugin says.
type Result struct {
	Status Status // Succeeded, Failed or above; Terminated if it was stopped; see also Skip
	Reason Reason
	Detail string
	Exit   *Exit
	Output json.RawMessage // nil: null

	// Final says of a failure that another attempt would end no better: none is made, whatever
	// Retry says.
	Final bool
	// Fatal says of a failure that it is one of the whole plan. No other attempt is made, and the plan
	// is closed, as on_failure: stop closes it.
	Fatal bool
	// After is the least delay before the next attempt, if there is one. Retry may give a longer
	// one. More than MaxAfter counts as MaxAfter.
	After time.Duration

	// Lacks says of a failure that the attempt did not begin, because its node lacks something. If
	// that is the node's own fault, the node gives the task back, and the attempt does not count. The
	// zero value says that the attempt began, or that the task would fail on every node.
	Lacks Lack
}

// Skip returns the result of an attempt that found nothing to do. The task ends as skipped, and so its
// children decide by their When as below any skipped task. reason is for people.
func Skip(reason string) Result {
	return Result{Status: Cancelled, Reason: ReasonSkipped, Detail: reason}
}

// IsSkip reports whether a result is one of Skip.
func (r *Result) IsSkip() bool { return r.Status == Cancelled && r.Reason == ReasonSkipped }

// A Lack is the kind of what a node lacks for an attempt.
type Lack string

const (
	LacksNothing Lack = ""
	LacksMeans   Lack = "means" // a file, a folder, a program, a variable or a permission, which other nodes may have
	LacksRoom    Lack = "room"  // open files or processes, which other tasks of the node may use up
)

// MaxAfter is the longest delay that an attempt may ask for before the next one.
const MaxAfter = 24 * time.Hour
