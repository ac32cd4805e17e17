package rules

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// KeepFile returns the File of a text, or the zero File if the text is too large, or no UTF-8.
func KeepFile(text []byte, dir string) plan.File {
	if len(text) > plan.MaxFile || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return plan.File{}
	}
	return plan.File{Text: string(text), Dir: dir}
}

// CheckFile returns an ErrTooLarge for a file that KeepFile would not have returned.
func CheckFile(f plan.File) error {
	switch {
	case len(f.Text) > plan.MaxFile:
		return refusal.New(plan.ErrTooLarge, "the file of the plan has %d bytes; at most %d (256 KiB) are kept with a plan: leave it out", len(f.Text), plan.MaxFile)
	case !utf8.ValidString(f.Text) || strings.IndexByte(f.Text, 0) >= 0:
		return refusal.New(plan.ErrTooLarge, "the file of the plan is not UTF-8, or has a NUL: leave it out")
	}
	return nil
}

// CheckReady returns ErrConflict for a plan that must not become ready with so many tasks, because
// it is submitted with another number. Otherwise a submission that stopped half-way would run, and
// end, as if it were complete.
func CheckReady(p *plan.Plan, tasks int) error {
	switch {
	case p.Size == 0 || tasks == p.Size:
		return nil
	case tasks < p.Size:
		return refusal.New(plan.ErrConflict, "%s has %d of its %d tasks: its submission has not ended, or ended half-way", p.Title(), tasks, p.Size)
	}
	return refusal.New(plan.ErrConflict, "%s has %d tasks, and was submitted with %d: others were added before it was ready; submit it anew", p.Title(), tasks, p.Size)
}

// CheckRetry returns ErrPlanNotReady for a plan of which no task ever ran. The plan is being
// submitted, or was cancelled while only so many of its tasks were in, or was abandoned. Sweeps
// delete the tasks of an abandoned plan. It returns ErrConflict while tasks of finally run, because each
// retry asks all of them again.
func CheckRetry(p *plan.Plan, tasks int) error {
	switch {
	case p.State == plan.PlanSubmitting:
		return fmt.Errorf("%s: %w", p.Title(), plan.ErrPlanNotReady)
	case p.State == plan.PlanAbandoned:
		return refusal.New(plan.ErrPlanNotReady, "the submission of %s was abandoned, and nothing of it ever ran; submit it again", p.Title())
	case tasks < p.Size:
		return refusal.New(plan.ErrPlanNotReady, "%s has %d of its %d tasks: its submission ended half-way, and nothing of it ever ran", p.Title(), tasks, p.Size)
	case p.InFinally():
		return refusal.New(plan.ErrConflict, "%s runs its tasks of finally: wait until they have ended, or stop them: sluice plan cancel %s", p.Title(), p.Title())
	}
	return nil
}
