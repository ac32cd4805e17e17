package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
)

// choicesOf returns choices of JSON values with blanks between them.
func choicesOf(words string) rules.Choices {
	var c rules.Choices
	for word := range strings.FieldsSeq(words) {
		c = append(c, json.RawMessage(word))
	}
	return c
}

func TestChoicesAreAFewDifferentValues(t *testing.T) {
	for _, c := range []struct {
		name, choices string
		at            int
		wrong         string
	}{
		{"texts", `"test" "prod"`, 0, ""},
		{"one", `"test"`, 0, ""},
		{"of several types", `"test" 1 1.5 true`, 0, ""},
		{"none", ``, 0, "the list of choices is empty, so no value could be given; add choices, or leave the list out"},
		{"a text twice", `"test" "prod" "test"`, 2, `the choice "test" is there twice; drop one of them`},
		{"a number and its text", `1 "1"`, 1, `the choice "1" is there twice; drop one of them`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if at, err := choicesOf(c.choices).Check(); at != c.at || c.wrong == "" && err != nil || c.wrong != "" && (err == nil || err.Error() != c.wrong) {
				t.Errorf("got %d, %v, want %d, %q", at, err, c.at, c.wrong)
			}
		})
	}
}

func TestAValueIsAChoiceAsAPersonWritesIt(t *testing.T) {
	for _, c := range []struct{ name, choices, word, want, wrong string }{
		{"a text", `"test" "prod"`, "prod", `"prod"`, ""},
		{"a number", `1 2`, "2", `2`, ""},
		{"a boolean", `true "maybe"`, "true", `true`, ""},
		{"the text of a boolean", `"true"`, "true", `"true"`, ""},
		{"another text", `"test" "prod"`, "prd", "", `it is no choice; give one of "test", "prod"`},
		{"other letters", `"test" "prod"`, "Test", "", `it is no choice; give one of "test", "prod"`},
		{"another spelling of a number", `1 2`, "1.0", "", "it is no choice; give one of 1, 2"},
		{"nothing", `"test"`, "", "", `it is no choice; give one of "test"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := choicesOf(c.choices).Choose(c.word)
			if string(got) != c.want || c.wrong == "" && err != nil || c.wrong != "" && (err == nil || err.Error() != c.wrong) {
				t.Errorf("got %s, %v, want %s, %q", got, err, c.want, c.wrong)
			}
		})
	}
}

func TestADefaultIsAChoiceOfItsType(t *testing.T) {
	for _, c := range []struct{ name, choices, value, wrong string }{
		{"a text", `"test" "prod"`, `"prod"`, ""},
		{"in another spelling", `"é"`, `"\u00e9"`, ""},
		{"another text", `"test" "prod"`, `"prd"`, `the default "prd" is no choice; take one of "test", "prod", or add it to them`},
		{"a text beside numbers", `1.25 1.26`, `"1.25"`, `the default "1.25" is no choice; take one of 1.25, 1.26, or add it to them`},
		{"a list", `"a"`, `["a"]`, `the default ["a"] is no choice; take one of "a", or add it to them`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := choicesOf(c.choices).CheckDefault(json.RawMessage(c.value)); c.wrong == "" && err != nil || c.wrong != "" && (err == nil || err.Error() != c.wrong) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}

func TestAnErrorNamesTwentyChoices(t *testing.T) {
	var c rules.Choices
	for n := range 25 {
		c = append(c, fmt.Appendf(nil, "%d", n))
	}
	if _, err := c.Choose("x"); err == nil || !strings.HasSuffix(err.Error(), "give one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 5 more") {
		t.Error(err)
	}
}

func TestAParamBecomesOneOfItsChoicesOrStays(t *testing.T) {
	choices := map[string]rules.Choices{"site": choicesOf(`"test" "prod"`), "level": choicesOf(`1 true`)}
	for _, c := range []struct{ was, is, wrong string }{
		{`{"site": "test"}`, `{"site": "prod", "level": 1, "other": "x"}`, ""},
		{`{"site": "live"}`, `{"site": "live"}`, ""}, // as an earlier file had it
		{`{"site": "test"}`, `{"level": true}`, ""},
		{`{"site": "test"}`, `{"site": "live"}`, `site: "live" is no choice; give one of "test", "prod"`},
		{``, `{"level": "1"}`, `level: "1" is no choice; give one of 1, true`},
	} {
		name, err := rules.CheckChosen(choices, json.RawMessage(c.was), json.RawMessage(c.is))
		if wrong := fmt.Sprintf("%s: %v", name, err); err == nil && c.wrong != "" || err != nil && wrong != c.wrong {
			t.Errorf("%s after %s: %s, want %q", c.is, c.was, wrong, c.wrong)
		}
	}
}
