package sqlite

import (
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// edgesInside is the schema from which on no edge leaves a plan: see rules.CheckNeed.
const edgesInside = 20

// outside selects the tasks that have an edge which rules.CheckNeed refuses, or items without a plan.
const outside = `WITH outside (n) AS (
		SELECT k.child FROM kids AS k CROSS JOIN tasks AS c ON c.n = k.child LEFT JOIN tasks AS p ON p.n = k.parent
			WHERE p.n IS NULL OR p.plan <> c.plan OR p.of <> 0
		UNION SELECT n FROM tasks WHERE plan = 0 AND (flags & 2 OR of <> 0))
	SELECT t.n, t.id, coalesce(p.name || '#' || p.run || ' ', '') || t.name, t.outcome <> 0
	FROM outside CROSS JOIN tasks AS t ON t.n = outside.n LEFT JOIN plans AS p ON p.n = t.plan ORDER BY t.n`

// cutEdges cuts the edges of finished tasks that lead outside. The tasks keep the inputs that they had. If unfinished
// tasks have such edges, the store is of no use to this version.
func (c *conn) cutEdges() {
	var finished []int64
	var left []string
	for r := c.query(outside); r.next(); {
		if r.bool(3) {
			finished = append(finished, r.int(0))
		} else {
			left = append(left, fmt.Sprintf("%s (%s)", r.text(2), plan.TaskID{ID: r.id(1)}))
		}
	}
	if err := rules.CheckInside(left); err != nil {
		c.fail(err)
		return
	}
	c.ownNames = true
	defer func() { c.ownNames = false }()
	for _, n := range finished {
		if in := c.given(n); in != nil {
			c.exec(keepInputs, n, in)
		}
	}
	for child, parents := range c.parentsOf(finished) {
		inside := map[int64]bool{}
		for r := c.query(`SELECT p.n FROM json_each(?) AS j CROSS JOIN tasks AS p ON p.n = j.value CROSS JOIN tasks AS c ON c.n = ?
			WHERE p.plan = c.plan AND p.of = 0`, list(parents), child); r.next(); {
			inside[r.int(0)] = true
		}
		kept := slices.DeleteFunc(slices.Clone(parents), func(p int64) bool { return !inside[p] })
		for _, p := range parents {
			if !inside[p] {
				c.exec(cutEdge, p, child)
			}
		}
		c.exec("UPDATE bodies SET needs = NULLIF(?, x''), parents = ? WHERE n = ?", packParents(kept), len(kept), child)
	}
}

const cutEdge = "DELETE FROM kids WHERE parent = ? AND child = ?"
