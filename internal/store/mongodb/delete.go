package mongodb

import (
	"context"
)

// forgetBeside deletes the logs and files of tasks that are about to go.
func (r *round) forgetBeside(ctx context.Context, ids idList) error {
	if _, err := r.Remove(ctx, r.logs, d("task", d("$in", ids))); err != nil {
		return err
	}
	files, err := r.filesOf(ctx, ids)
	if err != nil {
		return err
	}
	return r.dropFiles(ctx, files)
}

// forgetTasks deletes tasks, and all that is kept beside them. joined are those of them that may have joins.
func (r *round) forgetTasks(ctx context.Context, ids, joined idList) error {
	if err := r.forgetBeside(ctx, ids); err != nil {
		return err
	}
	if len(joined) > 0 {
		if _, err := r.Remove(ctx, r.joins, d("child", d("$in", joined))); err != nil {
			return err
		}
	}
	_, err := r.Remove(ctx, r.tasks, d("_id", d("$in", ids)))
	return err
}
