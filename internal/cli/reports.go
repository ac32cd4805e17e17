package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	mostSummary = 1000 // tasks that a step summary lists
	mostJUnit   = 1000 // failed tasks whose last lines are in a JUnit file
)

// canWrite refuses a file that is to be written at the end of what may take long, if it cannot be written; "" is none. It leaves no trace.
func canWrite(flag, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	made := errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // whoever reads a pipe would take what is opened and closed for all there is
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return usagef("--%s: the file cannot be written: %w", flag, err)
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
	err := eachPage(ctx, st, store.TaskQuery{Plan: p.ID}, func(tasks []plan.Task) error {
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
			if broken(t.Status) && !t.HasItems() && tails < mostJUnit {
				tails++
				if told.Tail, err = tailOf(ctx, st, t, tailLines); err != nil {
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
	if err := writeFile(path, os.O_TRUNC, b.Bytes()); err != nil {
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
		return fmt.Errorf("%s is a pipe that nobody reads; name a file, or start first what reads it", path)
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
	path := a.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	text, err := summary(ctx, st, r)
	if err != nil {
		return err
	}
	if err := writeFile(path, os.O_APPEND, []byte(text)); err != nil {
		return fmt.Errorf("the step's summary: %w", err)
	}
	return nil
}

// summary is the run as Markdown. The tasks that failed are among it in any case.
func summary(ctx context.Context, st store.Reader, r *report.Run) (string, error) {
	tails := map[plan.TaskID][]string{}
	told := report.Run{Plan: r.Plan, Now: r.Now}
	for i := range r.Tasks {
		tails[r.Tasks[i].ID] = r.Tasks[i].Tail
	}
	tasks, _, err := someTasks(ctx, st, store.TaskQuery{Plan: r.Plan.ID, NoItems: true}, mostSummary, nil)
	if err == nil {
		err = tellSkips(ctx, st, tasks)
	}
	for i := range tasks {
		told.Tasks = append(told.Tasks, report.Task{Task: tasks[i], Tail: tails[tasks[i].ID]})
		delete(tails, tasks[i].ID)
	}
	for i := range r.Tasks {
		if _, left := tails[r.Tasks[i].ID]; left {
			told.Tasks = append(told.Tasks, r.Tasks[i])
		}
	}
	return told.Markdown(), err
}
