package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func balanceCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "balance",
		Short: "Balance queues by day, time and priority",
		Long: "Look at, check and change the balance document, by which nodes give queues their threads: how many tasks they may run together, by\n" +
			"day and time, and which come first. It is Disbatch 4's; docs/balance.md explains it. Nodes balance that are started with --config\n" +
			"and a file that has balance.enabled.",
	}, balanceShow(a), balanceCheck(a), balanceSet(a))
}

// A balanceEntry is the balance document and what follows from it, in JSON.
type balanceEntry struct {
	Document json.RawMessage `json:"document"` // null: there is none
	MaxTasks *int            `json:"max_tasks"`
	Notes    []string        `json:"notes"`
	Queues   []balancedQueue `json:"queues"`
	Mistake  string          `json:"mistake,omitempty"`
}

// A balancedQueue is a queue that the document names.
type balancedQueue struct {
	ID      plan.QueueID `json:"id"`
	Name    string       `json:"name"`
	Set     int          `json:"set"`
	Threads *int         `json:"threads"` // null: unlimited
	Queued  int          `json:"queued"`
	Active  int          `json:"active"`
	Share   int          `json:"share"`
}

func balanceShow(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show who balances how, and what each queue would get now",
		Long: "Show what the balance document says of who works by it, how many tasks the queues may run together now, by this host's clock on the\n" +
			"wall, and what each queue would get now.",
		Args: exactly(0),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		return a.withBalance(ctx, a.withStore, func(st store.Store, b store.Balance) error {
			now, err := st.Now(ctx)
			if err != nil {
				return err
			}
			e, err := readBalance(ctx, st, b, now)
			if err != nil {
				return err
			}
			if !output.json() {
				return a.printBalance(e, now)
			}
			if err := view.JSON(a.Stdout, e); err != nil || e.Mistake == "" {
				return err
			}
			return &saidError{errors.New(e.Mistake)}
		})
	}
	return cmd
}

// withBalance runs do with a store that has a balance document.
func (a *app) withBalance(ctx context.Context, with func(context.Context, func(store.Store) error) error, do func(store.Store, store.Balance) error) error {
	return with(ctx, func(st store.Store) error {
		b, ok := st.(store.Balance)
		if !ok {
			return errors.New("this store has no balance document")
		}
		return do(st, b)
	})
}

func readBalance(ctx context.Context, st store.Store, from store.Balance, now time.Time) (*balanceEntry, error) {
	e := &balanceEntry{Notes: []string{}, Queues: []balancedQueue{}}
	document, err := from.Balance(ctx)
	if e.Document = document; document == nil {
		e.Document = json.RawMessage("null")
	}
	var b *plan.Balance
	if err == nil && document != nil {
		b, err = plan.ParseBalance(document)
	}
	if errors.Is(err, plan.ErrBalance) {
		e.Mistake, err = err.Error(), nil
	}
	if err != nil || b == nil {
		return e, err
	}
	queues, err := st.Queues(ctx)
	if err == nil {
		err = st.CountQueues(ctx, queues)
	}
	if err != nil {
		return nil, err
	}
	most := b.MaxTasks(now.Local())
	shares, missing := b.Shares(most, queues)
	e.MaxTasks, e.Notes = &most, append(append(e.Notes, b.Notes...), missing...)
	for i := range shares {
		q := &shares[i].Queue
		in := slices.IndexFunc(b.Sets, func(set []string) bool { return slices.Contains(set, q.Name) })
		e.Queues = append(e.Queues, balancedQueue{ID: q.ID, Name: q.Name, Set: in, Threads: entryOfQueue(q).Threads, Queued: q.Queued, Active: q.Active, Share: shares[i].Threads})
	}
	return e, nil
}

// balanceSilent is after how long who balances is taken for gone, as Disbatch's monitoring has it.
const balanceSilent = time.Minute

