package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// QueueSort is the order in which a queue's tasks are claimed.
type QueueSort string

const (
	SortDefault QueueSort = ""     // by rank, the longest path to the end first, then oldest first
	SortFIFO    QueueSort = "fifo" // oldest first, as Disbatch has it
	SortLIFO    QueueSort = "lifo" // newest first
)

// CheckQueueName returns why no queue that is made or renamed, or its plugin, can have the name; nil
// if databases can keep it, and ids and paths of URLs cannot be meant by it. The makers of queues
// may have stricter rules. Queues that exist are read by any name: other programs accept any text.
func CheckQueueName(name string) error {
	switch {
	case name == "":
		return errors.New("a name cannot be empty; give one")
	case len(name) > MaxQueueName:
		return fmt.Errorf("a name has at most %d bytes, and this one has %d; choose a shorter one", MaxQueueName, len(name))
	case strings.ContainsRune(name, 0):
		return errors.New("a name cannot have a NUL byte; remove it")
	case name == ".", name == "..":
		return errors.New("a name cannot be . or .., which the path of a URL drops; choose another name")
	case len(name) == 24 && strings.Trim(name, "0123456789abcdef") == "":
		return errors.New("24 hex digits would be taken for an id; choose another name")
	}
	return nil
}

// A Queue is where tasks of one plugin wait, under one limit.
type Queue struct {
	ID        QueueID   `json:"id"`
	Name      string    `json:"name"`
	Plugin    string    `json:"plugin"`
	Threads   int       `json:"threads"`             // how many of its tasks may be claimed or running at once, over all nodes
	Unlimited bool      `json:"unlimited,omitempty"` // then Threads does not count
	Sort      QueueSort `json:"sort,omitempty"`

	Pin         []NodeName `json:"pin,omitempty"`          // the only nodes that serve it; none: see Ignore
	Ignore      []NodeName `json:"ignore,omitempty"`       // nodes that do not; it counts only where Pin is empty
	NodeThreads int        `json:"node_threads,omitempty"` // how many of its tasks one node, over all its instances, may have claimed or running; <= 0: no such limit

	QueueSettings
	Spent time.Time `json:"-"` // how far Rate is used up, as rules.RateRoom reads it; filled by readers only

	Queued int `json:"queued"` // filled by readers only
	Active int `json:"active"` // claimed or running; filled by readers only
}

// QueueSettings are the settings of a queue that no program but Sluice reads. Each store keeps them as
// one JSON document, and the API has them in the same form. A field that is zero says nothing.
type QueueSettings struct {
	OnLost  OnLost   `json:"on_lost,omitempty" enum:"retry,fail" doc:"What happens to its lost tasks without an on_lost of their own; null: retry for tasks of plans, and fail for others."`
	Secrets []string `json:"secrets,omitempty" maxItems:"200" doc:"Names of params that are never shown, in any queue: in upper or lower case, and a * stands for any letters. Only an admin removes a name."`
	Keep    Keep     `json:"keep,omitzero" doc:"How long its finished tasks of no plan stay."`

	Group  string `json:"group,omitempty" doc:"The group that it is in. Left out of an answer: none. A PUT that leaves it out does not change it."`
	Weight int    `json:"weight,omitempty" minimum:"1" maximum:"1000" doc:"Its share of starts beside the other queues of its group. Left out of an answer: 1. A PUT that leaves it out does not change it."`

	Rate     Rate         `json:"rate,omitzero" doc:"How many of its tasks may start, over all nodes; left out: no limit."`
	Defaults TaskDefaults `json:"defaults,omitzero" doc:"What its tasks have that they do not say themselves. It counts for attempts that begin later."`

	Description string   `json:"description,omitempty" maxLength:"2000" doc:"What its tasks expect, for people."`
	ObjectRef   []string `json:"object_ref,omitempty" maxItems:"20" doc:"The fields of the body, of a request of its tasks, whose values name the object that the task is about. An activity of OSTE that is added to the queue has them as its subject."`
}

// TaskDefaults are what the tasks of a queue have that they do not say themselves.
type TaskDefaults struct {
	Params  json.RawMessage `json:"params,omitempty" doc:"An object. Each of its keys is a param of the tasks whose params lack that key. It has no expressions and no secrets: everybody who may read sees it."`
	Retry   RetryText       `json:"retry,omitzero" doc:"Of tasks without a retry."`
	Timeout Duration        `json:"timeout,omitempty" doc:"The limit of one attempt, of tasks without a timeout."`
}

// A RetryText is a Retry as it is written for people and programs.
type RetryText struct {
	Attempts int      `json:"attempts,omitempty" minimum:"1" doc:"In all, the first included, and those lost with their nodes left out. At most 2147483647."`
	Delay    Duration `json:"delay,omitempty" doc:"Before the second attempt; below 0: none."`
	Factor   float64  `json:"factor,omitempty"`
	Max      Duration `json:"max,omitempty" doc:"The longest delay; below 0: none."`
	On       Causes   `json:"on,omitempty" doc:"The only failures after which it is tried again: exit statuses, timeout, signal. Left out: all but not_on."`
	NotOn    Causes   `json:"not_on,omitempty" doc:"Failures after which it is not tried again."`
}

