package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A Result is how one attempt went, as its plugin says.
type Result struct {
	Status Status // Succeeded, Failed or above; Terminated if it was stopped
	Reason Reason
	Detail string
	Exit   *Exit
	Output json.RawMessage // nil: null
}

// Conclude says what follows an attempt: its end, or another attempt after the delay that wait gives for the attempt that just
// failed. A task that a person cancelled is not tried again; a store makes sure of that when it applies the ending. An output that
// is not JSON, or is too large, fails the task for good, and so does all that has ReasonInput or ReasonOutput: it would be no better the
// next time.
func Conclude(t *ClaimedTask, r Result, wait func(r Retry, attempt int) time.Duration) Ending {
	e := Ending{Claim: t.Claim, Status: r.Status, Reason: r.Reason, Detail: r.Detail, Exit: r.Exit, Output: r.Output}
	switch {
	case r.Status == Succeeded && len(r.Output) > MaxOutput:
		e.Status, e.Reason, e.Output = Failed, ReasonOutput, nil
		e.Detail = fmt.Sprintf("its output has more than the %d MiB that are kept: write a file and return its path", MaxOutput>>20)
	case r.Status == Succeeded && len(r.Output) > 0 && !isJSON(r.Output):
		e.Status, e.Reason, e.Output = Failed, ReasonOutput, nil
		e.Detail = fmt.Sprintf("its output is not JSON: %s; write one JSON value, a text in quotes", excerpt(r.Output))
	case r.Status == Succeeded && depth(r.Output) > MaxOutputDepth:
		e.Status, e.Reason, e.Output = Failed, ReasonOutput, nil
		e.Detail = fmt.Sprintf("its output has arrays or objects within each other, more than %d deep: what reads it could not", MaxOutputDepth)
	case r.Reason == ReasonInput, r.Reason == ReasonOutput:
	case r.Status > Succeeded && t.Attempt < t.Retry.Attempts:
		return Ending{Claim: t.Claim, Status: Held, Reason: r.Reason, Detail: r.Detail, Exit: r.Exit, Delay: wait(t.Retry, t.Attempt)}
	}
	if e.Status != Succeeded {
		e.Output = nil
	}
	return e
}

