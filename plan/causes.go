package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Causes are ways in which an attempt fails: exit statuses of its command (1 to 255), "timeout", and
// "signal" if a signal ended the command. They are joined by commas, each once, statuses first. In
// JSON they are a list of texts. NewCauses makes them.
type Causes string

// The causes that are no exit status.
const (
	CauseTimeout = "timeout"
	CauseSignal  = "signal"
)

// NewCauses returns the causes of some words, or why a word is none.
func NewCauses(words []string) (Causes, error) {
	if len(words) == 0 {
		return "", errors.New("it names nothing; give exit statuses, timeout or signal, as in [75, timeout]")
	}
	status := func(word string) int {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 255 || strconv.Itoa(n) != word {
			return 0
		}
		return n
	}
	for _, w := range words {
		if w != CauseTimeout && w != CauseSignal && status(w) == 0 {
			return "", fmt.Errorf("%q is no way to fail; give exit statuses from 1 to 255, timeout or signal, as in [75, timeout]", w)
		}
	}
	words = slices.Clone(words)
	slices.SortFunc(words, func(a, b string) int {
		x, y := cmp.Or(status(a), 256), cmp.Or(status(b), 256)
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	})
	return Causes(strings.Join(slices.Compact(words), ",")), nil
}

// List returns the words.
func (c Causes) List() []string {
	if c == "" {
		return nil
	}
	return strings.Split(string(c), ",")
}

// Have reports whether an attempt that ended for the reason, and with the exit, failed in one of these
// ways. exit is nil if it was no command.
func (c Causes) Have(reason Reason, exit *Exit) bool {
	word := ""
	switch {
	case reason == ReasonTimeout:
		word = CauseTimeout
	case exit == nil:
		return false
	case exit.Signal != "":
		word = CauseSignal
	default:
		word = strconv.Itoa(exit.Code)
	}
	return slices.Contains(c.List(), word)
}

// MarshalJSON implements json.Marshaler.
func (c Causes) MarshalJSON() ([]byte, error) { return json.Marshal(c.List()) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Causes) UnmarshalJSON(text []byte) error {
	var words []string
	if err := json.Unmarshal(text, &words); err != nil {
		return err
	}
	if words == nil { // null
		*c = ""
		return nil
	}
	causes, err := NewCauses(words)
	if err == nil {
		*c = causes
	}
	return err
}