// Retry is what was written.
func (r RetryText) Retry() Retry {
	return Retry{Attempts: r.Attempts, Delay: time.Duration(r.Delay), Factor: r.Factor, Max: time.Duration(r.Max), On: r.On, NotOn: r.NotOn}
}

// Text returns the settings as JSON: "" if they say nothing.
func (s *QueueSettings) Text() string {
	b, err := json.Marshal(s)
	if err != nil || string(b) == "{}" {
		return "" // each field has JSON
	}
	return string(b)
}

// QueueSettingsOf reads what Text wrote. Another program, or a person, may have written it: a field
// that cannot be read says nothing.
func QueueSettingsOf(text string) (s QueueSettings) {
	readFields(text, &s)
	if s.OnLost != OnLostRetry && s.OnLost != OnLostFail {
		s.OnLost = OnLostDefault
	}
	if s.Rate.Check() != nil {
		s.Rate = Rate{}
	}
	if s.Weight != 0 && CheckWeight(s.Weight) != nil {
		s.Weight = 0
	}
	return s
}

// ServedBy reports whether the queue lets the node have its tasks: what DEN 1.1 says of nodes_pin and nodes_ignore.
func (q *Queue) ServedBy(n NodeName) bool {
	if len(q.Pin) > 0 {
		return slices.Contains(q.Pin, n)
	}
	return !slices.Contains(q.Ignore, n)
}

// SameSettings reports whether two queues have the same settings: threads, order, nodes, and what
// QueueSettings has.
func (q *Queue) SameSettings(other *Queue) bool {
	return q.Unlimited == other.Unlimited && (q.Unlimited || q.Threads == other.Threads) && q.Sort == other.Sort &&
		slices.Equal(q.Pin, other.Pin) && slices.Equal(q.Ignore, other.Ignore) && max(0, q.NodeThreads) == max(0, other.NodeThreads) &&
		q.Text() == other.Text()
}

// NodeName is the name of an execution node: a host's name, or HOST.PID for one that a command embeds.
type NodeName string

// A Process names one process so that another one, later under the same number, is not taken for it.
type Process struct {
	PID      int    `json:"pid"`
	Identity string `json:"identity,omitempty"` // pid, start time, boot and host in the system's own terms; empty if they are not known
}

// An Instance is one process that claims tasks, or that runs one which a node claimed.
type Instance struct {
	ID      InstanceID    `json:"id"`
	Node    NodeName      `json:"node"`
	Host    string        `json:"host"`
	Process Process       `json:"process"`
	Lease   time.Duration `json:"lease"` // after that long without a heartbeat it is declared dead
	Threads int           `json:"threads"`
	Plugins []string      `json:"plugins,omitempty"`
	Active  []QueueID     `json:"active,omitempty"`  // the only queues it serves; none: see Ignored
	Ignored []QueueID     `json:"ignored,omitempty"` // queues that it leaves alone; it counts only where Active is empty
	Plan    PlanID        `json:"plan,omitzero"`     // the only plan it claims tasks of
	Version string        `json:"version,omitempty"`
	Sole    bool          `json:"sole,omitempty"`   // no other such instance may have its node's name
	Runner  bool          `json:"runner,omitempty"` // it runs one task that a node of its name claimed, see protocol.Take, and claims none
	Pauses  []Pause       `json:"pauses,omitempty"` // queues with tasks that it could not begin, as its last beat said

	Beats int64         `json:"beats"` // grows with every beat; filled by the store, as is Age
	Age   time.Duration `json:"age"`   // since the last beat by the store's clock; for people, never to decide
}

// A Pause says that an instance could not begin tasks of a queue, and leaves the queue to others.
type Pause struct {
	Queue QueueID `json:"queue"`
	// Each is how long the instance leaves the queue alone before it tries one task of it. It grows
	// with each try that fails. Zero says that the instance takes tasks of the queue as ever.
	Each time.Duration `json:"each,omitempty"`
	// Why says what the instance lacks, for people.
	Why string `json:"why,omitempty"`
	// Tasks are the tasks that the instance could not begin, the first one first.
	Tasks []TaskID `json:"tasks,omitempty"`
}

// Paused returns the instance's pause of a queue, or nil if the instance takes tasks of that queue.
func (i *Instance) Paused(q QueueID) *Pause {
	k := slices.IndexFunc(i.Pauses, func(p Pause) bool { return p.Queue == q && p.Each > 0 })
	if k < 0 {
		return nil
	}
	return &i.Pauses[k]
}

// Serves reports whether the instance claims tasks of the queue. It must not be a runner. It must
// have the plugin, and must have chosen the queue (Disbatch's activequeues and ignorequeues). The
// queue must accept its node. Limits, and the choice of a plan, are other rules.
func (i *Instance) Serves(q *Queue) bool {
	if i.Runner || !slices.Contains(i.Plugins, q.Plugin) || !q.ServedBy(i.Node) {
		return false
	}
	if len(i.Active) > 0 {
		return slices.Contains(i.Active, q.ID)
	}
	return !slices.Contains(i.Ignored, q.ID)
}
