package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func queueCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "queue",
		Short: "Make queues, and set their limits",
		Long: "Make queues, and set their limits. A queue is where tasks of one plugin wait, under one limit over all nodes. A plan's task that\n" +
			"names no queue goes to the one named as its plugin, which is made when it is missing.",
	}, queueList(a), queueCreate(a), queueSet(a), queueDelete(a))
}

// A queueEntry is a queue in JSON listings, as the API has it. State and status say whether more of its tasks may start.
type queueEntry struct{ api.Queue }

func entryOfQueue(q *plan.Queue) queueEntry { return queueEntry{api.QueueOf(q)} }

func (e *queueEntry) threads() string {
	if e.Threads == nil {
		return unlimited
	}
	return strconv.Itoa(*e.Threads)
}

// keep is how long finished tasks of no plan stay; "" if the queue does not say.
func (e *queueEntry) keep() string { return keepText(e.Domain().Keep) }

// nodes is what the queue says of nodes, in a few words; "" if that is nothing.
func (e *queueEntry) nodes() string {
	join := func(nodes []plan.NodeName) string {
		words := make([]string, len(nodes))
		for i, n := range nodes {
			words[i] = string(n)
		}
		return strings.Join(words, ",")
	}
	var parts []string
	switch {
	case len(e.Pin) > 0:
		parts = append(parts, "only "+join(e.Pin))
	case len(e.Ignore) > 0:
		parts = append(parts, "not "+join(e.Ignore))
	}
	if e.NodeThreads > 0 {
		parts = append(parts, fmt.Sprintf("%d each", e.NodeThreads))
	}
	return strings.Join(parts, ", ")
}

func queueList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List queues, newest first", Args: exactly(0)}
	output := wideFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withStore(cmd.Context(), func(st store.Store) error {
			queues, err := st.Queues(cmd.Context())
			if err == nil {
				err = st.CountQueues(cmd.Context(), queues)
			}
			if err != nil {
				return err
			}
			sort.Slice(queues, func(x, y int) bool { return bytes.Compare(queues[x].ID.ID[:], queues[y].ID.ID[:]) > 0 })
			entries := make([]queueEntry, len(queues))
			for i := range queues {
				entries[i] = entryOfQueue(&queues[i])
			}
			if output.json() {
				return errors.Join(view.JSON(a.Stdout, entries), a.noteRefused(cmd.Context(), st))
			}
			t := view.Table{Head: []string{"QUEUE", "STATE", "PLUGIN", "THREADS", "ACTIVE", "QUEUED", "SORT"}, Paint: a.paint(a.Stdout).States(1)}
			nodes := slices.ContainsFunc(entries, func(e queueEntry) bool { return e.nodes() != "" })
			if nodes {
				t.Head = append(t.Head, "NODES")
			}
			lost := slices.ContainsFunc(entries, func(e queueEntry) bool { return e.OnLost != plan.OnLostDefault })
			if lost {
				t.Head = append(t.Head, "ON-LOST")
			}
			secret := slices.ContainsFunc(entries, func(e queueEntry) bool { return len(e.Secrets) > 0 })
			if secret {
				t.Head = append(t.Head, "SECRET")
			}
			kept := slices.ContainsFunc(entries, func(e queueEntry) bool { return e.keep() != "" })
			if kept {
				t.Head = append(t.Head, "KEEP")
			}
			if output.wide() {
				t.Head = append(t.Head, "ID")
			}
			for i := range entries {
				e := &entries[i]
				cells := []string{e.Name, e.State, e.Plugin, e.threads(), strconv.Itoa(e.Active), strconv.Itoa(e.Queued), string(e.Sort)}
				if nodes {
					cells = append(cells, e.nodes())
				}
				if lost {
					cells = append(cells, string(e.OnLost))
				}
				if secret {
					cells = append(cells, strings.Join(e.Secrets, ","))
				}
				if kept {
					cells = append(cells, e.keep())
				}
				if output.wide() {
					cells = append(cells, e.ID.String())
				}
				t.Add(cells...)
			}
			if err := t.Print(a.Stdout); err != nil {
				return err
			}
			return a.noteRefused(cmd.Context(), st)
		})
	}
	return cmd
}

