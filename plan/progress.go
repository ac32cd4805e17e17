package plan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Progress is how far a running attempt says it is.
type Progress struct {
	Fraction float64 `json:"fraction"`       // from 0 to 1
	Text     string  `json:"text,omitempty"` // one line for people, of at most MaxProgressText bytes
}

// ErrProgress means that a fraction is no number.
var ErrProgress = errors.New("the progress of a task begins with a number from 0 to 1")

// NewProgress returns what is kept of a report. A fraction below 0 counts as 0, and above 1 as 1; one that is no number is ErrProgress. Each
// control character becomes a blank. A text that is too long is cut between two characters.
func NewProgress(fraction float64, text string) (Progress, error) {
	if math.IsNaN(fraction) || math.IsInf(fraction, 0) {
		return Progress{}, fmt.Errorf("%v: %w", fraction, ErrProgress)
	}
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
	if len(text) > MaxProgressText {
		end := MaxProgressText
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return Progress{min(max(fraction, 0), 1), text}, nil
}

// ParseProgress reads a line that a command wrote about its progress: the fraction, and a text after a blank.
func ParseProgress(line string) (fraction float64, text string, err error) {
	line = strings.TrimSpace(line)
	word := line
	if end := strings.IndexFunc(line, unicode.IsSpace); end >= 0 {
		word, text = line[:end], line[end:]
	}
	if fraction, err = strconv.ParseFloat(word, 64); err != nil {
		return 0, "", fmt.Errorf("%q: %w", word, ErrProgress)
	}
	return fraction, text, nil
}

// String is for people, as in "40% copied 400 of 1000". Only what is done has 100%.
func (p Progress) String() string {
	const exact = 1e-9 // 0.29 is 29%, though 0.29*100 is less than 29
	return strings.TrimSpace(fmt.Sprintf("%d%% %s", int(math.Floor(p.Fraction*100+exact)), p.Text))
}
