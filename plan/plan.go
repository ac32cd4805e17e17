package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Lifecycle is where a plan is in its life. The codes are those of Status where they mean the same.
type Lifecycle int32

const (
	PlanAbandoned  Lifecycle = -6 // its submission died half-way; nothing of it ever ran
	PlanCancelled  Lifecycle = -5 // by a person
	PlanSubmitting Lifecycle = -4
	PlanRunning    Lifecycle = 0 // ready; its tasks are held, queued or run
	PlanSucceeded  Lifecycle = 1
	PlanFailed     Lifecycle = 2

	PlanUnknown Lifecycle = math.MinInt32 // as Unknown
)

var planWords = map[Lifecycle]string{
	PlanAbandoned: "abandoned", PlanCancelled: "cancelled", PlanSubmitting: "submitting", PlanRunning: "running",
	PlanSucceeded: "succeeded", PlanFailed: "failed", PlanUnknown: unknown,
}

// String returns the word for a plan's state.
func (l Lifecycle) String() string {
	if w, ok := planWords[l]; ok {
		return w
	}
	return fmt.Sprint(int32(l))
}

// Ended reports whether nothing more happens to the plan unless a person retries it.
func (l Lifecycle) Ended() bool { return l != PlanSubmitting && l != PlanRunning }

// OnFailure says what a failed task means for the rest of its plan.
type OnFailure string

const (
	Continue OnFailure = "continue" // the default: other branches run on
	Stop     OnFailure = "stop"     // nothing more is started; what runs ends
)

// A Closing says why a plan that still runs starts nothing more.
type Closing string

const (
	Open            Closing = ""
	ClosedByPerson  Closing = "cancelled" // remaining tasks are cancelled, running ones are stopped
	ClosedByTimeout Closing = "timeout"   // the same, since the plan ran longer than its Timeout; it has failed
	ClosedByFailure Closing = "failed"    // remaining tasks are skipped, running ones end by themselves
)

// Stops reports whether a plan that is closed so has its running tasks stopped.
func (c Closing) Stops() bool { return c == ClosedByPerson || c == ClosedByTimeout }

// A Plan is a named graph of tasks, as a store keeps it.
type Plan struct {
	ID      PlanID    `json:"id"`
	Name    string    `json:"name"`
	Run     int       `json:"run"` // 1 for the first plan of that name in the store
	State   Lifecycle `json:"status"`
	Closing Closing   `json:"closing,omitempty"`
	// Finally says that the plan was submitted with tasks of finally, see Definition.
	Finally bool `json:"finally,omitempty"`
	// Ending is how the other tasks of a plan with tasks of finally ended: PlanSucceeded, PlanFailed or
	// PlanCancelled. It is zero (PlanRunning) as long as they have not.
	Ending Lifecycle `json:"ending,omitzero"`
	// Stopped is the Closing that the plan had at its Ending, since Closing is then that of the tasks of
	// finally. It is Open if nothing stopped the other tasks.
	Stopped   Closing         `json:"stopped,omitempty"`
	OnFailure OnFailure       `json:"on_failure,omitempty"`
	Priority  int             `json:"priority,omitempty"` // of its turns in queues that it shares with other plans, up to MaxPriority; 0: DefaultPriority
	Overlap   Overlap         `json:"overlap,omitempty"`  // OverlapSkip: it starts only if no other run of its name has not ended; else OverlapAllow
	Params    json.RawMessage `json:"params,omitempty"`
	Secrets   []string        `json:"secrets,omitempty"`      // names of params that are never shown, which do not change: see Queue
	By        string          `json:"submitted_by,omitempty"` // the account or token that submitted it over HTTP; "": nobody asked who it was
	Source    string          `json:"source,omitempty"`       // the absolute path of the file that it came from
	Key       string          `json:"-"`                      // of the request that submits it, which may come twice; no two plans have the same. Readers do not fill it
	Request   string          `json:"-"`                      // a digest of that request; "": nobody kept it. It is shown to nobody
	File      File            `json:"-"`                      // the file that it came from, as CreatePlan keeps it. Readers do not fill it: a store's PlanFile returns it
	Own       bool            `json:"own,omitempty"`          // a node of its own runs it; other nodes may help
	Keep      time.Duration   `json:"keep,omitempty"`         // after its end; 0: as long as the store's default says; < 0: for ever
	Timeout   time.Duration   `json:"timeout,omitempty"`      // how long it may run, from its begin or its last retry on; 0: as long as it takes
	Deadline  time.Time       `json:"deadline,omitzero"`      // when that is over; zero: no Timeout, or it has not begun
	Size      int             `json:"size,omitempty"`         // how many tasks it is submitted with; 0: that is not known before it is ready
	Edits     int             `json:"edits,omitempty"`        // tasks added after it was ready, and retries
	Created   time.Time       `json:"created,omitzero"`
	Modified  time.Time       `json:"modified,omitzero"`
	Retried   time.Time       `json:"retried,omitzero"` // when a retry last let it run again after it had ended
	Ended     time.Time       `json:"ended,omitzero"`
	Counts    Counts          `json:"counts,omitzero"` // filled by readers that say so
}

// The priorities of plans.
const (
	DefaultPriority = 10
	MaxPriority     = 100
)

// CheckPriority refuses a priority that no plan can have.
func CheckPriority(priority int) error {
	if priority >= 1 && priority <= MaxPriority {
		return nil
	}
	return fmt.Errorf("priority is %d; it is 1 to %d, and %d is usual", priority, MaxPriority, DefaultPriority)
}

// Weight returns how many turns the plan takes in a queue that it shares, against the weights of the other plans.
func (p *Plan) Weight() int { return cmp.Or(p.Priority, DefaultPriority) }

// InFinally reports whether the tasks of finally of the plan run, since all others have ended.
func (p *Plan) InFinally() bool { return p.Ending != PlanRunning && !p.State.Ended() }

// StoppedBy returns why the plan started nothing more of its tasks, or of its tasks of finally. If both were
// stopped, the reason is that of the first ones. It returns Open if nothing stopped the plan.
func (p *Plan) StoppedBy() Closing { return cmp.Or(p.Stopped, p.Closing) }

// Title returns the plan's name with its run, as in "nightly#3".
func (p *Plan) Title() string { return fmt.Sprintf("%s#%d", p.Name, p.Run) }

// A File is the text of a plan file and the folder that its relative paths start from. The zero File
// is that of a plan whose file was not kept: a program built the plan, or the text was too large.
type File struct {
	Text string `json:"text"`
	Dir  string `json:"dir,omitempty"`
}