// noteRefused names what other programs wrote into the store that no node can serve.
func (a *app) noteRefused(ctx context.Context, st store.Store) error {
	s, ok := st.(store.Refuser)
	if !ok {
		return nil
	}
	refused, err := s.Refused(ctx)
	for _, text := range refused {
		a.note("%s", text)
	}
	return err
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

// eachValue is the flag that limits what one node has of a queue: a number or "unlimited".
type eachValue int

func (v *eachValue) Type() string { return "N|" + unlimited }
func (v *eachValue) String() string {
	if *v <= 0 {
		return unlimited
	}
	return strconv.Itoa(int(*v))
}

// Set implements pflag.Value.
func (v *eachValue) Set(word string) error {
	if word == unlimited {
		*v = 0
		return nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > plan.MaxThreads {
		return fmt.Errorf("it is a number of tasks, 1 to %d, or %s", plan.MaxThreads, unlimited)
	}
	*v = eachValue(n)
	return nil
}

// queueFlags are the flags that a queue is made and changed with.
type queueFlags struct {
	threads     threadsValue
	sort        choice
	pin, ignore []string
	each        eachValue
	onLost      choice
	secret      []string
	keep        keepValue
}

// limitFlags are the names of these flags.
var limitFlags = []string{"threads", "sort", "pin", "ignore", "node-threads", "on-lost", "secret", "keep"}

func (f *queueFlags) add(cmd *cobra.Command) {
	f.sort = choice{"default", []string{"default", string(plan.SortFIFO), string(plan.SortLIFO)}}
	f.onLost = choice{"default", []string{"default", string(plan.OnLostRetry), string(plan.OnLostFail)}}
	flags := cmd.Flags()
	flags.Var(&f.threads, "threads", "how many of its tasks may run at once, over all nodes; 0 pauses it")
	flags.Var(&f.sort, "sort", "what is claimed first: default (longest way to the plan's end), fifo or lifo")
	flags.StringSliceVar(&f.pin, "pin", nil, "names of the only nodes that serve it; none, as in --pin=, takes that off")
	flags.StringSliceVar(&f.ignore, "ignore", nil, "names of nodes that do not serve it, where it is not pinned; none, as in --ignore=, takes that off")
	flags.Var(&f.each, "node-threads", "how many of its tasks one node may run at once, over all its processes")
	flags.Var(&f.onLost, "on-lost", "what becomes of its tasks whose node died while they ran, if they do not say it themselves:\n"+
		"retry queues them again, fail does not, default is retry for tasks of plans and fail for others")
	flags.StringSliceVar(&f.secret, "secret", nil, "names of params that are never shown, of tasks in any queue, whatever their case; a * stands for any letters,\n"+
		"as in *_key; none, as in --secret=, takes that off")
	flags.Var(&f.keep, "keep", "how long its finished tasks that are of no plan stay: an age, as in 30d, forever or default, or one for each state,\n"+
		"as in succeeded=1d,failed=30d; the default is 30 days on SQLite, and for ever on MongoDB")
}

// apply changes of a queue what the flags say that were given.
func (f *queueFlags) apply(cmd *cobra.Command, q *plan.Queue) error {
	given := cmd.Flags().Changed
	if given("threads") {
		q.Threads, q.Unlimited = f.threads.n, f.threads.unlimited
	}
	if given("sort") {
		q.Sort = sortOf(&f.sort)
	}
	var err error
	if given("pin") {
		q.Pin, err = nodeNames("--pin", f.pin)
	}
	if given("ignore") && err == nil {
		q.Ignore, err = nodeNames("--ignore", f.ignore)
	}
	if given("node-threads") {
		q.NodeThreads = int(f.each)
	}
	if given("on-lost") {
		if q.OnLost = plan.OnLost(f.onLost.value); f.onLost.value == "default" {
			q.OnLost = plan.OnLostDefault
		}
	}
	if given("keep") {
		f.keep.apply(&q.Keep)
	}
	if given("secret") && err == nil {
		if q.Secrets, err = plan.CheckSecretNames(f.secret); err != nil {
			err = usagef("--secret: %w", err)
		}
	}
	return err
}

// named returns the nodes that the flags name.
func (f *queueFlags) named() (names []plan.NodeName) {
	for _, w := range slices.Concat(f.pin, f.ignore) {
		names = append(names, plan.NodeName(w))
	}
	return names
}

func nodeNames(flag string, words []string) (names []plan.NodeName, err error) {
	for _, w := range words {
		if w == "" || strings.TrimSpace(w) != w {
			return nil, usagef("%s: %q is no node's name; names go with commas and no blanks between, as in %s n1,n2", flag, w, flag)
		}
		if !slices.Contains(names, plan.NodeName(w)) {
			names = append(names, plan.NodeName(w))
		}
	}
	return names, nil
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
		Example: "  sluice queue create imap --plugin exec --threads 4\n  sluice queue create mail --pin mig01,mig02 --node-threads 2",
	}
	flags := queueFlags{threads: threadsValue{unlimited: true}}
	flags.add(cmd)
	plugin := cmd.Flags().String("plugin", plan.DefaultPlugin, "what its tasks do")
	completeWords(cmd, "plugin", a.Plugins.Names())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		q := plan.Queue{Name: args[0], Plugin: *plugin, Unlimited: true}
		if err := flags.apply(cmd, &q); err != nil {
			return err
		}
		for _, name := range []string{q.Name, q.Plugin} {
			if err := plan.CheckQueueName(name); name != "" && err != nil {
				return usagef("queue %.20q… of plugin %.20q…: %w", q.Name, q.Plugin, err)
			}
		}
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
			a.noteBoth(&q)
			if err := a.noteNobody(ctx, st, flags.named()); err != nil {
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
		Use:   "set NAME",
		Short: "Change a queue's limits, order, nodes and other settings",
		Long: "Change a queue's limits, its order, which nodes serve it, what becomes of its tasks whose node died, which params are never\n" +
			"shown, or how long its finished tasks stay that are of no plan. Nodes that run keep to it from their next claim on; what runs already\n" +
			"goes on.",
		Args:              exactly(1),
		ValidArgsFunction: a.completeQueue,
		Example: "  sluice queue set imap --threads 8\n  sluice queue set imap --threads 0     # pause it\n" +
			"  sluice queue set imap --pin mig01,mig02 --node-threads 2\n  sluice queue set imap --pin= --node-threads unlimited     # take that off\n" +
			"  sluice queue set imap --on-lost fail\n  sluice queue set imap --secret password,'*_key'\n  sluice queue set imap --keep succeeded=1d,failed=30d",
	}
	var flags queueFlags
	flags.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if !slices.ContainsFunc(limitFlags, cmd.Flags().Changed) {
			return usagef("nothing to change: give --threads, --sort, --pin, --ignore, --node-threads, --on-lost, --secret or --keep")
		}
		return a.withStore(ctx, func(st store.Store) error {
			q, err := changeQueue(ctx, st, args[0], func(q *plan.Queue) error { return flags.apply(cmd, q) })
			if err != nil {
				return err
			}
			e := entryOfQueue(&q)
			paused := ""
			if !q.Unlimited && q.Threads <= 0 {
				paused = ", so it is paused"
			}
			nodes := e.nodes()
			if nodes != "" {
				nodes = ", nodes " + nodes
			}
			lost := ""
			if e.OnLost != plan.OnLostDefault {
				lost = ", on-lost " + string(e.OnLost)
			}
			secret := ""
			if len(e.Secrets) > 0 {
				secret = ", secret " + strings.Join(e.Secrets, ",")
			}
			keep := ""
			if e.keep() != "" {
				keep = ", keep " + e.keep()
			}
			a.noteBoth(&q)
			if err := a.noteNobody(ctx, st, flags.named()); err != nil {
				return err
			}
			if cmd.Flags().Changed("threads") {
				if err := a.noteBalanced(ctx, st, q.Name); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(a.Stdout, "queue %s has threads %s%s, sort %s%s%s%s%s\n", cells.Clean(e.Name), e.threads(), paused, e.Sort, nodes, lost, cells.Clean(secret), keep)
			return err
		})
	}
	return cmd
}

func queueDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a queue",
		Long: "Delete a queue. It is refused while a task of a plan is in it that has not finished. Other tasks that are in it stay where they are,\n" +
			"and nobody claims them any more; what runs already goes on.",
		Args:              exactly(1),
		ValidArgsFunction: a.completeQueue,
		Example:           "  sluice queue delete imap",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withStore(ctx, func(st store.Store) error {
				q, err := findQueue(ctx, st, args[0])
				if err != nil {
					return err
				}
				deleter, ok := st.(store.QueueDeleter)
				if !ok {
					return fmt.Errorf("queue %q: this store does not delete queues", q.Name)
				}
				if err := deleter.DeleteQueue(ctx, q.ID); err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.Stdout, "queue %s is deleted\n", cells.Clean(q.Name))
				return err
			})
		},
	}
}

