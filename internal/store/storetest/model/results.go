package model

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var (
	_ store.Results = (*Store)(nil)
	_ store.Packs   = (*Store)(nil)
)

func (s *Store) PutResults(ctx context.Context, c protocol.Claim, stdout, stderr *io.SectionReader, _ protocol.GFS) error {
	results := map[plan.Stream][]byte{}
	for stream, r := range map[plan.Stream]*io.SectionReader{plan.Stdout: stdout, plan.Stderr: stderr} {
		if r == nil {
			continue
		}
		text := make([]byte, r.Size())
		if n, err := r.ReadAt(text, 0); n < len(text) {
			return fmt.Errorf("results of task %s: %w", c.Task, err)
		}
		results[stream] = text
	}
	return s.write(ctx, func(tx *tx) error {
		t, ok := tx.claimed(c)
		if !ok {
			return fmt.Errorf("results of task %s, attempt %d: %w", c.Task, c.Attempt, plan.ErrClaimLost)
		}
		t.results = results
		return nil
	})
}

func (s *Store) OpenResult(ctx context.Context, id plan.TaskID, stream plan.Stream) (r io.ReadCloser, size int64, err error) {
	err = s.read(ctx, func() error {
		t, err := s.task(id)
		if err != nil {
			return err
		}
		text, there := t.results[stream]
		if size = int64(len(text)); !there {
			size = -1
		}
		r = io.NopCloser(bytes.NewReader(text))
		return nil
	})
	return r, size, err
}

func (s *Store) PutPack(ctx context.Context, id plan.PlanID, pack *io.SectionReader) error {
	return s.write(ctx, func(tx *tx) error {
		p, err := tx.ToDelete(ctx, id)
		if err == nil {
			err = rules.CheckPack(&p.Plan, pack.Size())
		}
		if err != nil {
			return err
		}
		p.pack, err = io.ReadAll(io.NewSectionReader(pack, 0, pack.Size()))
		return err
	})
}

func (s *Store) OpenPack(ctx context.Context, id plan.PlanID) (r io.ReadCloser, size int64, err error) {
	err = s.read(ctx, func() error {
		p := s.plans[id]
		if p == nil || p.pack == nil {
			return fmt.Errorf("job pack of plan %s: %w", id, plan.ErrNotFound)
		}
		r, size = io.NopCloser(bytes.NewReader(p.pack)), int64(len(p.pack))
		return nil
	})
	return r, size, err
}
