package model

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) Groups(ctx context.Context) (all []plan.Group, err error) {
	err = s.read(ctx, func() error {
		all = slices.Clone(s.groups)
		return nil
	})
	return all, err
}

func (s *Store) PutGroup(ctx context.Context, was, g plan.Group) error {
	return s.write(ctx, func(tx *tx) error {
		change, err := rules.SetGroup(tx.groups, &was, &g)
		if !change || err != nil {
			return err
		}
		g.Changed, g.Spent = tx.at, rules.GroupSpent(tx.groups, &g, tx.at)
		if in := rules.GroupsOf(tx.groups, g.Name); in != nil {
			*in[0] = g
		} else {
			tx.groups = append(tx.groups, g)
			slices.SortFunc(tx.groups, func(a, b plan.Group) int { return cmp.Compare(a.Name, b.Name) })
		}
		tx.notify()
		return nil
	})
}

func (s *Store) DeleteGroup(ctx context.Context, was plan.Group) error {
	return s.write(ctx, func(tx *tx) error {
		var queues []plan.Queue
		for _, q := range tx.queues {
			queues = append(queues, q.Queue)
		}
		if err := rules.CheckDeleteGroup(tx.groups, queues, &was); err != nil {
			return err
		}
		tx.groups = slices.DeleteFunc(tx.groups, func(g plan.Group) bool { return g.Name == was.Name })
		return nil
	})
}

// groupRoom returns how many tasks, of most, the groups of a queue let start.
func (tx *tx) groupRoom(q *queue, most int) int {
	in := rules.GroupsOf(tx.groups, q.Group)
	if rules.PausedGroup(in) != nil {
		return 0
	}
	for _, g := range in {
		g.Spent = rules.RateSpent(g.Rate, g.Spent, tx.at)
		most = rules.RateRoom(g.Rate, g.Spent, tx.at, most)
	}
	return most
}

// groupsLet returns how many tasks, of most, the rates of groups let start: see rules.NewSharing.
func (tx *tx) groupsLet(most int) map[string]int {
	lets := map[string]int{}
	for _, g := range tx.groups {
		lets[g.Name] = rules.RateRoom(g.Rate, g.Spent, tx.at, most)
	}
	return lets
}

// spend counts one start of a task of the queue in the rates of the queue and its groups.
func (tx *tx) spend(q *queue) {
	if q.Rate.Starts > 0 {
		q.Spent = rules.RateSpend(q.Rate, q.Spent, tx.at, 1)
	}
	for _, g := range rules.GroupsOf(tx.groups, q.Group) {
		if g.Rate.Starts > 0 {
			g.Spent = rules.RateSpend(g.Rate, g.Spent, tx.at, 1)
		}
	}
}

// rests notes when the rates of a queue in which tasks wait, and of its groups, let the next one start.
func (tx *tx) rests(q *queue) {
	in := rules.GroupsOf(tx.groups, q.Group)
	if rules.PausedGroup(in) != nil {
		return
	}
	wait := rules.RateWait(q.Rate, q.Spent, tx.at)
	for _, g := range in {
		wait = max(wait, rules.RateWait(g.Rate, g.Spent, tx.at))
	}
	if wait > 0 && (tx.rest == 0 || wait < tx.rest) {
		tx.rest = wait
	}
}