func (a *app) printBalance(e *balanceEntry, now time.Time) error {
	if string(e.Document) == "null" && e.Mistake == "" {
		_, err := fmt.Fprintf(a.Stdout, "there is no balance document; make one with: %s\n", a.command("balance", "set", "FILE"))
		return err
	}
	var s struct { // whatever else a program may have written there
		Status, Message, Timestamp any
	}
	alone := true // nobody balances, who would say what follows from the document
	if err := json.Unmarshal(e.Document, &s); err == nil && s.Status != nil {
		at := ""
		if seconds, ok := s.Timestamp.(float64); ok {
			last := time.Unix(int64(seconds), 0)
			if alone = now.Sub(last) > balanceSilent; alone {
				fmt.Fprintln(a.Stdout, "nobody balances now, and threads stay as they are; who did last said:")
			}
			at = ", " + view.Ago(last, now)
		}
		fmt.Fprintf(a.Stdout, "%v%s: %v\n", s.Status, at, s.Message)
	} else {
		fmt.Fprintln(a.Stdout, "no node has balanced by it yet")
	}
	if until := disabledUntil(e.Document); alone && until.After(now) {
		fmt.Fprintf(a.Stdout, "disabled until %s; %s\n", until.Local().Format(time.DateTime), a.toEnable())
	}
	for _, n := range e.Notes {
		fmt.Fprintln(a.Stderr, "note: "+n)
	}
	if e.Mistake != "" {
		return fmt.Errorf("the balance document cannot be worked by: %s", e.Mistake)
	}
	fmt.Fprintf(a.Stdout, "at most %d tasks together now\n", *e.MaxTasks)
	t := view.Table{Head: []string{"QUEUE", "SET", "THREADS", "ACTIVE", "QUEUED", "SHARE"}}
	for _, q := range e.Queues {
		threads := unlimited
		if q.Threads != nil {
			threads = strconv.Itoa(*q.Threads)
		}
		t.Add(q.Name, strconv.Itoa(q.Set), threads, strconv.Itoa(q.Active), strconv.Itoa(q.Queued), strconv.Itoa(q.Share))
	}
	return t.Print(a.Stdout)
}

// balanceFile reads a balance document from a file, and tells what is probably not meant in it.
func (a *app) balanceFile(path string) (json.RawMessage, *plan.Balance, error) {
	text, b, warnings, err := config.ReadBalance(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, usagef("%s is not there; check the path", path)
	}
	a.told("warning", warnings)
	return text, b, asUsage(err)
}

func balanceCheck(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a balance document in a file",
		Long: "Check a balance document in a file, JSON in which comments and trailing commas may be, as in Disbatch's configuration file: each mistake\n" +
			"is told with file, line and column. Nothing is connected to.",
		Args:    exactly(1),
		Example: "  sluice balance check balance.json",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		_, b, err := a.balanceFile(args[0])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Stdout, "%s is valid; it allows %d tasks now\n", args[0], b.MaxTasks(time.Now()))
		return err
	}
	return cmd
}

// keepDisabled leaves a pause that is in force as it is, where a file says none: a person who changes what the document says in that time does not
// mean to end it.
func (a *app) keepDisabled(now time.Time, document json.RawMessage, file *plan.Balance, settings map[string]json.RawMessage) {
	if until := disabledUntil(document); !file.Disabled.After(now) && until.After(now) {
		delete(settings, "disabled")
		a.note("it stays disabled until %s; %s", until.Local().Format(time.DateTime), a.toEnable())
	}
}

func (a *app) toEnable() string { return "to end that: " + a.command("balance", "set", "--enable") }

// disabledUntil returns until when a document says that nothing is to be changed, zero if it does not. It says so also where the rest of it is
// malformed, since that is about to be replaced, or is mended in that time.
func disabledUntil(document json.RawMessage) time.Time {
	var is map[string]json.RawMessage
	if json.Unmarshal(document, &is) != nil || is["disabled"] == nil {
		return time.Time{}
	}
	alone, err := plan.WithBalance(plan.EmptyBalance, json.RawMessage(`{"disabled": `+string(is["disabled"])+"}"))
	if err != nil {
		return time.Time{}
	}
	b, err := plan.ParseBalance(alone)
	if err != nil {
		return time.Time{}
	}
	return b.Disabled
}

// balancing returns the balance document where it gives a queue its threads; else nil.
func balancing(ctx context.Context, r store.Reader, queue string) (*plan.Balance, json.RawMessage, error) {
	from, ok := r.(store.Balance)
	if !ok {
		return nil, nil, nil
	}
	document, err := from.Balance(ctx)
	var b *plan.Balance
	if err == nil && document != nil {
		b, err = plan.ParseBalance(document)
	}
	if errors.Is(err, plan.ErrBalance) { // by which nobody works
		return nil, nil, nil
	}
	if err != nil || b == nil || !slices.ContainsFunc(b.Sets, func(set []string) bool { return slices.Contains(set, queue) }) {
		return nil, nil, err
	}
	return b, document, nil
}

