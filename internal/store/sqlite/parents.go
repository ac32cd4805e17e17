package sqlite

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A task's parents are kept with its body, in the order of its needs, as varints of the distance of each from the one before: they are
// written once and read as a whole.

func packParents(parents []int64) []byte {
	var b []byte
	last := int64(0)
	for _, n := range parents {
		b = binary.AppendVarint(b, n-last)
		last = n
	}
	return b
}

func unpackParents(b []byte) ([]int64, error) {
	var parents []int64
	last := int64(0)
	for len(b) > 0 {
		d, width := binary.Varint(b)
		if width <= 0 {
			return nil, fmt.Errorf("a list of parents is damaged")
		}
		last += d
		parents = append(parents, last)
		b = b[width:]
	}
	return parents, nil
}

// parents reads a list of parents.
func (r *rows) parents(i int) []int64 {
	parents, err := unpackParents(r.bytes(i))
	r.c.fail(err)
	return parents
}

// parentsOf returns the parents of those tasks that have any.
func (c *conn) parentsOf(children []int64) map[int64][]int64 {
	out := make(map[int64][]int64, len(children))
	if len(children) == 0 {
		return out
	}
	for r := c.query("SELECT n, needs FROM bodies WHERE n IN (SELECT value FROM json_each(?)) AND needs IS NOT NULL", list(children)); r.next(); {
		out[r.int(0)] = r.parents(1)
	}
	return out
}

// all returns the parents of all of them, each once, ascending.
func all(parents map[int64][]int64) []int64 {
	var out []int64
	for _, ns := range parents {
		out = append(out, ns...)
	}
	return distinct(out)
}

// join is what a task with parents waits for: how many of them have not finished, with a byte behind that holds the outcomes that settle
// its rule at once, and the outcomes of those that have finished.
type join struct {
	child   int64
	waits   int64
	bytes   int64 // of outputs
	largest int64
	look    bool // a decision may be due whatever waits says; not stored
}

// telling is a child's join as it is, and a parent that ended and that the child is to be told of.
type telling struct {
	join
	*parent
}

const oneWaits = 1 << 8

func newJoin(child int64, waiting int, w plan.When, along bool) join {
	return join{child: child, waits: int64(waiting)*oneWaits | never(w, along)}
}

func (g *join) waiting() int64      { return g.waits / oneWaits }
func (g *join) seen() rules.Outcome { return rules.Outcome(g.waits & 15) }

// settled reports whether a decision may be due.
func (g *join) settled() bool { return g.look || g.waiting() == 0 || g.waits&(g.waits>>4)&15 != 0 }

// close takes notice of finished parents.
func (g *join) close(parents int64, outcome rules.Outcome) {
	g.waits = g.waits - parents*oneWaits | int64(outcome)
}

// never returns the set of outcomes of which one settles a rule while others are still to come, as a join holds it. A task that goes
// along with others looks at each.
func never(w plan.When, along bool) int64 {
	if along {
		return neverBits
	}
	var set rules.Outcome
	for _, o := range []rules.Outcome{rules.OutcomeSucceeded, rules.OutcomeFailed, rules.OutcomeSkipped, rules.OutcomeCancelled} {
		if rules.Decide(w, o, false) == rules.ToSkip {
			set |= o
		}
	}
	return int64(set) << 4
}

// neverBits is where never is in a join's waits.
const neverBits = 15 << 4

// A fact is what a task knows of one of its parents.
type fact struct {
	outcome rules.Outcome
	size    int64 // of its output
	told    int64 // children up to this n have been told that it finished
}

// waits reports whether the child waits for the parent.
func (f fact) waits(child int64) bool { return f.outcome == 0 || f.told < child }

// factsOf returns the facts about parents, as parentsOf has them.
func (c *conn) factsOf(parents map[int64][]int64) map[int64]fact {
	facts := map[int64]fact{}
	for r := c.query(`SELECT p.n, p.outcome, p.out_len, j.past FROM json_each(?) AS l CROSS JOIN tasks AS p ON p.n = l.value
		LEFT JOIN jobs AS j ON j.kind = ? AND j.ref = p.n`, list(all(parents)), jobRelease); r.next(); {
		f := fact{rules.Outcome(r.int(1)), r.int(2), r.int(3)}
		if r.null(3) {
			f.told = 1<<63 - 1
		}
		facts[r.int(0)] = f
	}
	return facts
}

// countParents returns the join of a task as its parents are. along says that it is a foreach task that goes along with others.
func countParents(child int64, rule plan.When, along bool, parents []int64, facts map[int64]fact) join {
	g := newJoin(child, 0, rule, along)
	g.look = along
	for _, p := range distinct(slices.Clone(parents)) {
		switch f := facts[p]; {
		case f.waits(child):
			g.waits += oneWaits
		default:
			g.close(0, f.outcome)
			g.bytes += f.size
			g.largest = max(g.largest, f.size)
		}
	}
	return g
}

// along reads what a foreach task that goes along with others has to know of its parents: Seen and All of its
// Waiter leave out heads that have items. items returns how many items a head has that are all in. A parent
// whose end the task is still to be told of has ended.
func (c *conn) along(r *taskRow, items func(n int64) int) (a rules.Along, seen rules.Outcome, all bool) {
	var f *plan.Foreach
	if q := c.query("SELECT def FROM bodies WHERE n = ?", r.n); q.one() {
		d, err := unpackDefinition(q.bytes(0), 0, "", 0)
		f = d.Foreach
		c.fail(err)
	}
	all = true
	for q := c.query("SELECT p.n, p.name, p.flags, p.outcome FROM json_each(?) AS j CROSS JOIN tasks AS p ON p.n = j.value",
		list(c.parentsOf([]int64{r.n})[r.n])); q.next(); {
		o, counts := rules.Outcome(q.int(3)), true
		if rules.GoesAlong(f, q.text(1)) {
			in := 0
			if q.int(2)&flagExpanded != 0 {
				in = items(q.int(0))
			}
			counts = a.See(in, o)
		}
		if counts {
			seen, all = seen|o, all && o != 0
		}
	}
	return a, seen, all
}
