package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// group makes a group, or sets the one that is there.
func (w *world) group(name string, s plan.GroupSettings) plan.Group {
	w.Helper()
	was := w.groupNamed(name)
	w.no(w.s.PutGroup(w.ctx, was, plan.Group{Name: name, GroupSettings: s}))
	return w.groupNamed(name)
}

// groupNamed returns the group; the zero Group if it is not there.
func (w *world) groupNamed(name string) plan.Group {
	w.Helper()
	for _, g := range must(w.s.Groups(w.ctx))(w) {
		if g.Name == name {
			return g
		}
	}
	return plan.Group{}
}

// inGroup puts a queue, which is made without a limit, into a group, and n tasks of no plan into the queue.
func (w *world) inGroup(group, queue string, n int) plan.Queue {
	w.Helper()
	q := w.queue(queue, 0)
	q.Group = group
	w.no(w.s.SetQueue(w.ctx, q))
	for i := range n {
		w.add(plan.PlanID{}, w.newTask(q, fmt.Sprint(queue, i)))
	}
	return q
}

// tree says of each group its parent, and of each queue its group, if it has one.
func (w *world) tree() string {
	w.Helper()
	text := ""
	for _, g := range must(w.s.Groups(w.ctx))(w) {
		text += fmt.Sprintf("%s<%s ", g.Name, g.Parent)
	}
	for _, q := range must(w.s.Queues(w.ctx))(w) {
		if q.Group != "" {
			text += fmt.Sprintf("(%s<%s) ", q.Name, q.Group)
		}
	}
	return text
}

