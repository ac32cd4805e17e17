package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/failed"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// outputsAtOnce is of how many tasks the outputs are read in one answer.
const outputsAtOnce = 1000

// parentIDs returns the ids of the task's parents, in order.
func (s *Store) parentIDs(ctx context.Context, t *taskDoc) ([]bson.ObjectID, error) {
	if t.Joins == 0 {
		return t.Needs, nil
	}
	joins, err := wire.Find[joinDoc](ctx, s.joins, d("child", t.ID, "count", nil), wire.Query{Sort: d("n", 1), Fields: ones("needs")})
	if err != nil {
		return nil, err
	}
	var ids []bson.ObjectID
	for _, j := range joins {
		ids = append(ids, j.Needs...)
	}
	return ids, nil
}

// inputsOf returns the outputs of tasks. known are those of them that were read with parentFields or headFields.
func (s *Store) inputsOf(ctx context.Context, ids []bson.ObjectID, known map[bson.ObjectID]*taskDoc) (_ []plan.Input, err error) {
	outputs := make(map[bson.ObjectID]*taskDoc, len(ids))
	var missing []bson.ObjectID
	for _, id := range ids {
		if p := known[id]; p != nil && p.Bytes <= smallOutput {
			outputs[id] = p
		} else {
			missing = append(missing, id)
		}
	}
	err = s.readAll(ctx, missing, ones("name of output large gathered items"), func(t *taskDoc) { outputs[t.ID] = t })
	if err != nil {
		return nil, err
	}
	inputs := make([]plan.Input, len(ids))
	for i, id := range ids {
		p := outputs[id]
		if p == nil { // the deletion of its plan has begun
			inputs[i].Name = id.Hex()
			continue
		}
		inputs[i].Name = p.inputName()
		if inputs[i].Output, err = s.outputOf(ctx, p); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// outputOf returns a task's output, put together if it is not kept.
func (s *Store) outputOf(ctx context.Context, t *taskDoc) (json.RawMessage, error) {
	if t.Gathered {
		return s.gathered(ctx, t.ID, t.Items)
	}
	return t.output(), nil
}

// gathered returns the list of the outputs of a foreach task's items.
func (s *Store) gathered(ctx context.Context, of bson.ObjectID, items int) (json.RawMessage, error) {
	inputs := make([]plan.Input, items)
	err := s.readAll(ctx, itemIDs(of, 0, items), ones("output large"), func(t *taskDoc) { inputs[itemIndex(t.ID)].Output = t.output() })
	if err != nil {
		return nil, fmt.Errorf("outputs of the items of task %s: %w", of.Hex(), err)
	}
	return rules.List(inputs), nil
}

// headFields are what is known of an output before it is read, and the output itself where it is small.
var headFields = ones("name of output bytes gathered items")

// heads is what is known of the outputs of a task's parents before they are read.
type heads struct {
	ids   []bson.ObjectID // in the order of its needs
	known map[bson.ObjectID]*taskDoc
	sizes []rules.InputSize // of those whose documents are there
}

func (s *Store) heads(ctx context.Context, t *taskDoc) (*heads, error) {
	ids, err := s.parentIDs(ctx, t)
	if err != nil {
		return nil, err
	}
	h := &heads{ids: ids, known: make(map[bson.ObjectID]*taskDoc, len(ids))}
	return h, s.readAll(ctx, ids, headFields, func(t *taskDoc) {
		h.known[t.ID] = t
		h.sizes = append(h.sizes, t.inputSize())
	})
}

// readsAtOnce is how many commands read many tasks side by side.
const readsAtOnce = 4

// readAll reads tasks by their ids and hands them over, in no order, but one at a time.
func (s *Store) readAll(ctx context.Context, ids []bson.ObjectID, fields bson.D, take func(*taskDoc)) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readsAtOnce)
	for some := range slices.Chunk(ids, outputsAtOnce) {
		g.Go(func() error {
			docs, err := wire.Find[taskDoc](ctx, s.tasks, d("_id", d("$in", some)), wire.Query{Fields: fields})
			mu.Lock()
			defer mu.Unlock()
			for i := range docs {
				take(&docs[i])
			}
			return err
		})
	}
	return g.Wait()
}

// tasksByID reads tasks by their ids.
func (s *Store) tasksByID(ctx context.Context, ids []bson.ObjectID, fields bson.D) (map[bson.ObjectID]*taskDoc, error) {
	byID := make(map[bson.ObjectID]*taskDoc, len(ids))
	return byID, s.readAll(ctx, ids, fields, func(t *taskDoc) { byID[t.ID] = t })
}

// itemInputs returns what the items of a foreach task have of its parents' outputs.
func (s *Store) itemInputs(ctx context.Context, h *heads, f *plan.Foreach) ([]plan.Input, error) {
	for _, p := range h.known {
		if rules.TakesAll(f, p.inputSize()) {
			p.Output, p.Bytes, p.Gathered = nil, 0, false
		}
	}
	inputs, err := s.inputsOf(ctx, h.ids, h.known)
	return rules.ItemInputs(f, inputs), err
}

// Parents implements store.Node.
func (s *Store) Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error) {
	return store.ParentsOf(ctx, s, id)
}

// Failures implements store.Node.
func (s *Store) Failures(ctx context.Context, id plan.TaskID) (json.RawMessage, error) {
	return failed.For(ctx, s, id)
}

// Inputs implements store.Node.
func (s *Store) Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error) {
	fields := ones("needs joins of def")
	t, err := s.task(ctx, id, fields)
	isItem := err == nil && !t.Of.IsZero() && !t.hasParents()
	if isItem {
		t, err = s.task(ctx, taskID(t.Of), fields)
	}
	if err != nil {
		return nil, err
	}
	h, err := s.heads(ctx, t)
	if err != nil {
		return nil, err
	}
	if isItem {
		def, err := t.definition()
		if err != nil || def.Foreach == nil {
			return nil, fmt.Errorf("the foreach task of %s is damaged: %w", id, errors.Join(err, errors.ErrUnsupported))
		}
		if err := rules.CheckItemInputs(def.Foreach, h.sizes); err != nil {
			return nil, err
		}
		return s.itemInputs(ctx, h, def.Foreach)
	}
	sum := 0
	for _, in := range h.sizes {
		sum += in.Bytes
	}
	if err := rules.CheckInputs(sum); err != nil {
		return nil, err
	}
	return s.inputsOf(ctx, h.ids, h.known)
}
