package rules

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// TellsFailures reports whether a task is told how tasks failed: all tasks of its plan (all), or those that it
// needs, with their items.
func TellsFailures(d *plan.Definition) (tells, all bool) { return TellsResults(d.When), d.Finally }

// Failures are the failed tasks that one task is told of, as many as fit into plan.MaxFailures. The zero value
// has none.
type Failures struct {
	list []plan.Failure
	size int // of the list without what FailureCuts take away
	more int // left out
}

// A failureCut takes a field from a failure, for which there is no room.
type failureCut func(*plan.Failure)

// failureCuts are the fields that a list which is too long loses, in this order. Task, Key, Attempt and Exit
// stay.
var failureCuts = []failureCut{
	func(f *plan.Failure) { f.Lines = nil },
	func(f *plan.Failure) { f.Detail = "" },
	func(f *plan.Failure) { f.Item = nil },
}

// Add adds a failure. It reports false if there is no room for it, whatever fields the list loses; then it
// only counts it.
func (f *Failures) Add(failure plan.Failure) bool {
	least := failure
	for _, cut := range failureCuts {
		cut(&least)
	}
	size := sizeOfFailure(&least)
	if f.more > 0 || f.size+size > plan.MaxFailures-mostMark {
		f.more++
		return false
	}
	f.size, f.list = f.size+size, append(f.list, failure)
	return true
}

// mostMark is how many bytes the list has beside its failures: the brackets, and the mark at its end.
const mostMark = 100

// JSON returns the list, of at most plan.MaxFailures bytes. If it is longer, failures lose the fields of
// failureCuts, one kind after the other and the last failures first. If failures are left out all the same, the
// list ends with {"more": N}.
func (f *Failures) JSON() (json.RawMessage, error) {
	sizes, sum := make([]int, len(f.list)), mostMark
	for i := range f.list {
		sizes[i] = sizeOfFailure(&f.list[i])
		sum += sizes[i]
	}
	for _, cut := range failureCuts {
		for i := len(f.list) - 1; i >= 0 && sum > plan.MaxFailures; i-- {
			cut(&f.list[i])
			is := sizeOfFailure(&f.list[i])
			sum, sizes[i] = sum-sizes[i]+is, is
		}
	}
	list := make([]any, 0, len(f.list)+1)
	for i := range f.list {
		list = append(list, &f.list[i])
	}
	if f.more > 0 {
		list = append(list, map[string]int{"more": f.more})
	}
	return jsontext.Marshal(list)
}

// sizeOfFailure returns how many bytes a failure has in the list, with the comma.
func sizeOfFailure(f *plan.Failure) int {
	text, err := jsontext.Marshal(f)
	if err != nil { // an item that is no JSON, as another program may have written it
		f.Item = nil
		text, _ = jsontext.Marshal(f)
	}
	return len(text) + 1
}

// The most of a log that a failure has.
const (
	mostLines     = 20
	mostLineBytes = 4 << 10 // of all lines together
)

// LastLines returns the last lines that the attempt printed, of the whole log of a task whose last attempt it is.
func LastLines(log []plan.LogEntry, attempt int) []string {
	from := len(log)
	for from > 0 {
		e := &log[from-1]
		if e.Attempt != attempt && e.Attempt != 0 || IsRetried(e) || IsGivenBack(e) { // 0 is what another program logged, and did not number
			break
		}
		from--
	}
	var text strings.Builder
	for _, e := range log[from:] {
		text.WriteString(e.Text)
	}
	if text.Len() == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	lines = lines[max(0, len(lines)-mostLines):]
	room := mostLineBytes
	for i, line := range slices.Backward(lines) {
		if room -= len(line); room < 0 {
			const mark = "…"
			lines[i] = mark + strings.ToValidUTF8(line[min(len(line), -room+len(mark)):], "")
			return lines[i:]
		}
	}
	return lines
}

// DeliverFailures returns params, a JSON object or nil, with failures, a JSON list, under that key. It replaces
// that key in params.
func DeliverFailures(params, failures json.RawMessage) (json.RawMessage, error) {
	return withMember(params, "failures", failures)
}