var groupCases = []testCase{
	{"a group is made once, changed as it was read, and deleted", func(w *world) {
		first := plan.Group{Name: "acme", GroupSettings: plan.GroupSettings{Weight: 4, Rate: hourly, Keep: plan.Keep{Failed: plan.Duration(time.Hour)}}}
		w.no(w.s.PutGroup(w.ctx, plan.Group{}, first))
		w.no(w.s.PutGroup(w.ctx, plan.Group{}, first)) // the answer was lost
		w.is(w.s.PutGroup(w.ctx, plan.Group{}, plan.Group{Name: "acme"}), plan.ErrExists)
		w.group("a-customer", plan.GroupSettings{})
		is := must(w.s.Groups(w.ctx))(w)
		w.equal("groups", []any{len(is), is[0].Name, is[1].Name, is[1].GroupSettings, is[1].Changed.IsZero()}, []any{2, "a-customer", "acme", first.GroupSettings, false})

		was := is[1]
		paused := was
		paused.Paused = true
		w.no(w.s.PutGroup(w.ctx, was, paused))
		w.no(w.s.PutGroup(w.ctx, was, paused))
		heavy := was
		heavy.Weight = 9
		w.is(w.s.PutGroup(w.ctx, was, heavy), plan.ErrConflict)
		w.is(w.s.DeleteGroup(w.ctx, was), plan.ErrConflict)
		w.equal("after two refusals", w.groupNamed("acme").GroupSettings, paused.GroupSettings)
		w.is(w.s.PutGroup(w.ctx, plan.Group{Name: "gone"}, plan.Group{Name: "gone", GroupSettings: plan.GroupSettings{Weight: 2}}), plan.ErrNotFound)

		w.no(w.s.DeleteGroup(w.ctx, paused))
		w.is(w.s.DeleteGroup(w.ctx, paused), plan.ErrNotFound)
		w.is(w.s.PutGroup(w.ctx, paused, was), plan.ErrNotFound)
		w.equal("left", w.tree(), "a-customer< ")
	}},
	{"groups have two levels, and known parents", func(w *world) {
		put := func(name, parent string) error {
			return w.s.PutGroup(w.ctx, w.groupNamed(name), plan.Group{Name: name, GroupSettings: plan.GroupSettings{Parent: parent}})
		}
		w.is(put("mail", "acme"), plan.ErrNotFound)
		w.no(put("acme", ""))
		w.no(put("mail", "acme"))
		w.no(put("other", ""))
		w.is(put("deep", "mail"), plan.ErrConflict)
		w.is(put("acme", "other"), plan.ErrConflict) // mail would be on the third level
		w.is(put("acme", "acme"), plan.ErrConflict)
		w.is(w.s.DeleteGroup(w.ctx, w.groupNamed("acme")), plan.ErrConflict)
		w.equal("nothing changed", w.tree(), "acme< mail<acme other< ")
		w.no(put("mail", "other"))
		w.no(w.s.DeleteGroup(w.ctx, w.groupNamed("acme")))
		w.equal("then", w.tree(), "mail<other other< ")
	}},
	{"a queue is in a group that is there, and keeps it", func(w *world) {
		q := w.queue("imap", 0)
		q.Group, q.Weight = "acme", 3
		w.is(w.s.SetQueue(w.ctx, q), plan.ErrNotFound)
		was := w.queueNamed("imap")
		w.is(w.s.ChangeQueue(w.ctx, was, q), plan.ErrNotFound)
		_, err := w.s.CreateQueue(w.ctx, plan.Queue{Name: "smtp", Plugin: "exec", QueueSettings: plan.QueueSettings{Group: "acme"}})
		w.is(err, plan.ErrNotFound)
		w.equal("nothing changed", []any{w.tree(), len(must(w.s.Queues(w.ctx))(w))}, []any{"", 1})

		acme := w.group("acme", plan.GroupSettings{})
		w.no(w.s.ChangeQueue(w.ctx, was, q))
		w.no(w.s.ChangeQueue(w.ctx, was, q))
		must(w.s.CreateQueue(w.ctx, plan.Queue{Name: "smtp", Plugin: "exec", QueueSettings: plan.QueueSettings{Group: "acme"}}))(w)
		w.equal("in it", []any{w.tree(), w.queueNamed("imap").Weight}, []any{"acme< (imap<acme) (smtp<acme) ", 3})
		w.is(w.s.DeleteGroup(w.ctx, acme), plan.ErrConflict)
		for _, name := range []string{"imap", "smtp"} {
			q := w.queueNamed(name)
			q.Group = ""
			w.no(w.s.SetQueue(w.ctx, q))
		}
		w.no(w.s.DeleteGroup(w.ctx, acme))
		w.equal("then", w.tree(), "")
	}},
	{"one of many who read the same group changes it", func(w *world) {
		w.group("acme", plan.GroupSettings{})
		handles := []store.Store{w.s, w.reopen(nil)}
		for round := range 5 {
			was := w.groupNamed("acme")
			var mu sync.Mutex
			var made []int
			var wg sync.WaitGroup
			for i := range 4 {
				g := was
				g.Weight = 100*(round+1) + i
				wg.Go(func() {
					err := handles[i%2].PutGroup(w.ctx, was, g)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						made = append(made, g.Weight)
					} else if !errors.Is(err, plan.ErrConflict) {
						w.Error(err)
					}
				})
			}
			wg.Wait()
			if got := w.groupNamed("acme").Weight; len(made) != 1 || got != made[0] {
				w.Fatalf("weights %v were set, and the group has %d; want one of them", made, got)
			}
		}
	}},
	{"nothing starts in a paused group, or below it, and what runs continues", func(w *world) {
		acme := w.group("acme", plan.GroupSettings{})
		w.group("mail", plan.GroupSettings{Parent: "acme"})
		w.inGroup("acme", "files", 3)
		w.inGroup("mail", "imap", 3)
		w.inGroup("", "free", 1)
		n := w.node("n1")
		running := n.claim(4)
		w.equal("before", len(running), 4)
		acme.Paused = true
		w.group("acme", acme.GroupSettings)
		for _, c := range running {
			n.end(ok(c))
		}
		for _, c := range n.claim(9) {
			w.equal("the other queue starts", c.QueueName, "free")
		}
		did := n.turn(protocol.Turn{Slots: 9})
		w.equal("paused", []any{len(did.Claimed), did.Rest}, []any{0, time.Duration(0)})
		acme.Paused = false
		w.group("acme", acme.GroupSettings)
		mail := w.groupNamed("mail")
		mail.Paused = true
		w.group("mail", mail.GroupSettings)
		for _, c := range n.claim(9) {
			w.equal("with mail paused", c.QueueName, "files")
		}
		mail.Paused = false
		w.group("mail", mail.GroupSettings)
		n.claim(9)
		w.equal("in the end", len(n.holding), 3)
	}},
	{"a node of one plan starts nothing of a paused group", func(w *world) {
		w.group("acme", plan.GroupSettings{Paused: true})
		w.inGroup("acme", "exec", 0)
		p := w.submit(task("a"))
		n := w.node("n1")
		w.equal("paused", len(n.turn(protocol.Turn{Slots: 9, Plan: p.ID}).Claimed), 0)
		w.group("acme", plan.GroupSettings{})
		w.equal("resumed", len(n.turn(protocol.Turn{Slots: 9, Plan: p.ID}).Claimed), 1)
	}},
	{"the rate of a group limits the starts of all its queues, over all nodes", func(w *world) {
		w.group("acme", plan.GroupSettings{Rate: hourly})
		w.group("mail", plan.GroupSettings{Parent: "acme"})
		w.inGroup("acme", "files", 8)
		w.inGroup("mail", "imap", 8)
		w.inGroup("", "free", 2)
		a, b := w.node("a"), w.nodeOn(w.reopen(nil), "b")
		a.starts(5, time.Hour) // of which two are free
		b.starts(0, time.Hour)
		w.pass(30 * time.Minute)
		a.starts(0, 30*time.Minute)
		w.pass(30 * time.Minute)
		b.starts(1, time.Hour)
		w.pass(2 * time.Hour)
		a.starts(2, time.Hour)
		w.pass(100 * time.Hour) // no more than burst is saved
		b.starts(3, time.Hour)
		w.equal("spent", w.groupNamed("acme").Spent.IsZero(), false)
	}},
	{"the rates of a queue, its group and the parent of that count together", func(w *world) {
		rate := func(burst int) plan.Rate {
			return plan.Rate{Starts: 1, Per: plan.Duration(time.Hour), Burst: burst}
		}
		w.group("acme", plan.GroupSettings{Rate: rate(6)})
		w.group("mail", plan.GroupSettings{Parent: "acme", Rate: rate(4)})
		imap := w.inGroup("mail", "imap", 9)
		imap.Rate = rate(1)
		w.no(w.s.SetQueue(w.ctx, imap))
		w.inGroup("mail", "smtp", 9)
		w.inGroup("acme", "files", 9)
		n := w.node("a")
		n.turn(protocol.Turn{Slots: 100})
		count := map[string]int{}
		for _, c := range n.holding {
			count[c.QueueName]++
		}
		if count["imap"] > 1 || count["imap"]+count["smtp"] > 4 || count["imap"]+count["smtp"]+count["files"] != 6 {
			w.Errorf("there started %v; want at most 1 of imap, 4 of imap and smtp, and 6 of all", count)
		}
		n.starts(0, time.Hour)
		w.pass(100 * time.Hour)
		n.starts(6, time.Hour)
	}},
	{"a group that holds up nothing costs no rest, and its rate can be changed and taken away", func(w *world) {
		w.group("acme", plan.GroupSettings{Rate: plan.Rate{Starts: 1, Per: plan.Duration(1000 * time.Hour)}})
		w.inGroup("acme", "files", 9)
		n := w.node("a")
		n.starts(1, 1000*time.Hour)
		w.group("acme", plan.GroupSettings{Rate: hourly}) // what is spent is clamped to its burst
		n.starts(0, time.Hour)
		w.pass(time.Hour)
		n.starts(1, time.Hour)
		w.group("acme", plan.GroupSettings{})
		n.starts(7, 0)
		w.group("acme", plan.GroupSettings{Rate: hourly})
		n.starts(0, 0) // nothing waits
	}},
	{"a lower rate of a group counts what has started", func(w *world) {
		w.group("acme", plan.GroupSettings{Rate: plan.Rate{Starts: 60, Per: plan.Duration(time.Hour), Burst: 3}})
		w.inGroup("acme", "files", 9)
		n := w.node("a")
		n.starts(3, time.Minute)
		w.group("acme", plan.GroupSettings{Rate: hourly})
		n.starts(0, time.Hour)
	}},
	{"nodes that claim at once keep to the rate of a group together", func(w *world) {
		w.group("acme", plan.GroupSettings{Rate: plan.Rate{Starts: 1, Per: plan.Duration(time.Hour), Burst: 7}})
		w.inGroup("acme", "files", 20)
		w.inGroup("acme", "imap", 20)
		nodes := make([]*node, 4)
		for i := range nodes {
			nodes[i] = w.nodeOn(w.reopen(nil), plan.NodeName(fmt.Sprint("n", i)))
		}
		for round, want := range []int{7, 7} {
			w.equal(fmt.Sprint("round ", round), claimAtOnce(w, nodes), want)
			w.pass(10 * time.Hour)
		}
	}},
	{"a queue and a group that are put into a group while it is deleted are in one that is there", func(w *world) {
		other := w.reopen(nil)
		for range 10 {
			g := w.group("acme", plan.GroupSettings{})
			q := w.queue("imap", 0)
			q.Group = "acme"
			errs := make([]error, 3)
			var wg sync.WaitGroup
			wg.Go(func() { errs[0] = other.DeleteGroup(w.ctx, g) })
			wg.Go(func() { errs[1] = w.s.SetQueue(w.ctx, q) })
			wg.Go(func() {
				errs[2] = w.s.PutGroup(w.ctx, plan.Group{}, plan.Group{Name: "mail", GroupSettings: plan.GroupSettings{Parent: "acme"}})
			})
			wg.Wait()
			for _, err := range errs {
				if err != nil && !errors.Is(err, plan.ErrConflict) && !errors.Is(err, plan.ErrNotFound) {
					w.Fatal(err)
				}
			}
			if errs[0] == nil && (errs[1] == nil || errs[2] == nil) {
				w.Fatalf("it was deleted, and something was put into it: %v", errs)
			}
			w.orderly()
			q.Group = ""
			w.no(w.s.SetQueue(w.ctx, q))
			for _, name := range []string{"mail", "acme"} {
				if g := w.groupNamed(name); g.Name != "" {
					w.no(w.s.DeleteGroup(w.ctx, g))
				}
			}
		}
	}},
	{"two groups that are put into each other at once have two levels", func(w *world) {
		other := w.reopen(nil)
		for range 10 {
			var wg sync.WaitGroup
			w.group("a", plan.GroupSettings{})
			w.group("b", plan.GroupSettings{})
			a, b := w.groupNamed("a"), w.groupNamed("b")
			wg.Go(func() {
				g := a
				g.Parent = "b"
				_ = w.s.PutGroup(w.ctx, a, g) // either may be refused
			})
			wg.Go(func() {
				g := b
				g.Parent = "a"
				_ = other.PutGroup(w.ctx, b, g)
			})
			wg.Wait()
			w.orderly()
		}
	}},
}