// changeQueue sets some settings of the queue with that name or id, and keeps the others as they are, whoever sets those meanwhile.
func changeQueue(ctx context.Context, st store.Store, word string, set func(*plan.Queue) error) (plan.Queue, error) {
	const tries = 10
	for try := 1; ; try++ {
		was, err := findQueue(ctx, st, word)
		if err != nil {
			return was, err
		}
		q := was
		if err := set(&q); err != nil {
			return q, err
		}
		if err := st.ChangeQueue(ctx, was, q); !errors.Is(err, plan.ErrConflict) || try == tries {
			return q, err
		}
	}
}

// noteBoth says that of a pin and nodes that are ignored only the first counts.
func (a *app) noteBoth(q *plan.Queue) {
	if len(q.Pin) > 0 && len(q.Ignore) > 0 {
		a.note("queue %s is pinned and has nodes that it ignores too: only the pin counts", q.Name)
	}
}

// noteNobody says which of the names that a queue was given no node has now: a node may be started later, and a name may be mistyped.
func (a *app) noteNobody(ctx context.Context, st store.Store, names []plan.NodeName) error {
	if len(names) == 0 {
		return nil
	}
	nodes, err := st.Instances(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(nodes, func(i plan.Instance) bool { return i.Node == name }) {
			continue
		}
		if heard, err := foreignHeard(ctx, st, name); err != nil {
			return err
		} else if heard.IsZero() {
			a.noteNoNode(name, nodes)
		}
	}
	return nil
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
