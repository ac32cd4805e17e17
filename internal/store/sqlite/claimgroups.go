package sqlite

import (
	"math"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// inGroups finds the groups of an offer, and lets the offer have nothing if one of them is paused. A
// group is read once in a claim, if a queue is in it.
func (t *tx) inGroups(o *offer) {
	o.in = t.inGroup(o.Group)
	if rules.PausedGroup(o.in) != nil {
		o.room = 0
		return
	}
	for _, g := range o.in {
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

// inGroup returns the groups that the queues of a group are in: see rules.GroupsOf.
func (t *tx) inGroup(name string) []*plan.Group {
	if name == "" {
		return nil
	}
	if t.claimGroups == nil {
		t.groupsOf, t.claimGroups = map[string][]plan.Group{}, map[string]*claimGroup{}
	}
	groups, known := t.groupsOf[name]
	if !known {
		groups = t.groupWithParent(name)
		t.groupsOf[name] = groups
	}
	return rules.GroupsOf(groups, name)
}

// groupsLet returns how many more tasks the rates of the groups of a claim let start: see rules.NewSharing.
func (t *tx) groupsLet() map[string]int {
	var lets map[string]int
	for name, g := range t.claimGroups {
		if g.Rate.Starts > 0 {
			if lets == nil {
				lets = map[string]int{}
			}
			lets[name] = g.left
		}
	}
	return lets
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
