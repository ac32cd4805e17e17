package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// CheckSubject returns what is wrong with a text that is to say what a task is about. "" says nothing.
func CheckSubject(text string) error {
	switch {
	case len(text) > plan.MaxSubject:
		return fmt.Errorf("subject has %d bytes, and at most %d are kept; shorten it, and put the rest into the params", len(text), plan.MaxSubject)
	case !utf8.ValidString(text):
		return fmt.Errorf("subject %q is not UTF-8; write it in UTF-8", text)
	case strings.ContainsFunc(text, notInLine):
		return fmt.Errorf("subject %q has a control character or a line break; write it as one line of text", text)
	case text != "" && strings.TrimSpace(text) == "":
		return fmt.Errorf("subject %q is blank; say what the task is about, or leave it out", text)
	}
	return nil
}

// notInLine reports whether a character is none of a line of text.
func notInLine(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) }

// SubjectText returns what a value is as a subject, or in one: a text as it is, and any other value as JSON.
func SubjectText(value json.RawMessage) string {
	if text, is := jsontext.TextOf(value); is {
		return text
	}
	if string(value) == "null" {
		return ""
	}
	return string(value)
}

// itemSubject returns the subject of an item, by that of its foreach task. An item has none if it lacks
// what the expressions name. A text that CheckSubject would refuse is made to fit.
func itemSubject(of string, item json.RawMessage) string {
	value, err := expr.Evaluate(of, func(steps []string) (json.RawMessage, bool, error) { return item, steps[0] == "item", nil }, false)
	switch {
	case err != nil:
		return ""
	case value == nil: // there is no expression
		return of
	}
	return lineOf(SubjectText(value), plan.MaxSubject)
}

// lineOf makes a line of text of at most so many bytes: each control character becomes a blank, and a
// text that is too long is cut between two characters.
func lineOf(text string, most int) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if notInLine(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
	if len(text) > most {
		end := most
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return text
}
