package rules

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// waitsForever is how long a task without a timeout waits for an answer.
const waitsForever = 100 * 365 * 24 * time.Hour

// MaxNote is how many bytes the note of an answer has at most.
const MaxNote = 1000

// AskApproval returns the ending of the attempt of a task with Approve. The first attempt asks the
// question: the task is held until the answer, or until its timeout is over. The next one finds that no
// answer came in time. An attempt that was lost with its node counts for neither.
func AskApproval(t *protocol.ClaimedTask) protocol.Ending {
	if Asked(t) {
		return protocol.Ending{Claim: t.Claim, Status: plan.Failed, Reason: plan.ReasonTimeout, Detail: fmt.Sprintf("nobody answered within %v", t.Timeout)}
	}
	wait := t.Timeout
	if wait <= 0 {
		wait = waitsForever
	}
	return protocol.Ending{Claim: t.Claim, Status: plan.Held, Reason: plan.ReasonApproval, Detail: t.Approve.Question, Delay: wait}
}

// Asked reports whether a task with Approve asked in an attempt before.
func Asked(t *protocol.ClaimedTask) bool { return Tried(t.Attempt, t.Rescues) > 1 }

// CheckQuestion returns why a text is no question of an approval.
func CheckQuestion(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New(`approve has no question; write what a person is to decide, as in approve: "Switch the mailboxes?"`)
	case strings.ContainsAny(text, "\n\r"):
		return errors.New("approve has several lines; a question is one line")
	case len(text) > plan.MaxSubject:
		return fmt.Errorf("approve has %d bytes; a question has at most %d", len(text), plan.MaxSubject)
	}
	return nil
}

// An Answer is what a person says to a task that waits for an approval.
type Answer struct {
	Approve bool
	By      string // who answers; "" where nobody knows
	Note    string // for people
	At      time.Time
	// Asked is the Started of the task as the person saw it: an answer to an earlier question ends nothing.
	Asked time.Time
}

// CheckAnswer refuses an answer to a task that does not wait for it: ErrConflict. Instants are compared
// to the millisecond, as every store keeps them.
func CheckAnswer(t *plan.Task, a *Answer) error {
	switch {
	case t.Status.Finished():
		return refusal.New(plan.ErrConflict, "task %q is %s already: there is nothing to answer", t.Key(), states.OfTask(t))
	case !t.AwaitsAnswer():
		return refusal.New(plan.ErrConflict, "task %q does not wait for an approval: it is %s", t.Key(), states.OfTask(t))
	case AnswerOver(t, a.At):
		return refusal.New(plan.ErrConflict, "task %q was to be answered until %s: that is over", t.Key(), t.NotBefore.UTC().Format(time.RFC3339))
	case a.Asked.UnixMilli() != t.Started.UnixMilli():
		return refusal.New(plan.ErrConflict, "task %q was asked again since: look at it, and answer again", t.Key())
	}
	return nil
}

// AnswerOver reports whether the time to answer a task that asked is over. The next node fails the task.
func AnswerOver(t *plan.Task, now time.Time) bool {
	return t.AwaitsAnswer() && !t.NotBefore.IsZero() && now.After(t.NotBefore)
}

// CheckApprover refuses an answer by somebody who may not give it, and a note that is too long. p is the
// plan of the task.
func CheckApprover(t *plan.Task, p *plan.Plan, a *Answer) error {
	switch {
	case len(a.Note) > MaxNote:
		return fmt.Errorf("the note has %d bytes; a note has at most %d", len(a.Note), MaxNote)
	case t.Approve != nil && t.Approve.NotSubmitter && a.By == "":
		return refusal.New(plan.ErrConflict, "task %q is for somebody else than who submitted the plan, and nobody knows who you are", t.Key())
	case t.Approve != nil && t.Approve.NotSubmitter && a.By == p.By:
		return refusal.New(plan.ErrConflict, "task %q is for somebody else than who submitted the plan: that was %s", t.Key(), p.By)
	}
	return nil
}

// Answered ends a task as the answer says. Its output is {"by": …, "at": …, "note": …}.
func Answered(was plan.Status, a *Answer) Step {
	s := Step{Status: plan.Succeeded, Detail: answered("approved", a)}
	if !a.Approve {
		return to(was, Step{Status: plan.Failed, Reason: plan.ReasonRejected, Detail: answered("rejected", a)})
	}
	s.Output, _ = jsontext.Marshal(struct { // texts and an instant are JSON
		By   string    `json:"by"`
		At   time.Time `json:"at"`
		Note string    `json:"note"`
	}{a.By, a.At.UTC().Truncate(time.Millisecond), a.Note})
	return to(was, s)
}

func answered(how string, a *Answer) string {
	if a.By != "" {
		how += " by " + a.By
	}
	if note := strings.TrimSpace(a.Note); note != "" {
		how += ": " + note
	}
	return how
}
