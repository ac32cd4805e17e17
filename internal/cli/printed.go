package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// gfsFlag adds the flag for where MongoDB keeps what tasks print. Disbatch's node gives its runners 1 for true.
func gfsFlag(cmd *cobra.Command) *choice {
	gfs := &choice{"", []string{string(plan.GFSAuto), string(plan.GFSAlways), string(plan.GFSNever), "1", "0"}}
	cmd.Flags().Var(gfs, "gfs", "on MongoDB, whether what tasks of no plan print is kept in GridFS; auto: if it is too large for the task's document (default: the\n"+
		"config file's, or auto)")
	return gfs
}

// gfsOf returns what the flag says, or else the configuration.
func gfsOf(flag *choice, conf *config.Config) plan.GFS {
	switch flag.value {
	case "":
		return conf.GFS
	case "1":
		return plan.GFSAlways
	case "0":
		return plan.GFSNever
	}
	return plan.GFS(flag.value)
}

// Of a task that another program ran there is no log here, only what that program left of its standard output and standard error.

// printedBy returns these as the entries of a log; none if there are none.
func printedBy(ctx context.Context, r store.Reader, t *plan.Task) (entries []plan.LogEntry, err error) {
	kept, ok := r.(store.Results)
	if !ok {
		return nil, nil
	}
	for _, s := range []plan.Stream{plan.Stdout, plan.Stderr} {
		in, _, err := kept.OpenResult(ctx, t.ID, s)
		if err != nil {
			return nil, err
		}
		var text strings.Builder
		_, err = io.Copy(&text, in)
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, fmt.Errorf("%s of task %s: %w", streamWord(s), t.ID, err)
		}
		if text.Len() == 0 {
			continue
		}
		if len(entries) > 0 && !strings.HasSuffix(entries[0].Text, "\n") {
			entries[0].Text += "\n"
		}
		entries = append(entries, plan.LogEntry{At: t.Ended, Attempt: t.Attempt, Stream: s, Text: text.String()})
	}
	return entries, nil
}

// noteForeign says whose output is printed instead of a log.
func (a *app) noteForeign(t *plan.Task, entries []plan.LogEntry) {
	what := "its standard output"
	switch {
	case len(entries) > 1:
		what += ", and after it its standard error"
	case entries[0].Stream == plan.Stderr:
		what = "its standard error"
	}
	a.note("%s has no log here, as another program ran it: this is %s", t.Key(), what)
}

// sizes fills in how many bytes a task's standard output and standard error have, where they are kept beside its log.
func (d *taskDetails) sizes(ctx context.Context, r store.Reader) error {
	kept, ok := r.(store.Results)
	if !ok {
		return nil
	}
	for s, to := range map[plan.Stream]**int64{plan.Stdout: &d.Stdout, plan.Stderr: &d.Stderr} {
		in, size, err := kept.OpenResult(ctx, d.ID, s)
		if err != nil {
			return err
		}
		if size >= 0 {
			*to = &size
		}
		if err := in.Close(); err != nil {
			return err
		}
	}
	return nil
}

// bytesText is a number of bytes for people, "" for none that is known.
func bytesText(n *int64) string {
	switch {
	case n == nil:
		return ""
	case *n < 10<<10:
		return number(int(*n), "byte")
	case *n < 10<<20:
		return fmt.Sprintf("%d KiB", *n>>10)
	}
	return fmt.Sprintf("%d MiB", *n>>20)
}
