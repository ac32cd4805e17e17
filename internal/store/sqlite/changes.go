package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// keepChanges is how long the feed of changes reaches back.
const keepChanges = time.Hour

// A row of changes holds the numbers of the plans and then of the tasks that one transaction
// changed. The numbers ascend, and each is a varint of the distance from the one before. The count
// of plans comes first. Readers read the present state from the plans and tasks themselves.

func (t *tx) flushChanges() {
	if len(t.changed)+len(t.shown) > 0 {
		t.exec("INSERT INTO changes (at, body) VALUES (?, ?)", t.now, t.packChanges())
	}
}

func (t *tx) packChanges() []byte {
	t.shown, t.changed = distinct(t.shown), distinct(t.changed)
	body := make([]byte, 0, 2*(len(t.changed)+len(t.shown))+8)
	body = binary.AppendUvarint(body, uint64(len(t.shown)))
	return appendDistances(appendDistances(body, t.shown), t.changed)
}

func appendDistances(b []byte, ns []int64) []byte {
	last := int64(0)
	for _, n := range ns {
		b = binary.AppendUvarint(b, uint64(n-last))
		last = n
	}
	return b
}

// changedThing is a task, or a plan.
type changedThing struct {
	n    int64
	plan bool
}

func unpackChanges(b []byte) ([]changedThing, error) {
	var out []changedThing
	plans, width := binary.Uvarint(b)
	last := int64(0)
	for b = b[max(width, 0):]; len(b) > 0 && width > 0; b = b[max(width, 0):] {
		if uint64(len(out)) == plans {
			last = 0
		}
		var d uint64
		d, width = binary.Uvarint(b)
		last += int64(d)
		out = append(out, changedThing{n: last, plan: uint64(len(out)) < plans})
	}
	if width <= 0 {
		return nil, fmt.Errorf("a row of changes is damaged")
	}
	return out, nil
}

// feedPlace is a place in the feed: all of a row, or the first things of the row behind it.
type feedPlace struct {
	seq, things int64
}

func parseCursor(c store.Cursor) (p feedPlace, err error) {
	if c == "" {
		return p, nil
	}
	seq, things, partly := strings.Cut(string(c), ".")
	if p.seq, err = strconv.ParseInt(seq, 10, 64); err == nil && partly {
		p.things, err = strconv.ParseInt(things, 10, 64)
	}
	if err != nil || p.seq < 0 || p.things < 0 {
		return p, fmt.Errorf("%q: %w", c, plan.ErrCursor)
	}
	return p, nil
}

func (p feedPlace) cursor() store.Cursor {
	if p.things == 0 {
		return store.Cursor(strconv.FormatInt(p.seq, 10))
	}
	return store.Cursor(fmt.Sprintf("%d.%d", p.seq, p.things))
}

func (s *Store) Now(context.Context) (time.Time, error) { return s.now().UTC(), nil }

func (s *Store) Latest(ctx context.Context) (at store.Cursor, err error) {
	err = s.read(ctx, func(c *conn) error {
		at = feedPlace{seq: c.lastChange()}.cursor()
		return nil
	})
	return at, err
}

// lastChange returns the seq of the last row of changes that there was.
func (c *conn) lastChange() int64 {
	if r := c.query("SELECT seq FROM sqlite_sequence WHERE name = 'changes'"); r.one() {
		return r.int(0)
	}
	return 0
}

// Changes implements store.Reader. A cursor from before the time that the feed reaches back gets what there is.
func (s *Store) Changes(ctx context.Context, after store.Cursor, limit int) (out []store.Change, next store.Cursor, err error) {
	at, err := parseCursor(after)
	if err != nil || limit <= 0 {
		return nil, after, err
	}
	err = s.read(ctx, func(c *conn) error {
		var things []changedThing
		was := at
		if things, at, err = c.changesAfter(at, limit); err != nil {
			return err
		}
		if last := c.lastChange(); at == was && (was.seq > last || was.seq == last && was.things > 0) {
			return fmt.Errorf("%q, and the last change is %d: %w", after, last, plan.ErrCursor)
		}
		out = c.describe(things)
		return nil
	})
	if err != nil {
		return nil, after, err
	}
	return out, at.cursor(), nil
}

