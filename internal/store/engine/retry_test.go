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

// selecting is a unit that keeps tasks in a map, and writes nothing.
type selecting struct {
	tasks   map[string]engine.Retaken[string]
	parents map[string][]string
	below   []string
	halfway int // earlier retries
	asked   []string
	took    []string
}

func (s *selecting) Begin(context.Context, func(*plan.Plan, int) error) error {
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

func (s *selecting) Tasks(_ context.Context, ids []plan.TaskID) (found []engine.Retaken[string], err error) {
	for key, t := range s.tasks {
		if t.Key, t.ID = key, idOf(key); slices.Contains(ids, t.ID) {
			found = append(found, t)
		}
	}
	return found, nil
}

func (s *selecting) Parents(_ context.Context, tasks []string) (map[string][]string, map[string]bool, error) {
	s.asked = append(s.asked, tasks...)
	return s.parents, map[string]bool{"waits": true}, nil
}

func (s *selecting) Below(_ context.Context, _ *engine.Selection[string], check func(string, *plan.Task, bool) error) error {
	for _, key := range s.below {
		if err := check(key, &plan.Task{Name: key, Status: plan.Queued}, false); err != nil {
			return err
		}
	}
	return nil
}

func (s *selecting) Take(_ context.Context, sel *engine.Selection[string], _ func(*plan.Plan, json.RawMessage, time.Time)) error {
	for i := range sel.Tasks {
		t := &sel.Tasks[i]
		as := t.Key
		if t.Remakes {
			as += " remakes"
		}
		if t.Goes {
			as += " goes"
		}
		s.took = append(s.took, as)
	}
	return nil
}

func idOf(key string) (id plan.TaskID) {
	copy(id.ID[:], key)
	return id
}

func TestWhatARetryTakes(t *testing.T) {
	failed := rules.Retaken{Status: plan.Failed}
	made := rules.Retaken{Status: plan.Failed, Foreach: true, Expanded: true, Items: 2}
	making := rules.Retaken{Status: plan.Failed, Foreach: true, Items: 2}
	for _, c := range []struct {
		name    string
		unit    selecting
		chosen  string // with a ! after those whose items are to be made again
		replace []plan.Task
		took    string
		asked   string // of whose parents
		refused string
	}{
		{"the chosen tasks, each once and in their order", selecting{}, "b a b", nil, "[b a]", "[]", ""},
		{"an item with its foreach task", selecting{}, "item made", nil, "[item made]", "[made]", ""},
		{"no item alone", selecting{}, "a item", nil, "", "[]", "without its foreach task"},
		{"items that were not all in go", selecting{}, "making", nil, "[making remakes]", "[]", ""},
		{"so do those that the caller does not want", selecting{}, "item made!", nil, "[item goes made remakes]", "[]", ""},
		{"so do those of a task that is no foreach task any more", selecting{}, "made", []plan.Task{{ID: idOf("made")}}, "[made remakes]", "[]", ""},
		{"so do those whose parent is taken", selecting{parents: map[string][]string{"made": {"x", "a"}}}, "made a", nil, "[made remakes a]", "[made]", ""},
		{"so do those whose parent has not finished", selecting{parents: map[string][]string{"made": {"waits"}}}, "made", nil, "[made remakes]", "[made]", ""},
		{"a task that is no foreach task has no items to make", selecting{}, "a!", nil, "[a]", "[]", ""},
		{"nothing while a task below is queued", selecting{below: []string{"x"}}, "a", nil, "", "[]", `task "x" below is queued`},
		{"a task below that is taken, too", selecting{below: []string{"b"}}, "a b", nil, "[a b]", "[]", ""},
		{"nothing if one of the tasks is not there", selecting{}, "a nobody", nil, "", "[]", "not found"},
		{"the tasks after earlier retries have ended", selecting{halfway: 2}, "a", nil, "[a]", "[]", ""},
		{"nothing, if nothing is chosen", selecting{halfway: 2}, "", nil, "", "[]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := &c.unit
			u.tasks = map[string]engine.Retaken[string]{
				"a": {Retaken: failed}, "b": {Retaken: failed}, "item": {Retaken: failed, Of: "made"}, "made": {Retaken: made}, "making": {Retaken: making},
			}
			var chosen []rules.Retried
			for _, key := range strings.Fields(c.chosen) {
				name, anew := strings.CutSuffix(key, "!")
				chosen = append(chosen, rules.Retried{ID: idOf(name), Status: plan.Failed, Anew: anew})
			}
			err := engine.Retry(t.Context(), chosen, c.replace, func(do func(engine.Retrier[string]) error) error { return do(u) })
			if c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) || c.refused == "" && err != nil {
				t.Errorf("got error %v, want %q", err, c.refused)
			}
			if got := fmt.Sprint(u.took); u.took != nil && got != c.took || u.took == nil && c.took != "" {
				t.Errorf("took %s, want %s", got, c.took)
			}
			if got := fmt.Sprint(u.asked); got != c.asked {
				t.Errorf("asked for the parents of %s, want %s", got, c.asked)
			}
		})
	}
}

func TestARetryEndsIfAnEarlierOneDoesNot(t *testing.T) {
	broken := errors.New("the disk is full")
	err := engine.Retry(t.Context(), make([]rules.Retried, 1), nil, func(func(engine.Retrier[string]) error) error {
		return fmt.Errorf("begin: %w", &engine.Halfway{Finish: func(context.Context) error { return broken }})
	})
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
}
