package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func queueCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "queue",
		Short: "Make queues, and set their limits",
		Long: "Make queues, and set their limits. A queue is where tasks of one plugin wait, under one limit over all nodes. A plan's task that\n" +
			"names no queue goes to the one named as its plugin, which is made when it is missing.",
	}, queueList(a), queueCreate(a), queueSet(a))
}

// A queueEntry is a queue in JSON listings. State and status say whether more of its tasks may start.
type queueEntry struct {
	ID      plan.QueueID   `json:"id"`
	Name    string         `json:"name"`
	State   string         `json:"state"`  // open, full, paused
	Status  int            `json:"status"` // 1, 2, 0
	Plugin  string         `json:"plugin"`
	Threads *int           `json:"threads"` // null: unlimited
	Sort    plan.QueueSort `json:"sort"`
	Queued  int            `json:"queued"`
	Active  int            `json:"active"`
}

func entryOfQueue(q *plan.Queue) queueEntry {
	e := queueEntry{
		ID: q.ID, Name: q.Name, Plugin: q.Plugin, Sort: cmp.Or(q.Sort, "default"), Queued: q.Queued, Active: q.Active, State: "open", Status: 1,
	}
	if !q.Unlimited {
		e.Threads = &q.Threads
		switch {
		case q.Threads <= 0:
			e.State, e.Status = "paused", 0
		case q.Active >= q.Threads:
			e.State, e.Status = "full", 2
		}
	}
	return e
}

func (e *queueEntry) threads() string {
	if e.Threads == nil {
		return unlimited
	}
	return strconv.Itoa(*e.Threads)
}

func queueList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List queues, newest first", Args: exactly(0)}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withStore(cmd.Context(), func(st store.Store) error {
			queues, err := st.Queues(cmd.Context())
			if err == nil {
				err = st.CountQueues(cmd.Context(), queues)
			}
			if err != nil {
				return err
			}
			slices.SortFunc(queues, func(x, y plan.Queue) int { return bytes.Compare(y.ID.ID[:], x.ID.ID[:]) })
			entries := make([]queueEntry, len(queues))
			for i := range queues {
				entries[i] = entryOfQueue(&queues[i])
			}
			if output.json() {
				return printJSON(a.Stdout, entries)
			}
			t := table{head: []string{"QUEUE", "STATE", "PLUGIN", "THREADS", "ACTIVE", "QUEUED", "SORT", "ID"}, paint: a.stateColumn(1)}
			for i := range entries {
				e := &entries[i]
				t.add(e.Name, e.State, e.Plugin, e.threads(), strconv.Itoa(e.Active), strconv.Itoa(e.Queued), string(e.Sort), e.ID.String())
			}
			return t.print(a.Stdout)
		})
	}
	return cmd
}

const unlimited = "unlimited"

// threadsValue is the flag that limits a queue: a number or "unlimited".
type threadsValue struct {
	n         int
	unlimited bool
}

func (v *threadsValue) Type() string { return "N|" + unlimited }
func (v *threadsValue) String() string {
	if v.unlimited {
		return unlimited
	}
	return strconv.Itoa(v.n)
}

// Set implements pflag.Value.
func (v *threadsValue) Set(word string) error {
	if word == unlimited {
		v.n, v.unlimited = 0, true
		return nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n > plan.MaxThreads {
		return fmt.Errorf("it is a number of tasks, 0 to %d, or %s", plan.MaxThreads, unlimited)
	}
	v.n, v.unlimited = n, false
	return nil
}

func queueFlags(cmd *cobra.Command, threads *threadsValue) (sort *choice) {
	sort = &choice{"default", []string{"default", string(plan.SortFIFO), string(plan.SortLIFO)}}
	cmd.Flags().Var(threads, "threads", "how many of its tasks may run at once, over all nodes; 0 pauses it")
	cmd.Flags().Var(sort, "sort", "what is claimed first: default (longest way to the plan's end), fifo or lifo")
	return sort
}

func sortOf(c *choice) plan.QueueSort {
	if c.value == "default" {
		return plan.SortDefault
	}
	return plan.QueueSort(c.value)
}

func queueCreate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a queue",
		Args:    exactly(1),
		Example: "  sluice queue create imap --plugin exec --threads 4",
	}
	threads := threadsValue{unlimited: true}
	sort := queueFlags(cmd, &threads)
	plugin := cmd.Flags().String("plugin", plan.DefaultPlugin, "what its tasks do")
	completeWords(cmd, "plugin", a.Plugins.Names())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		q := plan.Queue{Name: args[0], Plugin: *plugin, Threads: threads.n, Unlimited: threads.unlimited, Sort: sortOf(sort)}
		probe := plan.New("queue").Add(plan.TaskSpec{Name: "task", Queue: q.Name, Plugin: q.Plugin})
		if err := (&plan.Spec{Name: "queue", Tasks: []plan.TaskSpec{*probe}}).Validate(); err != nil || *plugin == "" {
			return usagef("queue %q of plugin %q: names have only letters, digits, _, -, colons and dots, and do not begin with -", q.Name, q.Plugin)
		}
		return a.makingStore(ctx, func(st store.Store) error {
			made, err := st.CreateQueue(ctx, q)
			if errors.Is(err, plan.ErrExists) {
				return fmt.Errorf("queue %q: %w; change it with %q", q.Name, plan.ErrExists, a.command("queue", "set", q.Name))
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Stdout, made.ID)
			return err
		})
	}
	return cmd
}

func queueSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "set NAME",
		Short:             "Change a queue's limit or order",
		Args:              exactly(1),
		ValidArgsFunction: a.completeQueue,
		Example:           "  sluice queue set imap --threads 8\n  sluice queue set imap --threads 0     # pause it",
	}
	var threads threadsValue
	sort := queueFlags(cmd, &threads)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if !cmd.Flags().Changed("threads") && !cmd.Flags().Changed("sort") {
			return usagef("nothing to change: give --threads or --sort")
		}
		return a.withStore(ctx, func(st store.Store) error {
			q, err := findQueue(ctx, st, args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("threads") {
				q.Threads, q.Unlimited = threads.n, threads.unlimited
			}
			if cmd.Flags().Changed("sort") {
				q.Sort = sortOf(sort)
			}
			if err := st.SetQueue(ctx, q); err != nil {
				return err
			}
			e := entryOfQueue(&q)
			paused := ""
			if !q.Unlimited && q.Threads <= 0 {
				paused = ", so it is paused"
			}
			_, err = fmt.Fprintf(a.Stdout, "queue %s has threads %s%s, sort %s\n", e.Name, e.threads(), paused, e.Sort)
			return err
		})
	}
	return cmd
}

// findQueue returns the queue with that name or id.
func findQueue(ctx context.Context, r store.Reader, word string) (plan.Queue, error) {
	queues, err := r.Queues(ctx)
	if err != nil {
		return plan.Queue{}, err
	}
	var names []string
	for _, q := range queues {
		if q.Name == word || q.ID.String() == word {
			return q, nil
		}
		names = append(names, q.Name)
	}
	hint := didYouMean(word, names)
	if hint == "" {
		hint = fmt.Sprintf("; make it with %q", "sluice queue create "+word)
	}
	return plan.Queue{}, fmt.Errorf("queue %q: %w%s", word, plan.ErrNotFound, hint)
}