// A groupChange is a change that something else must not contradict.
type groupChange struct {
	name string
	do   func(w *world, s store.Store) error
}

// groupChanges put something into the group "acme", delete it, and put it into another one.
var groupChanges = []groupChange{
	{"a queue is put into it", func(w *world, s store.Store) error {
		q := w.queueNamed("imap")
		q.Group = "acme"
		return s.SetQueue(w.ctx, q)
	}},
	{"a queue is changed so", func(w *world, s store.Store) error {
		was := w.queueNamed("smtp")
		q := was
		q.Group = "acme"
		return s.ChangeQueue(w.ctx, was, q)
	}},
	{"a group is made in it", func(w *world, s store.Store) error {
		return s.PutGroup(w.ctx, plan.Group{}, plan.Group{Name: "mail", GroupSettings: plan.GroupSettings{Parent: "acme"}})
	}},
	{"a group is put into it", func(w *world, s store.Store) error {
		was := w.groupNamed("other")
		g := was
		g.Parent = "acme"
		return s.PutGroup(w.ctx, was, g)
	}},
	{"it is put into a group", func(w *world, s store.Store) error {
		was := w.groupNamed("acme")
		g := was
		g.Parent = "other"
		return s.PutGroup(w.ctx, was, g)
	}},
	{"it is deleted", func(w *world, s store.Store) error {
		return s.DeleteGroup(w.ctx, plan.Group{Name: "acme"})
	}},
}