// isJSON reports whether b is one JSON value. That is UTF-8 (RFC 8259, 8.1), which json.Valid does not look at, and which other programs,
// and some stores, insist on.
func isJSON(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

// depth returns how deep arrays and objects lie within each other, or 0 where there are too few for that to matter.
func depth(valid []byte) (deepest int) {
	if bytes.Count(valid, []byte("["))+bytes.Count(valid, []byte("{")) <= MaxOutputDepth {
		return 0
	}
	now, text := 0, false
	for i := 0; i < len(valid); i++ {
		switch c := valid[i]; {
		case c == '"':
			text = !text
		case text && c == '\\':
			i++ // what it escapes
		case text:
		case c == '[', c == '{':
			now++
			deepest = max(deepest, now)
		case c == ']', c == '}':
			now--
		}
	}
	return deepest
}

// mostExcerpt is how many bytes a message shows of a value.
const mostExcerpt = 60

// excerpt shows what may be anything.
func excerpt(b []byte) string {
	if len(b) > mostExcerpt {
		return fmt.Sprintf("%q…", b[:mostExcerpt])
	}
	return fmt.Sprintf("%q", b)
}

// brief shows JSON, as it is written.
func brief(b []byte) string {
	if len(b) > mostExcerpt {
		return strings.ToValidUTF8(string(b[:mostExcerpt]), "") + "…"
	}
	return string(b)
}

// A Loss is what becomes of a claimed or running task whose node is gone.
type Loss struct {
	Status Status // Queued, Orphaned, or Cancelled or Terminated if a person wants it ended
	Reason Reason
	Detail string
}

// Lose says what becomes of a task whose node died. A task that was only claimed had no effect yet, so it is queued again and the
// loss is not counted. Whether one that ran may run again the task says first, then its queue, and else it may if it is of a plan. rescues
// counts earlier losses.
func Lose(s Status, inPlan bool, d *Definition, queue OnLost, rescues int, cancel bool) Loss {
	most := d.MaxRescues
	if most == 0 {
		most = DefaultRescues
	}
	said := cmp.Or(d.OnLost, queue)
	fail := said == OnLostFail || said == OnLostDefault && !inPlan
	switch {
	case cancel && s == Running:
		return Loss{Terminated, ReasonCancelled, "its node died after it was cancelled"}
	case cancel:
		return Loss{Cancelled, ReasonCancelled, ""}
	case s == Claimed:
		return Loss{Status: Queued}
	case fail:
		return Loss{Orphaned, ReasonLost, "its node or task runner died while it ran, and it is not to run twice"}
	case rescues >= most:
		return Loss{Orphaned, ReasonLost, fmt.Sprintf("its node or task runner died while it ran, for the %s time", ordinal(rescues+1))}
	}
	return Loss{Status: Queued}
}

func ordinal(n int) string {
	switch {
	case n%100/10 == 1:
		return fmt.Sprintf("%dth", n)
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// Stopped says how a claim ends that a person cancelled, when its ending would queue it again or hold it.
func Stopped(s Status) (Status, Reason) {
	if s == Running {
		return Terminated, ReasonCancelled
	}
	return Cancelled, ReasonCancelled
}

// NotStarted says how a task ends, cancelled, that its plan had not started when it was closed.
func NotStarted(why Closing) (r Reason, detail string) {
	if why == ClosedByFailure {
		return ReasonSkipped, "the plan was stopped by a failure"
	}
	return ReasonCancelled, ""
}

// Needed refuses to delete a plan while a task of no plan that has not finished needs one of its tasks.
func Needed(title string, by TaskID, s Status) error {
	return fmt.Errorf("plan %s: task %s of no plan, which is %s, needs some of it; wait for that, or cancel it: %w", title, by, s.Word(), ErrPlanActive)
}

// Check refuses an ending whose status is none that a claim can end with.
func (e *Ending) Check() error {
	s := e.Status
	if e.Printed != nil && !s.Finished() {
		return fmt.Errorf("task %s goes on, and has no results yet", e.Task)
	}
	if s == Queued || s == Held || s.Valid() && s.Finished() {
		return nil
	}
	return fmt.Errorf("task %s cannot end as %v", e.Task, e.Status)
}

// Gather says how a foreach task ends whose items have all finished: seen is the set of their outcomes, failed and items how many
// failed and are, stopped whether a person cancelled it, or its plan, meanwhile.
func Gather(seen Outcome, failed, items int, stopped bool) (Status, Reason, string) {
	switch {
	case seen&OutcomeFailed != 0 && stopped:
		return Terminated, ReasonCancelled, fmt.Sprintf("%d of %d items were stopped, or had failed", failed, items)
	case seen&OutcomeFailed != 0:
		return Failed, ReasonItems, fmt.Sprintf("%d of %d items failed", failed, items)
	case seen&OutcomeCancelled != 0 && seen&OutcomeSucceeded != 0 && stopped: // half of its work is done, as of a task that was stopped
		return Terminated, ReasonCancelled, "it was stopped before all of its items had run"
	case seen&OutcomeCancelled != 0:
		return Cancelled, ReasonCancelled, "some of its items were cancelled"
	case seen&OutcomeSkipped != 0:
		return Cancelled, ReasonSkipped, "some of its items were skipped"
	}
	return Succeeded, ReasonNone, ""
}

// FailedByItems reports whether a task with that status and reason is a foreach task that failed because some of its items did. These are
// what there is to tell, list and count of it: who tells failures leaves it out.
func FailedByItems(s Status, r Reason) bool { return s >= Failed && r == ReasonItems }
