package sqlite

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// benchPlan submits a plan of n tasks in layers, each task with some random parents in the layer before.
func benchPlan(b *testing.B, s *Store, n, layer, parents int) (submission time.Duration) {
	b.Helper()
	q, err := s.EnsureQueue(b.Context(), plan.Queue{Name: "noop", Plugin: "noop", Unlimited: true})
	if err != nil {
		b.Fatal(err)
	}
	p, err := s.CreatePlan(b.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	ids := plan.NewIDs(time.Now(), n)
	tasks := make([]plan.Task, n)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range tasks {
		t := &tasks[i]
		t.ID, t.Queue, t.Name, t.Rank = plan.TaskID{ID: ids.Next()}, q.ID, rules.ItemName("task", i), int64(n/layer-i/layer)
		t.Params = json.RawMessage(`{"x":1}`)
		if i < layer || parents == 0 {
			continue
		}
		for _, k := range random.Perm(layer)[:parents] {
			if k += (i/layer - 1) * layer; k < n {
				t.Needs = append(t.Needs, tasks[k].ID)
			}
		}
	}
	start := time.Now()
	for some := range slices.Chunk(tasks, 1000) {
		if err := s.AddTasks(b.Context(), p.ID, some); err != nil {
			b.Fatal(err)
		}
	}
	submission = time.Since(start)
	if err := s.Ready(b.Context(), p.ID); err != nil {
		b.Fatal(err)
	}
	return submission
}

func BenchmarkTurns(b *testing.B) {
	for _, c := range []struct {
		name                  string
		layer, parents, slots int
		output                string
	}{
		{"flat 256", 1000, 0, 256, ""},
		{"flat 64", 1000, 0, 64, ""},
		{"flat 8", 1000, 0, 8, ""},
		{"flat 1", 1000, 0, 1, ""},
		{"layered 256", 1000, 3, 256, `{"answer":42}`},
		{"layered 64", 1000, 3, 64, `{"answer":42}`},
		{"layered 8", 1000, 3, 8, `{"answer":42}`},
		{"narrow 8", 40, 3, 8, `{"answer":42}`},
		{"chain", 1, 1, 8, `{"answer":42}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := openTest(b, Options{})
			defer s.Close()
			submission := benchPlan(b, s, b.N, c.layer, c.parents)
			i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "bench"}
			if err := s.Register(b.Context(), i); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			turn := protocol.Turn{Instance: i.ID, Slots: c.slots, Plugins: []string{"noop"}, Start: true}
			longest := time.Duration(0)
			for done := 0; done < b.N; {
				start := time.Now()
				did, err := s.Turn(b.Context(), turn)
				if err != nil {
					b.Fatal(err)
				}
				longest = max(longest, time.Since(start))
				done += len(turn.Ended)
				turn.Ended = turn.Ended[:0]
				for _, t := range did.Claimed {
					turn.Ended = append(turn.Ended, protocol.Ending{Claim: t.Claim, Status: plan.Succeeded, Output: json.RawMessage(c.output)})
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
			b.ReportMetric(float64(b.N)/submission.Seconds(), "submitted/s")
			b.ReportMetric(longest.Seconds()*1000, "longest-ms")
		})
	}
}