// afresh takes everything out of the groups "acme" and "other", which are there then, and nothing else.
func (w *world) afresh() {
	w.Helper()
	for _, name := range []string{"imap", "smtp"} {
		q := w.queue(name, 0)
		q.Group = ""
		w.no(w.s.SetQueue(w.ctx, q))
	}
	for _, g := range must(w.s.Groups(w.ctx))(w) {
		w.group(g.Name, plan.GroupSettings{})
	}
	for _, g := range must(w.s.Groups(w.ctx))(w) {
		w.no(w.s.DeleteGroup(w.ctx, w.groupNamed(g.Name)))
	}
	w.group("acme", plan.GroupSettings{})
	w.group("other", plan.GroupSettings{})
}

// refusedGroup reports whether a change was refused as the contract has it.
func refusedGroup(err error) bool {
	return errors.Is(err, plan.ErrConflict) || errors.Is(err, plan.ErrNotFound)
}

var groupLateCases = []testCase{
	{"whatever write of a change of groups fails, nothing is in a group that is not there", func(w *world) {
		var k killer
		s := w.reopen(k.hook)
		for _, c := range groupChanges {
			for _, d := range deaths {
				for at, fails := 1, true; fails; at++ {
					w.afresh()
					k = killer{at: at, after: d.after, dies: d.dies}
					err := c.do(w, s)
					if fails = k.tripped; errors.Is(err, errKilled) && !d.dies {
						if err = c.do(w, s); errors.Is(err, plan.ErrNotFound) && c.name == "it is deleted" {
							err = nil // it was, and the answer was lost
						}
					}
					k = killer{}
					if err != nil && !errors.Is(err, errKilled) {
						w.Errorf("%s, %s %d: %v", c.name, d.name, at, err)
					}
					w.orderly()
				}
			}
		}
	}},
	{"an audit takes out what a process that died has put into a group that was deleted meanwhile", func(w *world) {
		if w.d.OneWriter {
			return
		}
		var g gate
		var k killer
		deleter, putter, n := w.reopen(g.hook), w.reopen(k.hook), w.node("n1")
		n.sweep() // the first one only notes when it was
		for _, c := range groupChanges[:4] {
			w.afresh()
			g.late(2, func() { w.no(deleter.DeleteGroup(w.ctx, w.groupNamed("acme"))) }, func() {
				k = killer{at: 1, after: true, dies: true}
				if err := c.do(w, putter); !errors.Is(err, errKilled) {
					w.Errorf("%s: %v", c.name, err)
				}
				k = killer{}
			})
			w.pass(rules.AuditEvery)
			n.sweep()
			w.orderly()
			w.equal("after "+c.name, w.groupNamed("acme").Name, "")
		}
	}},
	{"a change of groups that arrives late, after another one, does not contradict it", func(w *world) {
		if w.d.OneWriter {
			return // nobody gets in between two writes
		}
		var g gate
		s := w.reopen(g.hook)
		for _, c := range groupChanges {
			for _, other := range groupChanges {
				for met, at := true, 1; met; at++ {
					w.afresh()
					var err, otherErr error
					met = g.late(at, func() { err = c.do(w, s) }, func() { otherErr = other.do(w, w.s) })
					if err != nil && !refusedGroup(err) || otherErr != nil && !refusedGroup(otherErr) {
						w.Errorf("%s, held before write %d, and %s: %v, %v", c.name, at, other.name, err, otherErr)
					}
					w.orderly()
				}
			}
		}
	}},
}

// orderly fails if a queue or a group is in a group that is not there, or a group is on a third level.
func (w *world) orderly() {
	w.Helper()
	parent := map[string]string{}
	for _, g := range must(w.s.Groups(w.ctx))(w) {
		parent[g.Name] = g.Parent
	}
	for name, in := range parent {
		if above, there := parent[in]; in != "" && (!there || above != "") {
			w.Errorf("group %s is in %s, which is there: %v, and in %q", name, in, there, above)
		}
	}
	for _, q := range must(w.s.Queues(w.ctx))(w) {
		if _, there := parent[q.Group]; q.Group != "" && !there {
			w.Errorf("queue %s is in group %s, which is not there", q.Name, q.Group)
		}
	}
}
