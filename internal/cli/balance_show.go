package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func balanceShow(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the balancer, and what each queue would get now",
		Long: "Show the state of the balancer, how many tasks the queues may run together now " +
			"(in this host's time zone), and what each queue would get now.",
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

func readBalance(ctx context.Context, st store.Store, from store.Balance, now time.Time) (*balanceEntry, error) {
	e := &balanceEntry{Notes: []string{}, Queues: []balancedQueue{}}
	document, err := from.Balance(ctx)
	if e.Document = document; document == nil {
		e.Document = json.RawMessage("null")
	}
	var b *balance.Document
	if err == nil && document != nil {
		b, err = balance.Parse(document)
	}
	if errors.Is(err, balance.ErrMalformed) {
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

func (a *app) printBalance(e *balanceEntry, now time.Time) error {
	if string(e.Document) == "null" && e.Mistake == "" {
		return a.say("there is no balance document; make one with: %s", a.command("balance", "set", "FILE"))
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
		return fmt.Errorf("the balance document cannot be used: %s", e.Mistake)
	}
	fmt.Fprintf(a.Stdout, "at most %d tasks together now\n", *e.MaxTasks)
	t := view.Table{Head: []string{"QUEUE", "SET", "THREADS", "ACTIVE", "QUEUED", "SHARE"}}
	for _, q := range e.Queues {
		t.Add(q.Name, strconv.Itoa(q.Set), limitText(q.Threads), strconv.Itoa(q.Active), strconv.Itoa(q.Queued), strconv.Itoa(q.Share))
	}
	return t.Print(a.Stdout)
}
