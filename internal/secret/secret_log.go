package secret

import (
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/plan"
)

// A printer is what prints one stream of text.
type printer struct {
	attempt int
	stream  plan.Stream
}

func printerOf(e *plan.LogEntry) printer { return printer{e.Attempt, e.Stream} }

// HideLog removes values, as Names.Values finds them, from entries of one task's log. The text of
// one attempt on one stream is one text, however entries divide it and whatever other streams come
// between. A value that continues in another entry becomes Hidden in the first, and the others lose
// their parts of it. before and after are the entries around, as far as the caller has read them;
// LogReach says how far to read. At the end of a stream, the beginning of a value is hidden too,
// from four bytes on.
func HideLog(before, entries, after []plan.LogEntry, values []string) {
	if len(values) == 0 {
		return
	}
	texts := map[printer]*strings.Builder{}
	for i := range entries {
		texts[printerOf(&entries[i])] = &strings.Builder{}
	}
	join := func(entries []plan.LogEntry) (from []int) {
		for i := range entries {
			at := -1
			if text := texts[printerOf(&entries[i])]; text != nil {
				at = text.Len()
				text.WriteString(entries[i].Text)
			}
			from = append(from, at)
		}
		return from
	}
	join(before)
	from := join(entries)
	join(after)
	exact := exactly(values)
	hidden := map[printer][]span{}
	for p, text := range texts {
		hidden[p] = hiddenIn(text.String(), exact)
	}
	for i := range entries {
		entries[i].Text = hideParts(entries[i].Text, from[i], hidden[printerOf(&entries[i])])
	}
}

// LogReach returns how many bytes of each stream before entries HideLog needs. It also reports
// whether HideLog needs the entries after, because a value may begin at the end of a stream.
func LogReach(entries []plan.LogEntry, values []string) (before int, after bool) {
	if len(values) == 0 {
		return 0, false
	}
	longest := len(values[0])
	ends := map[printer]string{}
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if end := ends[printerOf(e)]; len(end) < longest {
			ends[printerOf(e)] = e.Text[max(0, len(e.Text)-longest):] + end
		}
	}
	exact := exactly(values)
	for _, end := range ends {
		at, _ := exact.begins([]byte(end), true)
		after = after || at < len(end)
	}
	return longest - 1, after
}

// LogReaches reports whether each stream of entries has so many bytes in what was read before.
func LogReaches(before, entries []plan.LogEntry, bytes int) bool {
	have := map[printer]int{}
	for i := range before {
		have[printerOf(&before[i])] += len(before[i].Text)
	}
	return !slices.ContainsFunc(entries, func(e plan.LogEntry) bool { return have[printerOf(&e)] < bytes })
}

// exactly returns values as Names.Values finds them, each of which counts as it is.
func exactly(values []string) *Values {
	v := &Values{values: make([]value, len(values))}
	for i := range values {
		v.values[i].text = []byte(values[i])
	}
	return v
}

// hiddenIn returns which parts of a stream are not shown, in order; those that overlap are one.
func hiddenIn(text string, values *Values) []span {
	found := values.find([]byte(text), true)
	if at, _ := values.begins([]byte(text), true); len(text)-at >= shortestPart {
		found = joined(append(found, span{at, len(text)}))
	}
	return found
}

// hideParts returns an entry's text, which begins at a byte of its stream, without these parts of that.
func hideParts(text string, from int, hidden []span) string {
	first, _ := slices.BinarySearchFunc(hidden, from, func(p span, from int) int { return p.to - from - 1 })
	var b strings.Builder
	done := 0
	for _, p := range hidden[first:] {
		if p.from >= from+len(text) {
			break
		}
		if p.from >= from {
			b.WriteString(text[done : p.from-from])
			b.WriteString(Hidden)
		}
		done = min(p.to-from, len(text))
	}
	if done == 0 && b.Len() == 0 {
		return text
	}
	return b.String() + text[done:]
}
