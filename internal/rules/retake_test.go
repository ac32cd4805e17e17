package rules_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestARetryRemakesItems(t *testing.T) {
	for _, c := range []struct {
		name           string
		retried        rules.Retried
		task           plan.Task
		foreach, waits bool
		want           bool
	}{
		{"items that are all in stay", rules.Retried{}, plan.Task{Expanded: true, Items: 2}, true, false, false},
		{"a parent that runs again makes them anew", rules.Retried{}, plan.Task{Expanded: true, Items: 2}, true, true, true},
		{"so does the person who asks for it", rules.Retried{Anew: true}, plan.Task{Expanded: true, Items: 2}, true, false, true},
		{"items that were not all in are made anew", rules.Retried{}, plan.Task{Expanding: true, Items: 2}, true, false, true},
		{"a task that had none asks again", rules.Retried{}, plan.Task{Expanded: true}, true, false, true},
		{"a task that is no foreach task any more has none", rules.Retried{}, plan.Task{Expanded: true, Items: 2}, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rules.Remakes(&c.retried, &c.task, c.foreach, c.waits); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatARetryMayTake(t *testing.T) {
	there, gone := plan.QueueID{ID: plan.ID{2}}, plan.QueueID{ID: plan.ID{3}}
	for _, c := range []struct {
		name  string
		queue plan.QueueID
		busy  rules.Busy
		with  *plan.Task
		kind  error
		want  string
	}{
		{"a task that failed", there, 0, nil, nil, ""},
		{"a task that another call changes", there, rules.BusyCall, nil, plan.ErrConflict, `another call is about to change it`},
		{"a task that is handed over", there, rules.BusyRoll, nil, plan.ErrConflict, `is being handed over`},
		{"a task without a queue", gone, 0, nil, plan.ErrConflict, `its queue was deleted`},
		{"a task without a queue that gets one", gone, 0, &plan.Task{Queue: there}, nil, ""},
		{"a task that gets a queue that is not there", there, 0, &plan.Task{Name: "a", Queue: gone}, plan.ErrNotFound, `queue ` + gone.String()},
		{"a task that is moved to finally", there, 0, &plan.Task{Name: "a", Queue: there, Definition: plan.Definition{Finally: true}}, plan.ErrConflict, `was moved to finally`},
		{"the call that changes a task comes before its queue", gone, rules.BusyCall, nil, plan.ErrConflict, `about to change it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := rules.CheckRetried(&plan.Task{Name: "a", Status: plan.Failed, Queue: c.queue}, c.busy, c.with, map[plan.QueueID]bool{there: true})
			if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %v with %q", err, c.kind, c.want)
			}
		})
	}
}

func TestAPlanIsReopened(t *testing.T) {
	was, at := filled[plan.Plan](), time.Unix(9, 0)
	for _, state := range []plan.Lifecycle{plan.PlanFailed, plan.PlanRunning} {
		for _, params := range []json.RawMessage{nil, json.RawMessage(`{"new":1}`)} {
			was.State = state
			got, want := was, was
			rules.Reopen(&got, params, nil, at)
			want.State, want.Closing, want.Ending, want.Stopped, want.Ended, want.Edits = plan.PlanRunning, plan.Open, plan.PlanRunning, plan.Open, time.Time{}, was.Edits+1
			want.Deadline = at.Add(was.Timeout)
			if state.Ended() {
				want.Retried = at
			}
			if params != nil {
				want.Params = params
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v, with params %s: got %+v\nwant %+v", state, params, got, want)
			}
		}
	}
}

// filled returns a value of which no field is zero.
func filled[T any]() (v T) {
	fill(reflect.ValueOf(&v).Elem())
	return v
}

func fill(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Unix(1, 0)
		return
	case *json.RawMessage:
		*at = json.RawMessage(`1`)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	default:
		v.SetInt(1)
	}
}

func TestARetryTakesATaskBackToHeld(t *testing.T) {
	with := &plan.Task{Name: "new"}
	for _, was := range []plan.Status{plan.Held, plan.Queued, plan.Succeeded, plan.Failed, 7, plan.Terminated, plan.Cancelled, plan.Orphaned} {
		for attempt := range 3 {
			got := rules.Retake(rules.TakenBack{Status: was, Attempt: attempt, With: with})
			want := rules.Step{Status: plan.Held, Attempted: true, Reset: true, With: with, Noted: attempt > 0}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("from %v after %d attempts: got %+v\nwant %+v", was, attempt, got, want)
			}
		}
	}
}
