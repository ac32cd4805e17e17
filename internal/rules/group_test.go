package rules_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// tree are groups on two levels.
var tree = []plan.Group{
	{Name: "acme", GroupSettings: plan.GroupSettings{Weight: 4}}, {Name: "mail", GroupSettings: plan.GroupSettings{Parent: "acme"}}, {Name: "other"},
}

func TestAGroupIsWrittenAsItWasRead(t *testing.T) {
	second := plan.Rate{Starts: 1, Per: plan.Duration(time.Second)}
	group := func(name, parent string, weight int) plan.Group {
		return plan.Group{Name: name, GroupSettings: plan.GroupSettings{Parent: parent, Weight: weight}}
	}
	for _, c := range []struct {
		name   string
		was, g plan.Group
		change bool
		kind   error
		says   string
	}{
		{"a new group", plan.Group{}, group("new", "", 0), true, nil, ""},
		{"a new group in another", plan.Group{}, group("new", "acme", 2), true, nil, ""},
		{"a new group that is there as it is to be", plan.Group{}, group("other", "", 1), false, nil, ""},
		{"a new group whose name is taken", plan.Group{}, group("acme", "", 5), false, plan.ErrExists, "sluice group set acme"},
		{"a group that was read", tree[0], group("acme", "", 5), true, nil, ""},
		{"a group that is set already", group("acme", "", 9), group("acme", "", 4), false, nil, ""},
		{"a group that was set otherwise since", group("acme", "", 9), group("acme", "", 5), false, plan.ErrConflict, "meanwhile"},
		{"a group that was deleted since", group("gone", "", 1), group("gone", "", 2), false, plan.ErrNotFound, "sluice group list"},
		{"a group that was read as another one", tree[2], group("acme", "", 5), false, plan.ErrConflict, "meanwhile"},
		{"a group on a third level", plan.Group{}, group("new", "mail", 1), false, plan.ErrConflict, `choose "acme" as its parent`},
		{"a group that would put another one on a third level", tree[0], group("acme", "other", 4), false, plan.ErrConflict, "sluice group set mail --parent none"},
		{"a group in itself", tree[2], group("other", "other", 1), false, plan.ErrConflict, "in itself"},
		{"a group in an unknown one", plan.Group{}, group("new", "nobody", 1), false, plan.ErrNotFound, "sluice group create nobody"},
		{"a weight below 0", plan.Group{}, group("new", "", -1), false, nil, "weight is -1; it is 1 to 1000"},
		{"a weight above the largest", plan.Group{}, group("new", "", 1001), false, nil, "weight is 1001; it is 1 to 1000"},
		{"a rate without a period", plan.Group{}, plan.Group{Name: "new", GroupSettings: plan.GroupSettings{Rate: plan.Rate{Starts: 1}}}, false, nil, "a period is longer than 0"},
		{"a rate", plan.Group{}, plan.Group{Name: "new", GroupSettings: plan.GroupSettings{Rate: second}}, true, nil, ""},
		{"the word for no group", plan.Group{}, group("none", "", 1), false, nil, "none stands for no group"},
		{"no name", plan.Group{}, group("", "", 1), false, nil, "a name cannot be empty"},
	} {
		change, err := rules.SetGroup(tree, &c.was, &c.g)
		if change != c.change || (err != nil) != (c.says != "") || c.says != "" && !strings.Contains(err.Error(), c.says) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: change %v, %v; want %v, %v with %q", c.name, change, err, c.change, c.kind, c.says)
		}
	}
}

func TestAGroupWithSomethingInItIsNotDeleted(t *testing.T) {
	imap := []plan.Queue{{Name: "imap", QueueSettings: plan.QueueSettings{Group: "mail"}}}
	stale := plan.Group{Name: "other", GroupSettings: plan.GroupSettings{Paused: true}}
	for _, c := range []struct {
		name   string
		was    plan.Group
		queues []plan.Queue
		kind   error
		says   string
	}{
		{"nothing is in it", tree[2], imap, nil, ""},
		{"a group is in it", tree[0], nil, plan.ErrConflict, "sluice group set mail --parent none"},
		{"a queue is in it", tree[1], imap, plan.ErrConflict, "sluice queue set imap --group none"},
		{"it was changed since", stale, nil, plan.ErrConflict, "meanwhile"},
		{"it is gone", plan.Group{Name: "gone"}, nil, plan.ErrNotFound, "not there"},
	} {
		err := rules.CheckDeleteGroup(tree, c.queues, &c.was)
		if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %v with %q", c.name, err, c.kind, c.says)
		}
	}
}

func TestTheGroupsOfAQueue(t *testing.T) {
	groups := append([]plan.Group{
		{Name: "lost", GroupSettings: plan.GroupSettings{Parent: "gone"}}, {Name: "loop", GroupSettings: plan.GroupSettings{Parent: "loop"}},
		{Name: "still", GroupSettings: plan.GroupSettings{Paused: true}}, {Name: "below", GroupSettings: plan.GroupSettings{Parent: "still"}},
	}, tree...)
	for _, c := range []struct{ group, in, paused string }{
		{"", "", ""}, {"acme", "acme", ""}, {"mail", "mail acme", ""}, {"gone", "", ""}, {"lost", "lost", ""}, {"loop", "loop", ""},
		{"still", "still", "still"}, {"below", "below still", "still"},
	} {
		var names []string
		in := rules.GroupsOf(groups, c.group)
		for _, g := range in {
			names = append(names, g.Name)
		}
		paused := ""
		if g := rules.PausedGroup(in); g != nil {
			paused = g.Name
		}
		if got := strings.Join(names, " "); got != c.in || paused != c.paused {
			t.Errorf("a queue of %q: in %q, paused by %q; want %q, %q", c.group, got, paused, c.in, c.paused)
		}
		err := rules.CheckInGroup(groups, &plan.Queue{Name: "q", QueueSettings: plan.QueueSettings{Group: c.group}})
		if (c.group == "gone") != errors.Is(err, plan.ErrNotFound) {
			t.Errorf("a queue in %q: %v", c.group, err)
		}
	}
}
