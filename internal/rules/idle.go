package rules

import (
	"slices"
	"time"
)

// A Span is a stretch of time.
type Span struct{ From, To time.Time }

// Only long idle spans are worth a break in the axis of a time line.
const (
	leastIdle = time.Minute
	idleShare = 4 // at least one part in so many of the time that is left
)

// Idle returns the spans of a plan before its last retry in which none of its tasks ran, in order. A
// plan that has ended waits for a person, maybe for hours. That says nothing about the plan. end is when
// the plan ended, or now.
func Idle(begin, retried, end time.Time, runs []Ran) []Span {
	if retried.IsZero() {
		return nil
	}
	var ran []Span
	for i := range runs {
		r := &runs[i]
		if r.Started.IsZero() {
			continue
		}
		s := Span{r.Started, r.Ended}
		if s.To.IsZero() {
			s.To = end
		}
		ran = append(ran, s)
	}
	slices.SortFunc(ran, func(a, b Span) int { return a.From.Compare(b.From) })
	var idle []Span
	var sum time.Duration
	last := begin
	add := func(to time.Time) {
		if to.After(retried) {
			to = retried
		}
		if d := to.Sub(last); d >= leastIdle {
			idle = append(idle, Span{last, to})
			sum += d
		}
	}
	for _, s := range ran {
		add(s.From)
		if s.To.After(last) {
			last = s.To
		}
	}
	add(end)
	left := end.Sub(begin) - sum
	return slices.DeleteFunc(idle, func(s Span) bool { return s.To.Sub(s.From) < left/idleShare })
}