// changesAfter returns the changes behind a place, up to limit different plans and tasks, and the
// place behind them. A thing that changed again counts once: a short page means that there is no
// more.
func (c *conn) changesAfter(at feedPlace, limit int) (things []changedThing, next feedPlace, err error) {
	// Seqs may have gaps: the row that at is in the middle of is the first one behind at.seq.
	r := c.query("SELECT seq, body FROM changes WHERE seq > ? ORDER BY seq", at.seq)
	defer r.close()
	seen := map[changedThing]bool{}
	for len(seen) < limit && r.next() {
		row, err := unpackChanges(r.bytes(1))
		if err != nil {
			return nil, at, err
		}
		row = row[min(at.things, int64(len(row))):]
		for i, x := range row {
			if !seen[x] && len(seen) == limit {
				return things, feedPlace{at.seq, at.things + int64(i)}, nil
			}
			seen[x] = true
			things = append(things, x)
		}
		at = feedPlace{seq: r.int(0)}
	}
	return things, at, nil
}

// describe returns the present state of what changed, in the order in which it changed last, each once; what is not there any more is left out.
func (c *conn) describe(things []changedThing) []store.Change {
	var tasks, plans []int64
	for _, x := range things {
		if x.plan {
			plans = append(plans, x.n)
		} else {
			tasks = append(tasks, x.n)
		}
	}
	found := make(map[changedThing]store.Change, len(things))
	for r := c.query(`SELECT t.n, t.modified, p.id, t.id, t.name, f.id, t.status, t.reason, t.attempt, i.node, t.detail, t.output, t.flags & 1
		FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.n = j.value LEFT JOIN plans AS p ON p.n = t.plan LEFT JOIN tasks AS f ON f.n = t.of AND t.of <> 0
		LEFT JOIN instances AS i ON i.n = t.instance`, list(distinct(tasks))); r.next(); {
		found[changedThing{n: r.int(0)}] = store.Change{
			At: instant(r.int(1)), Plan: plan.PlanID{ID: r.id(2)}, Task: plan.TaskID{ID: r.id(3)}, Name: r.text(4), Of: plan.TaskID{ID: r.id(5)},
			Status: plan.Status(r.int(6)), Reason: plan.Reason(r.text(7)), Attempt: int(r.int(8)), Node: plan.NodeName(r.text(9)), Detail: r.text(10),
			Output:  r.bytes(11),
			Allowed: plan.Status(r.int(6)).Allowed(r.bool(12)),
		}
	}
	for r := c.query("SELECT p.n, p.modified, p.id, p.name, p.state FROM json_each(?) AS j CROSS JOIN plans AS p ON p.n = j.value WHERE p.leaving = 0",
		list(distinct(plans))); r.next(); {
		found[changedThing{n: r.int(0), plan: true}] = store.Change{
			At: instant(r.int(1)), Plan: plan.PlanID{ID: r.id(2)}, Name: r.text(3), State: plan.Lifecycle(r.int(4)),
		}
	}
	last := make(map[changedThing]int, len(things))
	for i, x := range things {
		last[x] = i
	}
	out := make([]store.Change, 0, len(last))
	for i, x := range things {
		if change, ok := found[x]; ok && last[x] == i {
			out = append(out, change)
		}
	}
	return out
}

// forgetChanges deletes rows that the feed does not reach back to any more. More of them go with a sweep than come between two.
func (t *tx) forgetChanges() {
	old := t.now - keepChanges.Microseconds()
	if r := t.query("SELECT at FROM changes ORDER BY seq LIMIT 1"); !r.one() || r.int(0) >= old {
		return
	}
	t.exec("DELETE FROM changes WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM changes ORDER BY seq LIMIT 20000) WHERE at < ?)", old)
}
