package plan

import (
	"encoding/json"
	"slices"
	"time"
)

// A Spec says what a plan is to be. A plan file is read into one; a program may build one:
//
//	s := plan.New("nightly")
//	list := s.Add(plan.TaskSpec{Name: "list", Plugin: "exec", Params: map[string]any{"run": "ls"}})
//	s.Add(plan.TaskSpec{Name: "report", Plugin: "report", Needs: []string{list.Name}})
type Spec struct {
	Name      string
	Params    map[string]json.RawMessage // of the whole plan: `${{ params.x }}`, and variables of exec tasks
	Secrets   []string                   // names of params that are never shown, in this plan: see Queue
	OnFailure OnFailure
	Priority  int           // see Plan.Priority
	Overlap   Overlap       // OverlapAllow (default) or OverlapSkip; see Plan.Overlap
	Keep      time.Duration // see Plan.Keep
	Timeout   time.Duration `json:",omitempty"` // see Plan.Timeout
	Source    string        // absolute path of the file it was read from, if any
	File      File          // the file that it was read from, which the plan keeps
	By        string        // who submits it, if that is known
	Limits    []QueueLimit
	Tasks     []TaskSpec

	// Schedule is when the file says that the plan starts by itself; nil: it does not. A submission
	// does not read it.
	Schedule *ScheduleSettings
}

// A QueueLimit says how many tasks of a queue may run at once. All plans share queues, because they
// share the servers behind them. A missing queue is made with the limit. An existing queue must
// have no higher limit, and is not changed.
type QueueLimit struct {
	Queue   string
	Plugin  string // default: that of the tasks that go there
	Threads int    // at least 1
}

// A TaskSpec says what a task is to be.
type TaskSpec struct {
	Name            string // [A-Za-z0-9_][A-Za-z0-9_-]*, once in a plan
	Description     string
	Subject         string `json:",omitempty"` // what it is about, as an order number: one line of at most MaxSubject bytes
	Queue           string // default: the queue named as the plugin, made unlimited when it is missing
	Plugin          string // default: "exec"
	Params          any    // made into a JSON object; a json.RawMessage is taken as it is
	Needs           []string
	When            When
	If              string `json:",omitempty"` // see Definition, as is the next
	SkipOn          Causes `json:",omitempty"`
	Foreach         *Foreach
	Approve         *Approval `json:",omitempty"` // the task runs nothing: a person's answer ends it. Plugin and Queue are ApprovalPlugin
	Retry           Retry
	Timeout         time.Duration
	OnLost          OnLost
	MaxRescues      int
	ContinueOnError bool
	Finally         bool   `json:",omitempty"` // see Definition
	MaxFailures     string `json:",omitempty"` // see Definition
	Estimate        time.Duration
}

// Parents returns the names of the tasks that the task needs: those of Foreach.Each, then Needs.
func (t *TaskSpec) Parents() []string {
	if t.Foreach == nil || len(t.Foreach.Each) == 0 {
		return t.Needs
	}
	return slices.Concat(t.Foreach.Each, t.Needs)
}

// New returns an empty plan to add tasks to.
func New(name string) *Spec { return &Spec{Name: name} }

// Add adds a task and returns it, so that others can need it by its name. The pointer is good until the next Add.
func (s *Spec) Add(t TaskSpec) *TaskSpec {
	s.Tasks = append(s.Tasks, t)
	return &s.Tasks[len(s.Tasks)-1]
}

// DefaultPlugin runs the tasks that name none.
const DefaultPlugin = "exec"
