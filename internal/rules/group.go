package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// groupNamed returns the group of that name; nil if it is not there.
func groupNamed(groups []plan.Group, name string) *plan.Group {
	if i := slices.IndexFunc(groups, func(g plan.Group) bool { return g.Name == name }); i >= 0 {
		return &groups[i]
	}
	return nil
}

// CheckGroup returns why a group cannot be as it is beside the others. One of groups may be the group
// as it was. An unknown parent is a plan.ErrNotFound, and a third level is a plan.ErrConflict.
func CheckGroup(groups []plan.Group, g *plan.Group) error {
	if err := cmp.Or(plan.CheckGroupName(g.Name), g.GroupSettings.Check()); err != nil {
		return fmt.Errorf("group %q: %w", g.Name, err)
	}
	if g.Parent == "" {
		return nil
	}
	if g.Parent == g.Name {
		return refusal.New(plan.ErrConflict, "group %q cannot be in itself; choose another parent, or none", g.Name)
	}
	parent := groupNamed(groups, g.Parent)
	if parent == nil {
		return refusal.New(plan.ErrNotFound, "group %q cannot be in %q, which is not there; make that first: sluice group create %s", g.Name, g.Parent, g.Parent)
	}
	if parent.Parent != "" {
		return refusal.New(plan.ErrConflict, "group %q cannot be in %q, which is in %q: there are two levels of groups; choose %q as its parent, or none", g.Name, g.Parent,
			parent.Parent, parent.Parent)
	}
	for i := range groups {
		if groups[i].Parent == g.Name {
			return refusal.New(plan.ErrConflict, "group %q cannot be in %q, since group %q is in it: there are two levels of groups; take that out first: "+
				"sluice group set %s --parent none", g.Name, g.Parent, groups[i].Name, groups[i].Name)
		}
	}
	return nil
}

// SetGroup decides whether a group is written that its caller read as was; a zero was means that there
// is none yet. It reports no change if the group is already as it is to be.
func SetGroup(groups []plan.Group, was, g *plan.Group) (change bool, err error) {
	is := groupNamed(groups, g.Name)
	switch {
	case is != nil && is.Same(&g.GroupSettings):
		return false, nil
	case is != nil && was.Name == "":
		return false, refusal.New(plan.ErrExists, "group %q is there already; change it: sluice group set %s", g.Name, g.Name)
	case is == nil && was.Name != "":
		return false, NoGroup(g.Name)
	case is != nil && (was.Name != g.Name || !is.Same(&was.GroupSettings)):
		return false, refusal.New(plan.ErrConflict, "group %q was set otherwise meanwhile; look at it, and ask again", g.Name)
	}
	if err := CheckGroup(groups, g); err != nil {
		return false, err
	}
	return true, nil
}

// NoGroup returns the error of a group that is not there.
func NoGroup(name string) error {
	return refusal.New(plan.ErrNotFound, "group %q is not there; list the groups: sluice group list", name)
}

// CheckDeleteGroup returns why a group that its caller read as was cannot be deleted: a queue or a
// group is in it, or it was changed since.
func CheckDeleteGroup(groups []plan.Group, queues []plan.Queue, was *plan.Group) error {
	is := groupNamed(groups, was.Name)
	if is == nil {
		return NoGroup(was.Name)
	}
	if !is.Same(&was.GroupSettings) {
		return refusal.New(plan.ErrConflict, "group %q was set otherwise meanwhile; look at it, and ask again", was.Name)
	}
	for i := range groups {
		if groups[i].Parent == was.Name {
			return refusal.New(plan.ErrConflict, "group %q has group %q in it: delete that, or take it out: sluice group set %s --parent none", was.Name,
				groups[i].Name, groups[i].Name)
		}
	}
	for i := range queues {
		if queues[i].Group == was.Name {
			return refusal.New(plan.ErrConflict, "group %q has queue %q in it: take that out: sluice queue set %s --group none", was.Name, queues[i].Name, queues[i].Name)
		}
	}
	return nil
}

// CheckInGroup returns a plan.ErrNotFound if a queue names a group that is not there.
func CheckInGroup(groups []plan.Group, q *plan.Queue) error {
	if q.Group == "" || groupNamed(groups, q.Group) != nil {
		return nil
	}
	return refusal.New(plan.ErrNotFound, "queue %q cannot be in group %q, which is not there; make it first: sluice group create %s", q.Name, q.Group, q.Group)
}

// GroupsOf returns the groups whose limits count for the queues of a group: the group, and its parent.
// It returns pointers into groups. A group that is not there counts as none.
func GroupsOf(groups []plan.Group, name string) (in []*plan.Group) {
	if name == "" {
		return nil
	}
	g := groupNamed(groups, name)
	if g == nil {
		return nil
	}
	in = append(in, g)
	if parent := groupNamed(groups, g.Parent); g.Parent != "" && parent != nil && parent != g {
		in = append(in, parent)
	}
	return in
}

// PausedGroup returns the group by which nothing of its queues starts; nil if there is none.
func PausedGroup(in []*plan.Group) *plan.Group {
	for _, g := range in {
		if g.Paused {
			return g
		}
	}
	return nil
}
