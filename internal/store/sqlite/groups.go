package sqlite

import (
	"context"
	"math"
	"time"

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

// Groups implements store.Reader.
func (s *Store) Groups(ctx context.Context) (all []plan.Group, err error) {
	err = s.read(ctx, func(c *conn) error {
		all = c.groups()
		return nil
	})
	return all, err
}

// PutGroup implements store.Admin.
func (s *Store) PutGroup(ctx context.Context, was, g plan.Group) error {
	return s.write(ctx, func(t *tx) error {
		change, err := rules.SetGroup(t.groups(), &was, &g)
		if !change || err != nil {
			return err
		}
		g.Changed = t.at
		t.exec("INSERT INTO queue_groups (name, doc) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET doc = excluded.doc", g.Name, g.Text())
		t.queued++ // others may claim now what they could not before
		return nil
	})
}

// DeleteGroup implements store.Admin.
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

// A claimGroup is a group that a claim takes from.
type claimGroup struct {
	*plan.Group
	left  int // how many tasks its rate still lets start
	taken int
}

// inGroups finds the groups of an offer, and lets the offer have nothing if one of them is paused. A
// group is read once in a claim, if a queue is in it.
func (t *tx) inGroups(o *offer) {
	if o.Group == "" {
		return
	}
	if t.claimGroups == nil {
		t.groupsOf, t.claimGroups = map[string][]plan.Group{}, map[string]*claimGroup{}
	}
	groups, known := t.groupsOf[o.Group]
	if !known {
		groups = t.groupWithParent(o.Group)
		t.groupsOf[o.Group] = groups
	}
	in := rules.GroupsOf(groups, o.Group)
	if rules.PausedGroup(in) != nil {
		o.room = 0
		return
	}
	for _, g := range in {
		c := t.claimGroups[g.Name]
		if c == nil {
			c = &claimGroup{Group: g}
			t.claimGroups[g.Name] = c
			if counts := rules.RateSpent(g.Rate, g.Spent, t.at); counts.Before(g.Spent) {
				t.spendGroup(c, counts)
			}
			c.left = rules.RateRoom(g.Rate, g.Spent, t.at, math.MaxInt)
		}
		o.groups = append(o.groups, c)
	}
}

// groupRoom returns how many more tasks the groups of an offer let start.
func (o *offer) groupRoom() int {
	room := math.MaxInt
	for _, g := range o.groups {
		room = min(room, g.left)
	}
	return room
}

// takeOfGroups notes that so many more tasks are taken of an offer.
func (o *offer) takeOfGroups(n int) {
	for _, g := range o.groups {
		g.left -= n
		g.taken += n
	}
}

// spendGroups writes how far the rates of groups are used up by a claim.
func (t *tx) spendGroups() {
	for _, g := range t.claimGroups {
		if g.taken > 0 && g.Rate.Starts > 0 {
			t.spendGroup(g, rules.RateSpend(g.Rate, g.Spent, t.at, g.taken))
		}
	}
}

func (t *tx) spendGroup(g *claimGroup, spent time.Time) {
	g.Spent = spent
	t.exec("UPDATE queue_groups SET spent = ? WHERE name = ?", micro(spent), g.Name)
}
