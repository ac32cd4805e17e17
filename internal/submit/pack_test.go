package submit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

func job(sum string) *plan.Spec {
	params := json.RawMessage(`{"worker":"w","pack":"sha256:` + sum + `"}`)
	spec := plan.New("job")
	spec.Add(plan.TaskSpec{Name: "map", Plugin: "disco", Params: params})
	spec.Add(plan.TaskSpec{Name: "reduce", Plugin: "disco", Params: params, Needs: []string{"map"}})
	return spec
}

func packOf(text string) *submit.Pack {
	return &submit.Pack{Content: io.NewSectionReader(bytes.NewReader([]byte(text)), 0, int64(len(text))), MaxTasks: 3}
}

func TestNoTaskOfAJobRunsWithoutItsPack(t *testing.T) {
	died := errors.New("died")
	for at := 1; ; at++ {
		t.Run(fmt.Sprint("death at write ", at), func(t *testing.T) {
			s := model.New(model.Options{})
			calls := 0
			mortal := s.Reopen(model.Options{Hook: func(bool) error {
				if calls++; calls >= at {
					return died
				}
				return nil
			}})
			_, _, failed := submit.WithPack(t.Context(), mortal, job("0"), packOf("a pack"), "k")
			all, err := s.Tasks(t.Context(), store.TaskQuery{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range all {
				if _, _, err := s.OpenPack(t.Context(), all[i].Plan); err != nil {
					t.Errorf("task %s is there, and its pack is not: %v", all[i].Name, err)
				}
			}
			p, repeated, err := submit.WithPack(t.Context(), s, job("0"), packOf("a pack"), "k")
			if err != nil {
				t.Fatal(err)
			}
			r, size, err := s.OpenPack(t.Context(), p.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); string(got) != "a pack" || size != 6 || err != nil {
				t.Errorf("the pack is %q, of %d bytes, %v", got, size, err)
			}
			if is, err := s.Plan(t.Context(), p.ID); is.State != plan.PlanRunning || is.Counts.Total() != 2 || err != nil {
				t.Errorf("the plan is %v, %+v, %v; submitted before: %v", is.State, is.Counts, err, repeated)
			}
			queues, err := s.Queues(t.Context())
			if len(queues) != 1 || queues[0].Name != rules.JobQueue(p.ID) || queues[0].Threads != 3 || err != nil {
				t.Errorf("the queues are %+v, %v", queues, err)
			}
			if _, _, err := submit.WithPack(t.Context(), s, job("1"), packOf("another"), "k"); !errors.Is(err, plan.ErrConflict) {
				t.Errorf("another pack with the same key: %v", err)
			}
			if failed == nil {
				at = 1000
			}
		})
		if at >= 1000 {
			return
		}
	}
}
