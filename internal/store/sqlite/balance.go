package sqlite

import (
	"context"
	"encoding/json"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Balance = (*Store)(nil)

// The balance document, and the ids of the instances that hold roles, are rows of meta. A text that is no number, and bytes, stay what
// they are in a column for numbers.
const (
	balanceKey = "balance"
	holderKey  = "holder of " // the role
)

func (s *Store) Hold(ctx context.Context, role protocol.Role, i plan.InstanceID) (held bool, err error) {
	var free bool
	err = s.read(ctx, func(c *conn) error {
		held, free = holder(c, role, i)
		return nil
	})
	if err != nil || held || !free {
		return held, err
	}
	err = s.write(ctx, func(t *tx) error {
		if _, err := t.instance(i); err != nil {
			return err
		}
		if held, free = holder(t.conn, role, i); free {
			t.exec(setMeta, holderKey+string(role), i.ID[:])
			held = true
		}
		return nil
	})
	return held && err == nil, err
}

// holder reports whether the instance, which has to be registered, has the role, or nobody who is registered.
func holder(c *conn, role protocol.Role, i plan.InstanceID) (held, free bool) {
	r := c.query("SELECT h.value FROM meta h JOIN instances i ON i.id = h.value AND i.gone = 0 WHERE h.key = ?", holderKey+string(role))
	if !r.one() {
		return false, true
	}
	return r.id(0) == i.ID, false
}

func (s *Store) Balance(ctx context.Context) (document json.RawMessage, err error) {
	err = s.read(ctx, func(c *conn) error {
		if r := c.query(getMeta, balanceKey); r.one() {
			document = json.RawMessage(r.text(0))
		}
		return nil
	})
	return document, err
}

func (s *Store) SetBalance(ctx context.Context, settings json.RawMessage) error {
	return s.write(ctx, func(t *tx) error {
		var there json.RawMessage
		if r := t.query(getMeta, balanceKey); r.one() {
			there = json.RawMessage(r.text(0))
		}
		document, err := balance.With(there, settings)
		if err == nil {
			t.exec(setMeta, balanceKey, string(document))
		}
		return err
	})
}

func (s *Store) SetThreads(ctx context.Context, was plan.Queue, threads int) error {
	return s.write(ctx, func(t *tx) error {
		n, err := t.queueNumber(was.ID)
		if err != nil {
			return err
		}
		is := t.queue(n)
		change, err := rules.CheckThreads(is.Queue, was, threads)
		if !change || err != nil {
			return err
		}
		t.exec("UPDATE queues SET threads = ?, unlimited = 0 WHERE n = ?", threads, n)
		if is.Queued > 0 {
			t.queued++ // others may claim now what they could not before
		}
		return nil
	})
}
