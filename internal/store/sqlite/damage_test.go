package sqlite

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"zombiezen.com/go/sqlite"
)

// A damager changes bookkeeping in a transaction.
type damager struct {
	*tx
	r   *rand.Rand
	did []string
}

// damage changes some of what the file has beside the states of tasks and plans.
func damage(t testing.TB, s *Store, r *rand.Rand) []string {
	d := &damager{r: r}
	defer d.forget(s, maps.Clone(s.w.stmts))
	if _, err := s.commit(t.Context(), func(tx *tx) error {
		d.tx = tx
		d.jobs()
		d.each("SELECT n FROM tasks WHERE status IN (-1, 0)", "owner of task", "UPDATE tasks SET instance = ?2 WHERE n = ?1", func() int64 { return r.Int64N(9) })
		d.each("SELECT n FROM tasks WHERE status = -2", "lane of task", "UPDATE tasks SET lane = ?2 WHERE n = ?1", func() int64 {
			if q := d.query("SELECT n FROM plans ORDER BY n LIMIT 1"); q.one() && r.IntN(2) == 0 {
				return q.int(0)
			}
			return 0
		})
		d.each("SELECT n FROM tasks WHERE status = -2", "place of task", "UPDATE tasks SET prio = ?2 WHERE n = ?1", func() int64 { return r.Int64N(9) - 4 })
		d.each("SELECT n FROM tasks WHERE status = -4", "gate of task", "UPDATE tasks SET gate = ?2 WHERE n = ?1", func() int64 { return r.Int64N(5) })
		for _, column := range []string{"waits = waits + 256 *", "waits = (waits & ~15) | 15 & ", "bytes = bytes + ", "largest = largest + "} {
			d.each("SELECT n FROM gates WHERE n IN (SELECT n FROM tasks WHERE status = -4)", column, "UPDATE gates SET "+column+" ?2 WHERE n = ?1", d.some)
		}
		for _, column := range []string{"items", "made", "undone", "failed", "seen", "bytes"} {
			d.each("SELECT n FROM foreachs WHERE n IN (SELECT n FROM tasks WHERE status = -4)", column+" of foreach",
				"UPDATE foreachs SET "+column+" = "+column+" + ?2 WHERE n = ?1", d.some)
		}
		for _, column := range []string{"held", "queued", "claimed", "running", "succeeded", "failed", "cancelled", "skipped", "allowed", "gathering", "gathered"} {
			d.each("SELECT n FROM plans WHERE ended = 0", column+" of plan", "UPDATE plans SET "+column+" = "+column+" + ?2 WHERE n = ?1", d.some)
		}
		for _, column := range []string{"queued", "active"} {
			d.each("SELECT n FROM queues", column+" of queue", "UPDATE queues SET "+column+" = "+column+" + ?2 WHERE n = ?1", d.some)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return d.did
}

// forget leaves the damage's own statements out of those that a writer ran.
func (d *damager) forget(s *Store, before map[string]*sqlite.Stmt) {
	for text, stmt := range s.w.stmts {
		if before[text] == nil {
			_ = stmt.Finalize()
			delete(s.w.stmts, text)
		}
	}
}

func (d *damager) some() int64 { return d.r.Int64N(5) - 2 }

// each changes some of the rows that a query finds.
func (d *damager) each(query, what, change string, value func() int64) {
	var ns []int64
	for r := d.query(query + " ORDER BY n"); r.next(); {
		ns = append(ns, r.int(0))
	}
	for _, n := range ns {
		if d.r.IntN(3) == 0 {
			v := value()
			d.exec(change, n, v)
			d.did = append(d.did, fmt.Sprintf("%s %d: %d", what, n, v))
		}
	}
}

// jobs drops some jobs, moves others, and adds some that are none.
func (d *damager) jobs() {
	d.each("SELECT seq AS n FROM jobs", "job is dropped", "DELETE FROM jobs WHERE seq = ?1 AND ?2 = 0", func() int64 { return 0 })
	d.each("SELECT seq AS n FROM jobs WHERE kind = 1", "past of a release", "UPDATE jobs SET past = ?2 WHERE seq = ?1", func() int64 { return d.r.Int64N(30) })
	for kind := int64(jobRelease); kind <= jobForget; kind++ {
		from := "tasks"
		if kind == jobRoots || kind == jobClose || kind == jobAdopt || kind == jobForget {
			from = "plans"
		}
		if q := d.query("SELECT coalesce(max(n), 0) + 1 FROM " + from); q.one() && d.r.IntN(3) == 0 {
			ref := 1 + d.r.Int64N(q.int(0)) // the last one is not there
			d.add(kind, ref)
			d.did = append(d.did, fmt.Sprintf("job of kind %d for %d", kind, ref))
		}
	}
}
