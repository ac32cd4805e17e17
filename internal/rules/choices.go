package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
)

// Choices are the values that a param of a plan may have: texts, numbers and booleans as JSON, in the
// order of the plan file. A param without choices may have any value.
type Choices []json.RawMessage

// Check refuses an empty list, and two choices that a person would write alike, such as 1 and "1". It
// returns the index of the second of them, and 0 for the list.
func (c Choices) Check() (at int, err error) {
	if len(c) == 0 {
		return 0, errors.New("the list of choices is empty, so no value could be given; add choices, or leave the list out")
	}
	seen := make(map[string]bool, len(c))
	for i, word := range c.Words() {
		if seen[word] {
			return i, fmt.Errorf("the choice %s is there twice; drop one of them", jsontext.Brief(c[i]))
		}
		seen[word] = true
	}
	return 0, nil
}

// Choose returns the choice that a person wrote. A text is written as it is, and any other choice as JSON.
func (c Choices) Choose(word string) (json.RawMessage, error) {
	if i := slices.Index(c.Words(), word); i >= 0 {
		return c[i], nil
	}
	return nil, fmt.Errorf("it is no choice; give one of %s", c)
}

// CheckDefault refuses a default that is no choice.
func (c Choices) CheckDefault(value json.RawMessage) error {
	if slices.ContainsFunc(c, func(choice json.RawMessage) bool { return jsontext.Same(choice, value) }) {
		return nil
	}
	return fmt.Errorf("the default %s is no choice; take one of %s, or add it to them", jsontext.Brief(value), c)
}

// CheckChosen refuses params of a plan of which one became a value that is no choice of its param. name is that of
// the param. A value that was there before stays.
func CheckChosen(choices map[string]Choices, was, is json.RawMessage) (name string, err error) {
	var before, now map[string]json.RawMessage
	_ = json.Unmarshal(was, &before) // nil: each value is new
	if err := json.Unmarshal(is, &now); err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(choices)) {
		value, given := now[name]
		fits := func(choice json.RawMessage) bool { return jsontext.Same(choice, value) }
		if given && !jsontext.Same(before[name], value) && !slices.ContainsFunc(choices[name], fits) {
			return name, fmt.Errorf("%s is no choice; give one of %s", jsontext.Brief(value), choices[name])
		}
	}
	return "", nil
}

// Words returns the choices as a person writes them.
func (c Choices) Words() []string {
	words := make([]string, len(c))
	for i, choice := range c {
		var is bool
		if words[i], is = jsontext.TextOf(choice); !is {
			words[i] = string(choice)
		}
	}
	return words
}

// mostChoices is how many choices an error names.
const mostChoices = 20

// String returns the choices as JSON, for errors.
func (c Choices) String() string {
	var words []string
	for _, choice := range c[:min(len(c), mostChoices)] {
		words = append(words, jsontext.Brief(choice))
	}
	text := strings.Join(words, ", ")
	if more := len(c) - mostChoices; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
