package mongodb

import (
	"context"
)

// forgetBeside deletes the logs and files of tasks that are about to go.
func (s *Store) forgetBeside(ctx context.Context, ids idList) error {
	if _, err := s.Remove(ctx, s.logs, d("task", d("$in", ids))); err != nil {
		return err
	}
	files, err := s.filesOf(ctx, ids)
	if err != nil {
		return err
	}
	return s.dropFiles(ctx, files)
}

// forgetTasks deletes tasks, and all that is kept beside them. joined are those of them that may have joins.
func (s *Store) forgetTasks(ctx context.Context, ids, joined idList) error {
	g := s.Series(ctx)
	g.Do(func(ctx context.Context) error { return s.forgetBeside(ctx, ids) })
	if len(joined) > 0 {
		g.Remove(s.joins, d("child", d("$in", joined)))
	}
	g.Remove(s.tasks, d("_id", d("$in", ids)))
	return g.Err
}
