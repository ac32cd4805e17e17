package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A task that cannot be claimed, run or ended must not keep a turn from the others. Mostly another
// program wrote such a task. It fails with the reason, which is in its detail and in the node's
// log. If its document cannot hold even that, it is left alone.

// damage is an error by which one task fails, since it lies in what is kept of it. Others end a call, which is then made again.
type damage struct{ error }

// leftAlone returns the tasks that claims pass by.
func (s *Store) leftAlone() idList {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.alone))
}

// fail ends a task that is as where says, and why it did not run.
func (r *round) fail(ctx context.Context, id bson.ObjectID, where bson.D, why string) error {
	for _, update := range failures(why) {
		n, misfits, err := r.BulkEach(ctx, r.tasks, []wire.Change{{ID: id, Where: where, Update: update}})
		if err != nil {
			return err
		}
		if len(misfits) == 0 {
			if n > 0 {
				r.refused = append(r.refused, fmt.Sprintf("task %s failed: %s", id.Hex(), why))
			}
			return nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.alone[id] {
		r.refused = append(r.refused, fmt.Sprintf("task %s is left alone: %s", id.Hex(), why))
	}
	if r.alone == nil || len(r.alone) >= mostLeftAlone {
		r.alone = map[bson.ObjectID]bool{}
	}
	r.alone[id] = true
	return nil
}

// failAll ends tasks, as they are, whose documents did not take a change.
func (r *round) failAll(ctx context.Context, misfits []wire.Misfit, where bson.D, why string) error {
	for _, m := range misfits {
		if err := r.fail(ctx, m.ID, where, why+": "+m.Err.Error()); err != nil {
			return err
		}
	}
	return nil
}

// failNameless ends what a queue has of tasks whose ids are no ObjectIDs: neither a claim nor a person could name them.
func (c *claimer) failNameless(ctx context.Context, q *queueDoc, waiting bson.D) error {
	const why = "its _id is no ObjectID"
	n, err := c.UpdateMany(ctx, c.tasks, append(slices.Clone(waiting), bson.E{Key: "$and", Value: bson.A{d("_id", d("$not", d("$type", "objectId")))}}), namelessFails(why))
	if n > 0 {
		c.refused = append(c.refused, fmt.Sprintf("%d tasks in queue %q failed: %s", n, q.Name, why))
	}
	return err
}

// counters are fields that a claim and what follows it add to.
var counters = []string{"attempt", "gen", "rescues", "lines"}

// mend takes from tasks, while they can be claimed, what another program wrote into fields that a claim counts in.
func (r *round) mend(ctx context.Context, docs []taskDoc, only narrowing) error {
	var changes []wire.Change
	for i := range docs {
		var wrong bson.D
		for _, field := range docs[i].odd {
			if slices.Contains(counters, field) {
				wrong = append(wrong, bson.E{Key: field, Value: 1})
			}
		}
		if len(wrong) > 0 {
			changes = append(changes, wire.Change{ID: docs[i].ID, Where: only(nil), Update: d("$unset", wrong)})
		}
	}
	_, _, err := r.BulkEach(ctx, r.tasks, changes) // what is not mended is not claimed
	return err
}

// finishMisfits applies endings that their documents did not take, as far as they do. It returns how many it applied, and what is left of
// those pending without the others, whose claims count as lost.
func (r *round) finishMisfits(ctx context.Context, pending []*ending, misfits []wire.Misfit) (applied int, left []*ending, err error) {
	why := make(map[bson.ObjectID]error, len(misfits))
	for _, m := range misfits {
		why[m.ID] = m.Err
	}
	for _, e := range pending {
		reason := why[e.task.ID]
		if reason == nil {
			left = append(left, e)
			continue
		}
		n, taken, err := r.finishMisfit(ctx, e, reason)
		if err != nil {
			return applied, nil, err
		}
		if taken {
			applied, left = applied+n, append(left, e)
		} else {
			r.lost = append(r.lost, taskID(e.task.ID))
		}
	}
	return applied, left, nil
}

// putApart puts the results of an ending into files, if the document has no room for them. Results
// that cannot be kept there either are dropped.
func (r *round) putApart(ctx context.Context, e *ending, why error) error {
	if e.printed == nil || !outgrown(why) {
		return nil
	}
	sections := make([]*io.SectionReader, 0, 2)
	for _, s := range []plan.Stream{plan.Stdout, plan.Stderr} {
		text := e.printed.Of(s)
		sections = append(sections, io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text))))
	}
	e.printed = nil
	err := r.PutResults(ctx, e.Ending.Claim, sections[0], sections[1], protocol.GFSAlways)
	if errors.Is(err, plan.ErrUnavailable) {
		return err
	}
	return nil
}

// finishMisfit makes of an ending what its document takes: first with what was printed in files, and without counting on what other programs wrote, then without the output,
// then the end alone. taken is false if it takes none of that.
func (r *round) finishMisfit(ctx context.Context, e *ending, why error) (n int, taken bool, err error) {
	failed := func() error {
		reason := plan.ReasonInput
		if len(e.Step.Output) > 0 {
			reason = plan.ReasonOutput
			why = fmt.Errorf("its output of %d bytes does not fit beside the rest of the task, of which a document has at most %d: "+
				"write a file and return its path", len(e.Step.Output), largestDocument)
		}
		e.list, e.Step = "", rules.NotKept(e.task.Status, &e.Step, reason, why)
		return r.note(ctx, []bson.ObjectID{e.task.ID})
	}
	for _, try := range []func() error{
		func() error { e.anew = true; return r.putApart(ctx, e, why) },
		failed,
		func() error { e.bare = true; return nil },
	} {
		if err := try(); err != nil {
			return 0, false, err
		}
		n, misfits, err := r.BulkEach(ctx, r.tasks, []wire.Change{r.change(e)})
		if err != nil {
			return 0, false, err
		}
		if len(misfits) == 0 {
			r.refused = append(r.refused, fmt.Sprintf("task %s: its end was not stored as it was: %v", e.task.ID.Hex(), why))
			return n, true, nil
		}
	}
	r.refused = append(r.refused, fmt.Sprintf("task %s: its end cannot be stored: %v", e.task.ID.Hex(), why))
	return 0, false, nil
}
