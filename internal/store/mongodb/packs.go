package mongodb

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Packs = (*Store)(nil)

// A job pack is a file in GridFS, as of a task with the id of its plan. Its chunks are bytes.

// PutPack implements store.Packs. An earlier pack goes last, so that of several files the newest is
// whole. The plan is looked at again after the chunks: who deletes a plan, or the tasks of an abandoned
// one, deletes the files that there are.
func (s *Store) PutPack(ctx context.Context, id plan.PlanID, pack *io.SectionReader) (err error) {
	defer about(&err, "job pack of plan %s", id)
	if err := s.checkPack(ctx, id, pack.Size()); err != nil {
		return err
	}
	p := put{Store: s, task: oid(id.ID)}
	old, err := p.filesOf(ctx, idList{p.task})
	if err != nil {
		return err
	}
	from := io.NewSectionReader(pack, 0, pack.Size())
	err = p.uploadChunks(ctx, &printed{name: "jobpack", bytes: pack.Size()}, func() (any, int, error) {
		piece := make([]byte, min(chunkBytes, pack.Size()))
		n, err := io.ReadFull(from, piece)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil // it is the last one, or there is none
		}
		return bson.Binary{Data: piece[:n]}, n, err
	})
	if err == nil {
		err = s.checkPack(ctx, id, pack.Size())
	}
	if err == nil {
		err = s.checkThere(ctx, p.files)
	}
	if err != nil {
		return p.takeBack(ctx, err)
	}
	return s.dropFiles(ctx, old)
}

func (s *Store) checkPack(ctx context.Context, id plan.PlanID, size int64) error {
	p, err := s.plan(ctx, id)
	if err != nil {
		return err
	}
	is := p.domain()
	return rules.CheckPack(&is, size)
}

// checkThere returns an ErrConflict if somebody else, who submits the same plan at the same time, has
// deleted the files as earlier ones.
func (s *Store) checkThere(ctx context.Context, files idList) error {
	there, err := wire.Find[fileDoc](ctx, s.files, d("_id", d("$in", files)), wire.Query{Fields: ones("_id")})
	if err == nil && len(there) < len(files) {
		err = fmt.Errorf("another submission of the plan put its own: %w", plan.ErrConflict)
	}
	return err
}

// dropPack deletes what is kept of the job pack of a plan, and the queue of the plan's own, which only a
// plan with a pack has.
func (s *Store) dropPack(ctx context.Context, id bson.ObjectID) error {
	files, err := s.filesOf(ctx, idList{id})
	if err != nil || len(files) == 0 {
		return err
	}
	q, err := wire.FindOne[queueDoc](ctx, s.queues, d("name", rules.JobQueue(planID(id))), wire.Query{Fields: ones("_id")})
	if err != nil {
		return err
	}
	if q != nil {
		if err := s.DeleteQueue(ctx, plan.QueueID{ID: plan.ID(q.ID)}); err != nil && !errors.Is(err, plan.ErrConflict) && !errors.Is(err, plan.ErrNotFound) {
			return err
		}
	}
	return s.dropFiles(ctx, files)
}

// OpenPack implements store.Packs.
func (s *Store) OpenPack(ctx context.Context, id plan.PlanID) (_ io.ReadCloser, size int64, err error) {
	defer about(&err, "job pack of plan %s", id)
	files, err := wire.Find[fileDoc](ctx, s.files, d("metadata.task_id", oid(id.ID)), wire.Query{Fields: ones("_id"), Sort: d("_id", -1), Limit: 1})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("it has none: %w", plan.ErrNotFound)
	}
	if err != nil {
		return nil, 0, err
	}
	return s.openFile(ctx, files[0].ID)
}
