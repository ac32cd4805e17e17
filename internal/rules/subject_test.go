package rules_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestASubjectIsOneLineOfLimitedLength(t *testing.T) {
	for _, c := range []struct{ name, text, wrong string }{
		{"none", "", ""},
		{"a number", "4711", ""},
		{"of other letters", "Bestellung – ☕", ""},
		{"as long as may be", strings.Repeat("x", plan.MaxSubject), ""},
		{"too long", strings.Repeat("x", plan.MaxSubject+1), "subject has 201 bytes, and at most 200 are kept; shorten it"},
		{"too long in bytes, not in characters", strings.Repeat("é", 101), "subject has 202 bytes"},
		{"two lines", "a\nb", `subject "a\nb" has a control character or a line break; write it as one line`},
		{"a tab", "a\tb", "control character"},
		{"a line separator", "a\u2028b", "line break"},
		{"a blank", " ", `subject " " is blank; say what the task is about`},
		{"another blank", "\u00a0", "is blank"},
		{"no UTF-8", "a\xff", `subject "a\xff" is not UTF-8`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := rules.CheckSubject(c.text)
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}

func TestAnItemHasASubjectOfItsOwn(t *testing.T) {
	for _, c := range []struct{ name, of, item, want string }{
		{"no expression", "order", `1`, "order"},
		{"none", "", `1`, ""},
		{"a text", "${{ item }}", `"a b"`, "a b"},
		{"a number in a text", "order ${{ item }}", `7`, "order 7"},
		{"a field", "${{ item.n }}/${{ item.m }}", `{"n":"x","m":[1]}`, "x/[1]"},
		{"nothing", "${{ item }}", `null`, ""},
		{"a field that is not there", "order ${{ item.n }}", `{"m":1}`, ""},
		{"an expression in the item is data", "${{ item }}", `"${{ item }}"`, "${{ item }}"},
		{"quotes", "${{ '${{' }} ${{ item }}", `1`, "${{ 1"},
		{"several lines become one", "${{ item }}", `"a\nb\n"`, "a b"},
		{"a long one is cut between two characters", "x${{ item }}", `"` + strings.Repeat("é", 200) + `"`, "x" + strings.Repeat("é", 99)},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := plan.Task{ID: number(1), Definition: plan.Definition{Subject: c.of}}
			got := rules.ItemTask(&of, 0, json.RawMessage(c.item), nil, time.Time{}).Subject
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if err := rules.CheckSubject(got); err != nil {
				t.Error(err)
			}
		})
	}
}
