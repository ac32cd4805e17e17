package cli

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// drawn is what a watcher knows of the tasks that a live view lists.
type drawn struct {
	own     plan.NodeName                  // not named next to each task
	values  values                         // of the items that run and were shown
	reached map[plan.TaskID]*plan.Progress // of those that run and were shown,
	asked   time.Time                      // and when that was read
}

// draw reads the other parts of a view: the lines below the events, and the running tasks.
func (w *watcher) draw(ctx context.Context, m *view.Moment) (failed error) {
	for i := range m.Events {
		if e := &m.Events[i]; w.logs != nil && w.view.Tells(m, e) {
			var err error
			e.Below, err = w.logs.below(ctx, e)
			failed = errors.Join(failed, err)
		}
	}
	if !w.live {
		return failed
	}
	m.Frame = w.model.Frame(m.Now)
	runs := m.Frame.Running
	for i := range runs {
		if runs[i].Node == w.drawn.own {
			runs[i].Node = ""
		}
	}
	runs = runs[:min(len(runs), view.MostRunning)]
	return errors.Join(failed, w.name(ctx, runs), w.reach(ctx, m.Now, runs))
}

// reach gives the tasks that run what they said of how far they are. The watcher reads that once a second, as often as nodes tell it.
func (w *watcher) reach(ctx context.Context, now time.Time, runs []view.Run) error {
	d := &w.drawn
	if len(runs) > 0 && now.Sub(d.asked) >= time.Second {
		ids := api.Each(runs, func(r *view.Run) plan.TaskID { return r.Task })
		tasks, err := w.st.Tasks(ctx, store.TaskQuery{IDs: ids, Reached: true, Limit: len(ids)})
		if err != nil {
			return err
		}
		d.asked, d.reached = now, map[plan.TaskID]*plan.Progress{}
		for i := range tasks {
			d.reached[tasks[i].ID] = tasks[i].Progress
		}
	}
	for i := range runs {
		runs[i].Progress = d.reached[runs[i].Task]
	}
	return nil
}

// name gives items their labels. The watcher reads what an item is for once, when the item is first shown.
func (w *watcher) name(ctx context.Context, runs []view.Run) error {
	known := make(values, len(runs))
	var unknown []plan.Task
	for i := range runs {
		r := &runs[i]
		item, ok := w.drawn.values[r.Task]
		switch {
		case ok:
			known[r.Task] = item
		case r.Item:
			known[r.Task] = nil // also if it has no label
			unknown = append(unknown, plan.Task{ID: r.Task, Of: r.Task})
		}
	}
	read, err := itemKeys(ctx, w.st, unknown)
	if err != nil {
		return err
	}
	maps.Copy(known, read)
	w.drawn.values = known
	for i := range runs {
		if r := &runs[i]; r.Item {
			r.Name = known.label(&plan.Task{ID: r.Task, Name: r.Name}, w.mark)
		}
	}
	return nil
}
