package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// spoken has what people read for the states whose names say little. A state that is not here is its own word.
var spoken = map[string]string{"held": "waiting", "claimed": "starting", "terminated": "stopped", "orphaned": "lost"}

// Word returns the word that people read for a state, or for the name of a status: held is waiting,
// claimed is starting, terminated is stopped, and orphaned is lost. Programs read the state itself.
func Word(state string) string {
	if w, ok := spoken[state]; ok {
		return w
	}
	return state
}

// allowed is what people read after the state of a task that went wrong and whose plan allows that.
const allowed = " (allowed)"

// WordOf returns what people read for the state of a task: its Word, and whether its plan allows that it went wrong, as in "failed
// (allowed)".
func WordOf(state string, isAllowed bool) string {
	if isAllowed {
		return Word(state) + allowed
	}
	return Word(state)
}

// SaysAllowed reports whether a word is one of WordOf for what a plan allows.
func SaysAllowed(word string) bool { return strings.HasSuffix(word, allowed) }

// Word is what people read for the status.
func (s Status) Word() string { return Word(s.String()) }

// Words are what people read for the states of tasks, in the order of a task's life.
func Words() []string {
	names := []string{"held", "queued", "claimed", "running", "succeeded", "failed", "terminated", "cancelled", "skipped", "orphaned"}
	for i, n := range names {
		names[i] = Word(n)
	}
	return names
}

// A StateError is of a text that names no state.
type StateError string

func (e StateError) Error() string {
	return fmt.Sprintf("%q is not a task's state; it is one of %s, or a number", string(e), strings.Join(append(Words(), stateAllowed), ", "))
}

// ParseStates reads states as people and programs write them: by word (waiting), by name (held) or by number (-4). Stores are asked for
// codes. Some states are one code in a store, so keep tells them apart; it is nil where the codes say it all. The word "allowed" is for what
// went wrong and its plan allows, in whichever state. The error is a StateError.
func ParseStates(texts []string) (codes []Status, keep func(*Task) bool, err error) {
	named, apart := map[string]bool{}, false
	for _, text := range texts {
		if text == stateAllowed {
			named[text], apart = true, true
			for _, s := range []Status{Failed, Terminated, Orphaned} {
				if !slices.Contains(codes, s) {
					codes = append(codes, s)
				}
			}
			continue
		}
		code, name, err := parseState(text)
		if err != nil {
			return nil, nil, err
		}
		named[name] = true
		apart = apart || code == Cancelled && name != strconv.Itoa(int(Cancelled)) || code == Failed && name != Failed.String()
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	if !apart {
		return codes, nil, nil
	}
	return codes, func(t *Task) bool {
		return named[t.State()] || named[strconv.Itoa(int(t.Status))] || named[stateAllowed] && t.Allowed()
	}, nil
}

// stateAllowed is no state of a task, and a word that tasks are looked for by.
const stateAllowed = "allowed"

// parseState returns the code to ask a store for, and the state's name or its number.
func parseState(text string) (Status, string, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && Status(n).Valid() {
		return Status(n), strconv.FormatInt(n, 10), nil
	}
	if text == string(ReasonSkipped) {
		return Cancelled, text, nil
	}
	for s, name := range statusWords {
		if s != Unknown && (text == name || text == Word(name)) {
			return s, name, nil
		}
	}
	return 0, "", StateError(text)
}
