package secret

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// CheckSame returns an ErrExists if the stored task under an id differs from the task to add. The
// error names the task and the difference. A retry or a person may have changed the stored task.
// CheckSame does not compare instants, the outputs of parents, and secrets. An answer about a secret
// would tell whether a guess is right. secrets are those of the store; each task adds its own.
func CheckSame(there, again *plan.Task, secrets Names) error {
	a, b := submitted(there, secrets.And(again.Secrets)), submitted(again, secrets.And(there.Secrets))
	var other []string
	for _, c := range []struct {
		what string
		same bool
	}{
		{"plan", a.Plan == b.Plan},
		{"name", a.Name == b.Name},
		{"queue", a.Queue == b.Queue},
		{"needs", slices.Equal(a.Needs, b.Needs)},
		{"params", jsontext.Same(a.Params, b.Params)},
		{"definition", sameDefinition(a.Definition, b.Definition)},
	} {
		if !c.same {
			other = append(other, c.what)
		}
	}
	if len(other) == 0 {
		return nil
	}
	return refusal.New(plan.ErrExists, "task %q (%s) is there already with other %s; add the new one under an id of its own", again.Key(), again.ID,
		strings.Join(other, ", "))
}

// submitted returns what a submitter said of a task, without secrets.
func submitted(t *plan.Task, secrets Names) plan.Task {
	s := plan.Task{Plan: t.Plan, Name: t.Name, Queue: t.Queue, Needs: t.Needs, Definition: t.Definition, Params: bytes.TrimSpace(t.Params)}
	if len(s.Params) == 0 || string(s.Params) == "null" {
		s.Params = json.RawMessage("{}")
	}
	if len(s.Needs) > 0 {
		if own, err := jsontext.Open(s.Params, 1, "needs", "args"); err == nil { // which Deliver puts there
			s.Params = append(bytes.TrimRight(own, ","), '}')
		}
	}
	secrets.HideTask(&s)
	s.Secrets = nil // a store adds those of the plan
	if s.When == "" {
		s.When = plan.AllSucceeded
	}
	return s
}

func sameDefinition(a, b plan.Definition) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && jsontext.Same(x, y)
}
