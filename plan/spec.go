package plan

import (
	"encoding/json"
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
	Secrets   []string                   // names of params that are never shown, in this plan: see Secrets
	OnFailure OnFailure
	Keep      time.Duration // see Plan.Keep
	Source    string        // absolute path of the file it was read from, if any
	File      File          // the file that it was read from, which the plan keeps
	By        string        // who submits it, if that is known
	Limits    []QueueLimit
	Tasks     []TaskSpec
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
	Queue           string // default: the queue named as the plugin, made unlimited when it is missing
	Plugin          string // default: "exec"
	Params          any    // made into a JSON object; a json.RawMessage is taken as it is
	Needs           []string
	When            When
	Foreach         *Foreach
	Retry           Retry
	Timeout         time.Duration
	OnLost          OnLost
	MaxRescues      int
	ContinueOnError bool
	Estimate        time.Duration
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

func (t *TaskSpec) plugin() string {
	if t.Plugin == "" {
		return DefaultPlugin
	}
	return t.Plugin
}

func (t *TaskSpec) queue() string {
	if t.Queue == "" {
		return t.plugin()
	}
	return t.Queue
}

// A QueueNeed names a queue that a plan's tasks go to, and the plugin that it must have.
type QueueNeed struct {
	Name    string
	Plugin  string
	Make    bool // when it is missing: it is named as its plugin by default, or the plan limits it
	Threads int  // what its limit may be at most, and is if it is made; 0: any, and unlimited
}

// needs returns what says which queue a task goes to.
func (s *Spec) needs() func(*TaskSpec) QueueNeed {
	threads := make(map[string]int, len(s.Limits))
	for _, l := range s.Limits {
		threads[l.Queue] = l.Threads
	}
	return func(t *TaskSpec) QueueNeed {
		n := QueueNeed{Name: t.queue(), Plugin: t.plugin()}
		n.Threads = threads[n.Name]
		n.Make = n.Name == n.Plugin || n.Threads > 0
		return n
	}
}

// Queues returns the queues that the plan's tasks go to, in the order of their first task.
func (s *Spec) Queues() []QueueNeed {
	var needs []QueueNeed
	need, seen := s.needs(), map[QueueNeed]bool{}
	for i := range s.Tasks {
		n := need(&s.Tasks[i])
		if !seen[n] {
			seen[n] = true
			needs = append(needs, n)
		}
	}
	return needs
}
