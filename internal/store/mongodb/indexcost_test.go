package mongodb

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// BenchmarkIndexCost measures what each index on tasks adds to the writes that claim and finish a task, and prints it:
//
//	go test ./internal/store/mongodb -run '^$' -bench IndexCost -benchtime 5x
//
// Two collections have the same tasks, one without the index. Each command goes to both in turn, so
// that other load of the machine affects both. The result is the median of the differences.
func BenchmarkIndexCost(b *testing.B) {
	uri, db := fresh(b)
	s, no := openAt(b, uri), noError(b)
	ctx := b.Context()
	const tasks = 960 // which one call queues
	q, err := s.EnsureQueue(ctx, plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
	no(err)
	p, err := s.CreatePlan(ctx, plan.Plan{Name: "p"})
	no(err)
	all := make([]plan.Task, tasks)
	for i := range all {
		all[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i), Queue: q.ID}
	}
	no(s.AddTasks(ctx, p.ID, all))
	no(s.Ready(ctx, p.ID))
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(ctx, plan.Instance{ID: id, Node: "n1", Plugins: []string{"x"}}))
	r, _, err := s.begin(ctx, id, 0, false, nil)
	no(err)
	defer r.end()
	raw, err := wire.Find[bson.Raw](ctx, s.tasks, d(), wire.Query{})
	no(err)
	docs, err := wire.Find[taskDoc](ctx, s.tasks, d("status", plan.Queued), wire.Query{})
	no(err)
	if len(docs) != tasks {
		b.Fatalf("%d tasks are queued, want %d", len(docs), tasks)
	}
	c := claimer{round: r, turn: &protocol.Turn{Start: true}, shares: &protocol.Shares{}, token: bson.NewObjectID()}
	claims := c.changes(&queueDoc{ID: oid(q.ID.ID)}, docs, slots{})
	ends := make([]wire.Change, tasks)
	for i := range docs {
		t := &docs[i]
		t.Attempt, t.Token = 1, c.token
		ends[i] = r.change(&ending{Attempt: engine.Attempt[*ending]{Step: rules.Step{Status: plan.Succeeded}}, task: t})
	}

	// cost returns how many microseconds a task more each command took on the first collection than on the second.
	cost := func(first, second *mongo.Collection, changes []wire.Change) (more, took []float64) {
		for i, some := range slices.Collect(slices.Chunk(changes, 64)) {
			var each [2]float64
			for k := range 2 {
				k ^= i & 1
				start := time.Now()
				n, err := s.Bulk(ctx, []*mongo.Collection{first, second}[k], some)
				no(err)
				if n != len(some) {
					b.Fatalf("%d tasks were changed, want %d", n, len(some))
				}
				each[k] = time.Since(start).Seconds() * 1e6 / float64(n)
			}
			more, took = append(more, each[0]-each[1]), append(took, each[0])
		}
		return more, took
	}
	with := func(name string, want []indexDoc) *mongo.Collection {
		c := db.Collection(name)
		no(c.Drop(ctx))
		no((&collectionIndexes{Collection: c}).create(ctx, want...))
		_, err = c.InsertMany(ctx, raw)
		no(err)
		return c
	}
	indexes, err := s.indexes()
	no(err)
	models := indexes[0].want
	claimCosts, endCosts := make([][]float64, len(models)+1), make([][]float64, len(models)+1)
	var claimTook, endTook []float64
	for b.Loop() {
		for k := range claimCosts { // the last stands for all of them
			var others []indexDoc
			if k < len(models) {
				others = append(slices.Clone(models[:k]), models[k+1:]...)
			}
			first, second := with("first", models), with("second", others)
			more, took := cost(first, second, claims)
			claimCosts[k], claimTook = append(claimCosts[k], more...), append(claimTook, took...)
			more, took = cost(first, second, ends)
			endCosts[k], endTook = append(endCosts[k], more...), append(endTook, took...)
		}
	}
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	fmt.Printf("\n%-36s %8.1f µs a claim %8.1f µs an ending\n", "with all indexes", median(claimTook), median(endTook))
	for k := range claimCosts {
		name := "all together"
		if k < len(models) {
			name = models[k].Name
		}
		fmt.Printf("%-36s %8.1f µs a claim %8.1f µs an ending\n", name, median(claimCosts[k]), median(endCosts[k]))
	}
}
