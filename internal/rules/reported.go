package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-1177d267/sluice/plan"
)

// NewProgress returns what is kept of a report. A fraction below 0 counts as 0, and above 1 as 1; one
// that is no number is plan.ErrProgress. Each control character becomes a blank. A text that is too long is cut between two characters.
func NewProgress(fraction float64, text string) (plan.Progress, error) {
	if math.IsNaN(fraction) || math.IsInf(fraction, 0) {
		return plan.Progress{}, fmt.Errorf("%v: %w", fraction, plan.ErrProgress)
	}
	return plan.Progress{Fraction: min(max(fraction, 0), 1), Text: lineOf(text, plan.MaxProgressText)}, nil
}

// ParseProgress reads a line that a command wrote about its progress: the fraction, and a text after a blank.
func ParseProgress(line string) (fraction float64, text string, err error) {
	line = strings.TrimSpace(line)
	word := line
	if end := strings.IndexFunc(line, unicode.IsSpace); end >= 0 {
		word, text = line[:end], line[end:]
	}
	if fraction, err = strconv.ParseFloat(word, 64); err != nil {
		return 0, "", fmt.Errorf("%q: %w", word, plan.ErrProgress)
	}
	return fraction, text, nil
}
