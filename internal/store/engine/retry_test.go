package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// selecting is a unit that has some tasks, and writes nothing.
type selecting struct {
	tasks   []plan.Task
	busy    string
	below   []string
	halfway int // earlier retries
	took    []string
}

func (s *selecting) Begin(context.Context, engine.RetryCheck) error {
	if s.halfway == 0 {
		return nil
	}
	return &engine.Halfway{Finish: func(context.Context) error {
		s.halfway--
		return nil
	}}
}

func (s *selecting) Queues(context.Context) (map[plan.QueueID]bool, error) {
	return map[plan.QueueID]bool{{}: true}, nil
}

func (s *selecting) Skeleton(context.Context, []plan.TaskID) ([]plan.Task, map[plan.TaskID]rules.Busy, error) {
	return s.tasks, map[plan.TaskID]rules.Busy{idOf(s.busy): rules.BusyCall}, nil
}

func (s *selecting) Items(context.Context, *plan.Task) ([]json.RawMessage, []plan.Input, error) {
	return nil, nil, nil
}

func (s *selecting) Add(context.Context, *plan.Task, *plan.Task, []json.RawMessage, rules.Step) error {
	return nil
}

func (s *selecting) Below(_ context.Context, _ *engine.Selection, check engine.BelowCheck) error {
	for _, key := range s.below {
		if err := check(&plan.Task{ID: idOf(key), Name: key, Status: plan.Queued}, false); err != nil {
			return err
		}
	}
	return nil
}

func (s *selecting) Take(_ context.Context, sel *engine.Selection, _ func(*plan.Plan, json.RawMessage, time.Time)) error {
	for i := range sel.Tasks {
		t := &sel.Tasks[i]
		as := t.Name
		if t.With != nil {
			as += " is replaced"
		}
		if t.Remakes {
			as += " remakes"
		}
		if t.Goes {
			as += " goes"
		}
		s.took = append(s.took, as)
	}
	slices.Sort(s.took)
	return nil
}

func idOf(key string) (id plan.TaskID) {
	copy(id.ID[:], key)
	return id
}

func TestWhatARetryTakes(t *testing.T) {
	foreach := plan.Definition{Foreach: &plan.Foreach{Value: "needs.a"}}
	with := func(keys ...string) (replace []plan.Task) {
		for _, key := range keys {
			replace = append(replace, plan.Task{ID: idOf(key), Name: key})
		}
		return replace
	}
	for _, c := range []struct {
		name    string
		unit    selecting
		named   string
		down    bool
		replace []plan.Task
		took    string
		refused string
	}{
		{"the named tasks, each once", selecting{}, "b a b", false, nil, "[a b]", ""},
		{"an item with its foreach task", selecting{}, "item", false, nil, "[item made]", ""},
		{"items that were not all in go", selecting{}, "making", false, nil, "[making remakes]", ""},
		{"so do those of a task that is no foreach task any more", selecting{}, "made", false, with("made"), "[item goes made is replaced remakes]", ""},
		{"so do those whose parent is taken", selecting{}, "a made", true, nil, "[a item goes made remakes making remakes]", ""},
		{"so do those whose parent has not finished", selecting{}, "late", false, nil, "[late remakes]", ""},
		{"a task that is no foreach task has no items to make", selecting{}, "b", true, nil, "[b]", ""},
		{"nothing while a task below is queued", selecting{below: []string{"x"}}, "b", false, nil, "", `task "x" below is queued`},
		{"a task below that is taken, too", selecting{below: []string{"b"}}, "b", false, nil, "[b]", ""},
		{"nothing if one of the tasks is not there", selecting{}, "a nobody", false, nil, "", "not found"},
		{"nothing while another call changes a task", selecting{busy: "b"}, "a b", false, nil, "", "another call is about to change it"},
		{"nothing if a task that is replaced does not run again", selecting{}, "a", false, with("a", "b"), "", `task "b" has a new definition, and does not run again`},
		{"the tasks after earlier retries have ended", selecting{halfway: 2}, "b", false, nil, "[b]", ""},
		{"nothing of no plan, if no task is named", selecting{halfway: 2}, "", false, nil, "", "no task is named"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := &c.unit
			u.tasks = []plan.Task{
				{Name: "a", Status: plan.Failed}, {Name: "b", Status: plan.Failed}, {Name: "open", Status: plan.Held},
				{Name: "made", Status: plan.Failed, Definition: foreach, Expanded: true, Items: 1, Needs: []plan.TaskID{idOf("a")}},
				{Name: "item", Status: plan.Failed, Of: idOf("made")},
				{Name: "making", Status: plan.Failed, Definition: foreach, Items: 2, Needs: []plan.TaskID{idOf("a")}},
				{Name: "late", Status: plan.Failed, Definition: foreach, Expanded: true, Items: 1, Needs: []plan.TaskID{idOf("open")}},
			}
			for i := range u.tasks {
				u.tasks[i].ID = idOf(u.tasks[i].Name)
			}
			ask := rules.Ask{Downstream: c.down, Replace: c.replace}
			for _, key := range strings.Fields(c.named) {
				ask.Tasks = append(ask.Tasks, idOf(key))
			}
			taken, err := engine.Retry(t.Context(), plan.PlanID{}, &ask, func(do func(engine.Retrier) error) error { return do(u) })
			if c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) || c.refused == "" && err != nil {
				t.Errorf("got error %v, want %q", err, c.refused)
			}
			if got := fmt.Sprint(u.took); u.took != nil && got != c.took || u.took == nil && c.took != "" {
				t.Errorf("took %s, want %s", got, c.took)
			}
			if err == nil && len(taken) != len(u.took) {
				t.Errorf("%d tasks are told, and %v taken", len(taken), u.took)
			}
		})
	}
}

func TestARetryEndsIfAnEarlierOneDoesNot(t *testing.T) {
	broken := errors.New("the disk is full")
	ask := rules.Ask{Tasks: make([]plan.TaskID, 1)}
	_, err := engine.Retry(t.Context(), plan.PlanID{}, &ask, func(func(engine.Retrier) error) error {
		return fmt.Errorf("begin: %w", &engine.Halfway{Finish: func(context.Context) error { return broken }})
	})
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
}
