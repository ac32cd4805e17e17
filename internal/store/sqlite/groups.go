package sqlite

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	everyGroup = "SELECT name, doc, spent FROM queue_groups AS whole ORDER BY name"
	oneGroup   = "SELECT name, doc, spent FROM queue_groups WHERE name = ?"
)

// groups reads all groups.
func (c *conn) groups() (all []plan.Group) {
	for r := c.query(everyGroup); r.next(); {
		all = append(all, r.group())
	}
	return all
}

func (r *rows) group() plan.Group {
	g := plan.GroupOf(r.text(0), r.text(1))
	g.Spent = instant(r.int(2))
	return g
}

func (s *Store) Groups(ctx context.Context) (all []plan.Group, err error) {
	err = s.read(ctx, func(c *conn) error {
		all = c.groups()
		return nil
	})
	return all, err
}

func (s *Store) PutGroup(ctx context.Context, was, g plan.Group) error {
	return s.write(ctx, func(t *tx) error {
		groups := t.groups()
		change, err := rules.SetGroup(groups, &was, &g)
		if !change || err != nil {
			return err
		}
		g.Changed = t.at
		t.exec("INSERT INTO queue_groups (name, doc, spent) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET doc = excluded.doc, spent = excluded.spent",
			g.Name, g.Text(), micro(rules.GroupSpent(groups, &g, t.at)))
		t.queued++ // others may claim now what they could not before
		return nil
	})
}

func (s *Store) DeleteGroup(ctx context.Context, was plan.Group) error {
	return s.write(ctx, func(t *tx) error {
		var queues []plan.Queue
		for r := t.query("SELECT " + queueColumns + " FROM queues AS whole WHERE settings <> ''"); r.next(); {
			queues = append(queues, r.queue().Queue)
		}
		if err := rules.CheckDeleteGroup(t.groups(), queues, &was); err != nil {
			return err
		}
		t.exec("DELETE FROM queue_groups WHERE name = ?", was.Name)
		return nil
	})
}

// checkInGroup returns why a queue cannot be in its group.
func (t *tx) checkInGroup(q *plan.Queue) error {
	if q.Group == "" {
		return nil
	}
	return rules.CheckInGroup(t.groupWithParent(q.Group), q)
}

// groupWithParent reads a group and its parent, as far as they are there.
func (t *tx) groupWithParent(name string) (groups []plan.Group) {
	if r := t.query(oneGroup, name); r.one() {
		groups = append(groups, r.group())
	}
	if len(groups) > 0 && groups[0].Parent != "" {
		if r := t.query(oneGroup, groups[0].Parent); r.one() {
			groups = append(groups, r.group())
		}
	}
	return groups
}