// noteBalanced says so where a node, or Disbatch's QueueBalance, sets a queue's threads, and so will set them again.
func (a *app) noteBalanced(ctx context.Context, st store.Store, queue string) error {
	b, document, err := balancing(ctx, st, queue)
	if err != nil || b == nil {
		return err
	}
	now, err := st.Now(ctx)
	if err != nil {
		return err
	}
	pause := a.command("balance", "set", "--disable", "1h")
	switch last, _ := balancedAt(document); {
	case b.Disabled.After(now):
		a.note("QueueBalance sets the threads of queue %s, and is disabled until %s: then it sets them again", queue, b.Disabled.Local().Format(time.DateTime))
	case now.Sub(last) > balanceSilent:
		a.note("the balance document names queue %s: nobody balances now, and who does next sets its threads again; %s shows to what", queue, a.command("balance", "show"))
	default:
		a.note("QueueBalance sets the threads of queue %s again within seconds: change what it works by (%s), or have it leave the queues alone for a while: %s",
			queue, a.command("balance", "set", "FILE"), pause)
	}
	return nil
}

// balancedAt returns when somebody worked by the document last, if it says so.
func balancedAt(document json.RawMessage) (at time.Time, ok bool) {
	var s struct{ Timestamp any } // whatever else a program may have written there
	if err := json.Unmarshal(document, &s); err != nil {
		return at, false
	}
	seconds, ok := s.Timestamp.(float64)
	return time.Unix(int64(seconds), 0), ok
}

func balanceSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set [FILE]",
		Short: "Change the balance document",
		Long: "Take queues, max_tasks and disabled of the balance document from a file, or disable and enable what it says. Who balances heeds it\n" +
			"within seconds. A file that is not valid changes nothing. What is disabled stays so until its time, or until --enable, unless the file\n" +
			"says until when.",
		Args:    between(0, 1),
		Example: "  sluice balance set balance.json\n  sluice balance set --disable 1h\n  sluice balance set --enable",
	}
	var pause time.Duration
	spanFlag(cmd, &pause, "disable", 0, "leave the queues as they are for so long")
	enable := cmd.Flags().Bool("enable", false, "balance again")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		disable := cmd.Flags().Changed("disable")
		switch {
		case disable && *enable:
			return usagef("--disable and --enable: give one of them")
		case !disable && !*enable && len(args) == 0:
			return usagef("nothing to change: give a file, --disable or --enable")
		}
		settings := map[string]json.RawMessage{}
		var b *plan.Balance
		if len(args) > 0 {
			var text json.RawMessage
			var err error
			if text, b, err = a.balanceFile(args[0]); err != nil {
				return err
			}
			if err := json.Unmarshal(text, &settings); err != nil {
				return err
			}
			for key := range settings { // the others are who balances'
				if !slices.Contains([]string{"queues", "max_tasks", "disabled"}, key) {
					delete(settings, key)
				}
			}
		}
		ctx, with := cmd.Context(), a.withStore
		if b != nil {
			with = a.makingStore
		}
		return a.withBalance(ctx, with, func(st store.Store, to store.Balance) error {
			there, err := to.Balance(ctx)
			if err != nil { // of several it would change any one
				return err
			}
			now, err := st.Now(ctx)
			if err != nil {
				return err
			}
			switch {
			case *enable:
				settings["disabled"] = json.RawMessage("null")
			case !disable:
				a.keepDisabled(now, there, b, settings)
			case disable:
				settings["disabled"] = json.RawMessage(strconv.FormatInt(now.Add(pause).Unix(), 10))
			}
			if b != nil {
				queues, err := st.Queues(ctx)
				if err != nil {
					return err
				}
				if _, missing := b.Shares(0, queues); len(missing) > 0 {
					fmt.Fprintf(a.Stderr, "note: %s; it counts once it is made\n", plan.JoinPlaces(missing))
				}
			} else if there == nil {
				return errors.New("there is no balance document; give a file")
			}
			text, err := json.Marshal(settings)
			if err != nil {
				return err
			}
			return to.SetBalance(ctx, text)
		})
	}
	return cmd
}
