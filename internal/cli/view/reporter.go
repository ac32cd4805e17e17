package view

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// When a line of progress is due.
const (
	reportAtMost = time.Second      // since the last one, at least
	reportShare  = 0.05             // of the tasks ended meanwhile
	reportEvery  = 10 * time.Second // or so long ago was the last one
)

// A Reporter makes the lines of progress of a log, as in "1,200 of 2,011 (60%), 3 failed, about 8s left".
type Reporter struct {
	began    time.Time
	from     plan.Counts // then
	reported time.Time
	share    float64 // that was reported
	counts   plan.Counts
}

// Line returns the line that is due now, or "". A line is due when 5 % more of the tasks have
// ended, at most once a second. It is also due when something changed and the last line is 10 s
// old.
func (r *Reporter) Line(c plan.Counts, now time.Time) string {
	share, text := far(c)
	since := now.Sub(r.reported)
	switch {
	case r.began.IsZero():
		r.began, r.from, r.reported, r.share, r.counts = now, c, now, share, c
		return ""
	case share == 1, c == r.counts, since < reportAtMost, share-r.share < reportShare && since < reportEvery:
		return ""
	}
	r.reported, r.share, r.counts = now, share, c
	if failed := c.Broken(); failed > 0 {
		text += fmt.Sprintf(", %s failed", report.Thousands(failed))
	}
	if c.Allowed > 0 {
		text += fmt.Sprintf(", %s allowed", report.Thousands(c.Allowed))
	}
	if d, ok := rules.TimeLeft(r.from, c, now.Sub(r.began)); ok {
		text += ", about " + duration.Roughly(d) + " left"
	}
	return text
}

// far says how far a plan is: the share of its tasks that have ended, and that in words.
func far(c plan.Counts) (share float64, text string) {
	total := c.Total()
	done := c.Done()
	if total > 0 {
		share = float64(done) / float64(total)
	}
	// 99.6 % is not yet all of it.
	return share, fmt.Sprintf("%s of %s (%d%%)", report.Thousands(done), report.Thousands(total), int(100*share))
}
