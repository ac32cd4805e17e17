package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	mostSummary = 1000 // tasks that a step summary lists
	mostJUnit   = 1000 // tasks whose last lines are in a JUnit file: those that failed, or had an attempt that did
)

// canReport refuses reports that a command is to write at its end, if they cannot be written.
func (a *app) canReport(junit string) error {
	return cmp.Or(canWrite("--junit", junit), canWrite(summaryVariable, a.summaryFile()))
}

// canWrite refuses a file that is to be written at the end of what may take long, if it cannot be written; "" is none. It leaves no trace.
func canWrite(what, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	made := errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // a reader of a pipe would take an open and a close for the whole content
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return usagef("%s: the file cannot be written: %w", what, err)
	}
	err = f.Close()
	if made { // what a link leads to, and not the link
		real, failed := filepath.EvalSymlinks(path)
		if failed == nil {
			failed = os.Remove(real)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// writeJUnit writes how a plan stands to a file, unless its name is empty.
func (a *app) writeJUnit(ctx context.Context, st store.Reader, p plan.Plan, path string) error {
	if path == "" {
		return nil
	}
	j := report.NewJUnit(p, time.Now())
	tails := 0
	err := store.EachPage(ctx, st, store.TaskQuery{Plan: p.ID}, func(tasks []plan.Task) error {
		values, err := itemValues(ctx, st, tasks)
		if err != nil {
			return err
		}
		if err := tellSkips(ctx, st, tasks); err != nil {
			return err
		}
		for i := range tasks {
			t := &tasks[i]
			told := report.Task{Task: *t, Item: values[t.ID]}
			if view.Broken(t.Status) && !t.Gathers() && tails < mostJUnit {
				tails++
				if told.Tail, err = tailOf(ctx, st, t, tailLines); err != nil {
					return err
				}
			}
			if report.FailedAttempts(t) > 0 && tails < mostJUnit {
				tails++
				if told.Earlier, err = earlierOf(ctx, st, t, tailLines); err != nil {
					return err
				}
			}
			j.Add(&told)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := j.Write(&b); err != nil {
		return err
	}
	if err = a.spareLater(path); err == nil {
		err = writeFile(path, os.O_TRUNC, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("the JUnit file: %w", err)
	}
	return nil
}

// pipeWithin is how long a reader of a pipe may take for what fits into the pipe at once.
const pipeWithin = 10 * time.Second

// writeFile writes to a file, which it makes if need be, or to a pipe that somebody reads. It does not wait for who does not: a plan has
// ended by then, and so must the command.
func writeFile(path string, flags int, text []byte) error {
	info, err := os.Stat(path)
	pipe := err == nil && info.Mode()&fs.ModeNamedPipe != 0
	if pipe {
		flags |= syscall.O_NONBLOCK
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flags, 0o644)
	if pipe && errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("%s is a pipe without a reader; name a file, or start the reader first", path)
	}
	if err != nil {
		return err
	}
	if !pipe {
		_, err = f.Write(text)
		return errors.Join(err, f.Close())
	}
	for part := range slices.Chunk(text, 64<<10) {
		_ = f.SetWriteDeadline(time.Now().Add(pipeWithin)) // where a pipe has none, a write to a full one fails
		if _, err = f.Write(part); err != nil {
			break
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s is a pipe whose reader has taken nothing for %v; name a file", path, pipeWithin)
	}
	return errors.Join(err, f.Close())
}

// tellGitHub tells GitHub Actions, if this runs there, how a run ended: an annotation for each failed task, and a summary of the step.
// Annotations go to standard error, which Actions reads too, so that standard output holds what was asked for.
func (a *app) tellGitHub(ctx context.Context, st store.Reader, r *report.Run) error {
	if a.Getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	file, err := filepath.Rel(a.Getenv("GITHUB_WORKSPACE"), r.Plan.Source)
	if err != nil || r.Plan.Source == "" || !filepath.IsLocal(file) {
		file = ""
	}
	if _, err := fmt.Fprint(a.Stderr, r.Annotations(filepath.ToSlash(file))); err != nil {
		return err
	}
	path := a.summaryFile()
	if path == "" {
		return nil
	}
	room := report.MostMarkdown
	if info, err := os.Stat(path); err == nil {
		room -= int(min(info.Size(), report.MostMarkdown)) // other commands of the step wrote that
	}
	text, err := a.summary(ctx, st, r, room)
	if err != nil {
		return err
	}
	if err = a.spareLater(path); err == nil {
		err = writeFile(path, os.O_APPEND, []byte(text))
	}
	if err != nil {
		return fmt.Errorf("the step's summary: %w", err)
	}
	return nil
}

// summary is the run as Markdown of at most room bytes, with a table of its tasks and of those of their items that failed.
func (a *app) summary(ctx context.Context, st store.Reader, r *report.Run, room int) (string, error) {
	nodes, err := st.Instances(ctx)
	if err != nil {
		return "", err
	}
	var tasks []plan.Task
	all, failedItems := 0, r.Failures.Failed+r.Failures.Allowed
	err = store.EachTask(ctx, st, store.TaskQuery{Plan: r.Plan.ID, NoItems: true}, func(t *plan.Task) error {
		if all++; len(tasks) < mostSummary {
			tasks = append(tasks, *t)
		}
		if view.Broken(t.Status) && !t.Gathers() {
			failedItems--
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	failedItems = max(failedItems, 0)
	tasks = tasks[:min(len(tasks), mostSummary-min(failedItems, mostTails))]
	if err := tellSkips(ctx, st, tasks); err != nil {
		return "", err
	}
	broke, err := failedItemsOf(ctx, st, r.Plan.ID, min(failedItems, mostSummary-len(tasks)))
	if err != nil {
		return "", err
	}
	told := *r
	told.Table = &report.Table{More: all + failedItems}
	add := func(t report.Task) {
		told.Table.Tasks = append(told.Table.Tasks, t)
		told.Table.More = max(told.Table.More-1, 0)
	}
	for i := range tasks {
		t := report.Task{Task: tasks[i]}
		switch {
		case spread(&t.Task):
			items, err := itemsOf(ctx, st, &t.Task)
			if err != nil {
				return "", err
			}
			t.Stands, t.Says = items.state(&t.Task), a.itemsDetail(items, &t.Task, nodes)
		case t.Gathers():
			t.Says = a.detail(&t.Task, nodes)
		}
		add(t)
		for _, item := range broke[t.ID] {
			add(item)
		}
		delete(broke, t.ID)
	}
	for _, of := range slices.SortedFunc(maps.Keys(broke), func(x, y plan.TaskID) int { return bytes.Compare(x.ID[:], y.ID[:]) }) {
		for _, item := range broke[of] { // their foreach task had no room
			add(item)
		}
	}
	return told.Markdown(room), nil
}

// failedItemsOf returns up to limit items of a plan that failed, by their foreach tasks and in the order of their lists. Failures that the
// plan allows have the room that others leave.
func failedItemsOf(ctx context.Context, st store.Reader, of plan.PlanID, limit int) (map[plan.TaskID][]report.Task, error) {
	var found []plan.Task
	for _, allowed := range []bool{false, true} {
		if len(found) >= limit {
			break
		}
		some, _, err := someTasks(ctx, st, store.TaskQuery{Plan: of, Statuses: brokenStatuses}, limit-len(found), func(t *plan.Task) bool {
			return !t.Of.IsZero() && t.ContinueOnError == allowed
		})
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	values, err := itemValues(ctx, st, found)
	if err != nil {
		return nil, err
	}
	items := map[plan.TaskID][]report.Task{}
	for i := range found {
		t := &found[i]
		items[t.Of] = append(items[t.Of], report.Task{Task: *t, Item: values[t.ID]})
	}
	for _, some := range items {
		slices.SortFunc(some, func(x, y report.Task) int { return x.Index - y.Index })
	}
	return items, nil
}
