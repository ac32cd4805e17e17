package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/store"
)

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

// balanceSilent is after how long who balances is taken for gone, as Disbatch's monitoring has it.
const balanceSilent = time.Minute

// balanceFile reads a balance document from a file, and tells what is probably not meant in it.
func (a *app) balanceFile(path string) (json.RawMessage, *balance.Document, error) {
	text, b, warnings, err := config.ReadBalance(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, usagef("%s is not there; check the path", path)
	}
	a.told("warning", warnings)
	return text, b, asUsage(err)
}

func (a *app) toEnable() string { return "to end that: " + a.command("balance", "set", "--enable") }

// disabledUntil returns until when a document says that nothing is to be changed, zero if it does not. It says so also where the rest of it is
// malformed, since that is about to be replaced, or is mended in that time.
func disabledUntil(document json.RawMessage) time.Time {
	var is map[string]json.RawMessage
	if json.Unmarshal(document, &is) != nil || is["disabled"] == nil {
		return time.Time{}
	}
	alone, err := balance.With(balance.Empty, json.RawMessage(`{"disabled": `+string(is["disabled"])+"}"))
	if err != nil {
		return time.Time{}
	}
	b, err := balance.Parse(alone)
	if err != nil {
		return time.Time{}
	}
	return b.Disabled
}

// balancing returns the balance document where it gives a queue its threads; else nil.
func balancing(ctx context.Context, r store.Reader, queue string) (*balance.Document, json.RawMessage, error) {
	from, ok := r.(store.Balance)
	if !ok {
		return nil, nil, nil
	}
	document, err := from.Balance(ctx)
	var b *balance.Document
	if err == nil && document != nil {
		b, err = balance.Parse(document)
	}
	if errors.Is(err, balance.ErrMalformed) { // by which nobody works
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
		a.note("the balance document names queue %s: the next balancer sets its threads again; %s "+
			"shows the value", queue, a.command("balance", "show"))
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
