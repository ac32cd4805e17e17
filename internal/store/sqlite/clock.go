package sqlite

import "time"

// A clock is the time of a store: the system's, so that people know the instants that they see. People and programs set that clock. The store
// notices it by the time since the system was started, which nobody sets and which all processes of a machine share.
type clock struct {
	now  func() time.Time
	boot func() (boot int64, up time.Duration, ok bool) // which start of the system it was, and how long ago; not ok: that is not known
}

// newClock returns the system's clock, or another one, which nobody sets.
func newClock(now func() time.Time) *clock {
	if now != nil {
		return &clock{now, func() (int64, time.Duration, bool) { return 0, 0, false }}
	}
	return &clock{time.Now, sinceBoot}
}

// A lead is how far the clock was ahead of the time since a start of the system.
type lead struct {
	boot int64
	by   time.Duration
}

// read returns the time, and its lead, if that is known. A process may be stopped between two looks at the clocks: then they say nothing.
func (c *clock) read() (at time.Time, l lead, ok bool) {
	boot, before, ok := c.boot()
	at = c.now().UTC()
	if !ok {
		return at, lead{}, false
	}
	_, after, ok := c.boot()
	return at, lead{boot, time.Duration(at.UnixNano()) - after}, ok && after-before < leastJump/2
}

// leastJump is the least by which a clock counts as set. Programs that keep a clock right correct it by less between two looks.
const leastJump = time.Second

// jump returns by how much the clock was set since an earlier lead; 0 if it was not. Changes while
// the system was off are unknown.
func (l lead) jump(since lead) time.Duration {
	by := l.by - since.by
	if l.boot != since.boot || by.Abs() < leastJump {
		return 0
	}
	return by
}

const (
	bootKey = "boot" // rows of meta: the lead that the file was last written with
	leadKey = "lead"

	// The sum of all jumps. The file keeps the instants that held tasks wait for without it, as a clock had them that nobody ever set: a
	// jump moves all of them by this one row.
	shiftKey = "shift"
)

// shift returns by how much the clock was set since the file was made, in microseconds.
func (t *tx) shift() int64 {
	if t.moved == nil {
		by := t.meta(shiftKey)
		t.moved = &by
	}
	return *t.moved
}

// unset returns an instant as the file keeps it for a held task; 0 is none.
func (t *tx) unset(instant int64) int64 {
	if instant == 0 {
		return 0
	}
	return instant - t.shift()
}

// notBefore is, in SQL, an instant of a task as people see it.
const notBefore = "CASE t.not_before WHEN 0 THEN 0 ELSE t.not_before + coalesce((SELECT value FROM meta WHERE key = 'shift'), 0) END"

// notice looks whether the clock was set since the file was last written, by whichever process, and has what waits, and what is kept for a time,
// go by the time that went by.
func (t *tx) notice(seen lead) {
	if t.s.lead == seen || t.s.lead.boot == seen.boot && t.s.lead.boot != 0 && seen.jump(t.s.lead) == 0 {
		return
	}
	was := lead{t.meta(bootKey), time.Duration(t.meta(leadKey)) * time.Microsecond}
	by := seen.jump(was)
	if by == 0 && was.boot == seen.boot {
		t.seen = was
		return
	}
	t.exec(setMeta, bootKey, seen.boot)
	t.exec(setMeta, leadKey, seen.by.Microseconds())
	if t.seen = seen; by == 0 {
		return
	}
	micros := by.Microseconds()
	t.exec(setMeta, shiftKey, t.shift()+micros)
	t.moved = nil
	if by > 0 {
		t.exec("INSERT INTO jumps (at, by) VALUES (?, ?)", t.now, micros)
		return
	}
	t.setBack(-micros)
}

// setBack takes back what the clock was set forward by before, the latest first.
func (t *tx) setBack(by int64) {
	type jump struct{ row, by int64 }
	var all []jump
	for r := t.query("SELECT rowid, by FROM jumps ORDER BY rowid DESC"); r.next(); {
		all = append(all, jump{r.int(0), r.int(1)})
	}
	for _, j := range all {
		less := min(by, j.by)
		by -= less
		t.exec("UPDATE jumps SET by = by - ? WHERE rowid = ?", less, j.row)
	}
	t.exec("DELETE FROM jumps WHERE by <= 0")
}

// lateBy is, in SQL, by how much an instant of a plan, or of a task, looks older than it is.
func lateBy(column string) string {
	return "(SELECT coalesce(sum(by), 0) FROM jumps WHERE at > " + column + ")"
}
