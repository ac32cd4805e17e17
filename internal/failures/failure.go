// Package failures sorts failed tasks by how they failed.
package failures

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Detail is the detail of a failed command: its last words, and in brackets how it ended.
func Detail(said, how string) string { return said + " (" + how + ")" }

// A Way is how tasks failed: the description of a failure, without the parts that
// differ from task to task.
type Way struct {
	State   string
	Reason  plan.Reason
	Allowed bool   // the plan allows it
	Text    string // in words, in one line; numbers in it are #, and what is quoted is …
}

// Of returns the way in which a task failed. It is the task's detail without numbers, ids
// and quoted text, or else its exit status or its reason. The end of a command in the detail's
// brackets does not make another way.
func Of(t *plan.Task) Way {
	f, _ := of(t)
	return f
}

// of returns also the text of the way with all of its numbers, ids and quoted text.
func of(t *plan.Task) (f Way, whole string) {
	f = Way{State: t.State(), Reason: t.Reason, Allowed: t.Allowed()}
	detail, _, _ := strings.Cut(strings.TrimSpace(t.Detail), "\n")
	if len(detail) > mostCompared {
		detail = strings.ToValidUTF8(detail[:mostCompared], "")
	}
	said := beside.ReplaceAllString(detail, "")
	switch how := ended(t); {
	case said != "" && !strings.HasPrefix(said, "exit status ") && !strings.HasPrefix(said, "ended by SIG"):
		f.Text, whole = Unnumbered(said), said
	default:
		f.Text = cmp.Or(said, how)
		whole = f.Text
	}
	return f, whole
}

// mostCompared is how many bytes of a detail make a way of failing.
const mostCompared = 2000

// ended says how a task failed that has no detail.
func ended(t *plan.Task) string {
	words := map[plan.Reason]string{
		plan.ReasonTimeout: "ran longer than it may", plan.ReasonLost: "was lost", plan.ReasonInput: "what it should be given could not be made",
		plan.ReasonOutput: "its output cannot be kept", plan.ReasonItems: "some of its items failed", plan.ReasonError: "its plugin could not run it",
		plan.ReasonFatal: "failed, and its plan with it",
	}
	switch {
	case words[t.Reason] != "":
		return words[t.Reason]
	case t.Exit != nil && t.Exit.Signal != "":
		return "ended by " + t.Exit.Signal
	case t.Exit != nil && t.Exit.Code != 0:
		return fmt.Sprintf("exit status %d", t.Exit.Code)
	}
	return cmp.Or(string(t.Reason), states.OfTask(t))
}

var (
	// beside is the end of a command in brackets, as Detail writes it.
	beside = regexp.MustCompile(` \((?:exit status [0-9]+|ended by SIG[A-Z0-9]+)\)$`)

	// differs is what differs in texts that say the same: what is quoted, ids, addresses and other numbers.
	differs = regexp.MustCompile(`"[^"\n]*"|‘[^’\n]*’|\B'[^'\n]*'\B|\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b|\b[0-9a-f]{7,64}\b|[0-9]+(?:[.,:][0-9]+)*`)
)

// Unnumbered returns a text without what differs in texts that say the same: each number or id is #, and what is quoted is ….
func Unnumbered(text string) string {
	return differs.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case s[0] == '"':
			return `"…"`
		case s[0] == '\'':
			return "'…'"
		case strings.HasPrefix(s, "‘"):
			return "‘…’"
		case !strings.ContainsAny(s, "0123456789"):
			return s // a word of the letters a to f
		}
		return "#"
	})
}

// Key names the way in addresses.
func (f Way) Key() string {
	parts := []string{f.State, string(f.Reason), f.Text}
	if f.Allowed {
		parts = append(parts, "allowed")
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Ways counts tasks by how they failed. Its zero value has none.
type Ways struct {
	Failed  int      // how many tasks make the plan fail
	Allowed int      // and how many failed as the plan allows; foreach tasks that have items are none of both
	Kinds   []*Alike // in the order in which they were first seen, until Sort
	Tasks   int      // how many tasks of each kind are kept
	known   map[Way]*Alike
}

// Alike are tasks that failed in one way.
type Alike struct {
	Way
	Count int
	First []plan.Task // the first of them, as many as Tasks says
	whole string      // what the text of each of them is, with its numbers; "": they differ
}

// Told describes how the tasks failed, in one line. Numbers, ids and quoted text are left out only if
// the tasks differ by them.
func (a *Alike) Told() string { return cmp.Or(a.whole, a.Text) }

// Read counts the tasks of a plan, keeps so many of each kind, and sorts the kinds. It reads all tasks of
// the plan that failed.
func Read(ctx context.Context, r store.TaskReader, p plan.PlanID, keep int) (*Ways, error) {
	f := &Ways{Tasks: keep}
	err := store.EachTask(ctx, r, store.TaskQuery{Plan: p, Statuses: []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned}}, func(t *plan.Task) error {
		f.Add(t)
		return nil
	})
	f.Sort()
	return f, err
}

// Add counts a task, if it failed and is no foreach task that has items.
func (f *Ways) Add(t *plan.Task) {
	if !t.Status.Wrong() || t.Gathers() {
		return
	}
	way, whole := of(t)
	a := f.known[way]
	if a == nil {
		if f.known == nil {
			f.known = map[Way]*Alike{}
		}
		a = &Alike{Way: way, whole: whole}
		f.known[way], f.Kinds = a, append(f.Kinds, a)
	}
	if a.whole != whole {
		a.whole = ""
	}
	if a.Count++; a.Count <= max(f.Tasks, 1) {
		a.First = append(a.First, *t)
	}
	if way.Allowed {
		f.Allowed++
	} else {
		f.Failed++
	}
}

// Sort puts the ways by which most tasks failed first, and those that the plan allows last.
func (f *Ways) Sort() {
	slices.SortStableFunc(f.Kinds, func(x, y *Alike) int {
		switch {
		case x.Allowed == y.Allowed:
			return y.Count - x.Count
		case x.Allowed:
			return 1
		}
		return -1
	})
}
