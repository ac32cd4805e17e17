package secret

import (
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/plan"
)

// shortestBeginning is how many bytes of a secret are hidden at the end of a log whose rest may still come: in fewer, much else ends.
const shortestBeginning = 4

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
	hidden := map[printer][]part{}
	for p, text := range texts {
		hidden[p] = hiddenIn(text.String(), values)
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
	for _, end := range ends {
		after = after || beginning(end, values) < len(end)
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

// A part of a text: from a byte up to another.
type part struct{ from, to int }

// hiddenIn returns which parts of a stream are not shown, in order; those that overlap are one.
func hiddenIn(text string, values []string) []part {
	var found []part
	for _, v := range values {
		for at := 0; ; at++ { // a value may overlap itself
			i := strings.Index(text[at:], v)
			if i < 0 {
				break
			}
			at += i
			found = append(found, part{at, at + len(v)})
		}
	}
	if at := beginning(text, values); len(text)-at >= shortestBeginning {
		found = append(found, part{at, len(text)})
	}
	slices.SortFunc(found, func(a, b part) int { return a.from - b.from })
	joined := found[:0]
	for _, f := range found {
		if last := len(joined) - 1; last >= 0 && f.from < joined[last].to {
			joined[last].to = max(joined[last].to, f.to)
		} else {
			joined = append(joined, f)
		}
	}
	return joined
}

// beginning returns where at the end of a text a value may begin whose rest is not there yet; the length of the text if none does.
func beginning(text string, values []string) int {
	least := len(text)
	for _, v := range values {
		for at := max(0, len(text)-len(v)+1); at < least; at++ {
			if strings.HasPrefix(v, text[at:]) {
				least = at
			}
		}
	}
	return least
}

// hideParts returns an entry's text, which begins at a byte of its stream, without these parts of that.
func hideParts(text string, from int, hidden []part) string {
	first, _ := slices.BinarySearchFunc(hidden, from, func(p part, from int) int { return p.to - from - 1 })
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
