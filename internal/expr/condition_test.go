package expr

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func conditionScope(t testing.TB) Scope {
	t.Helper()
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(`{
		"needs": {"check": {"changed": 3, "ok": true, "name": "a'b", "big": 9007199254740993, "none": null, "parts": [{"n": 1}, {"n": 2}]}, "fetch-all": [1, "two"]},
		"item": "anna"}`), &values); err != nil {
		t.Fatal(err)
	}
	return func(steps []string) (json.RawMessage, bool, error) {
		v, ok := values[steps[0]]
		return v, ok, nil
	}
}

func TestConditions(t *testing.T) {
	scope := conditionScope(t)
	for text, want := range map[string]string{
		"true": "true", "!true": "false", "false || true": "true", "true && false": "false",
		"needs.check.changed > 0": "true", "needs.check.changed>=4": "false", "needs.check.changed == 3.0": "true", "3 != needs.check.changed": "false",
		"needs.check.ok": "true", "!needs.check.ok || needs.check.changed < 0": "false",
		"needs.check.name == 'a''b'": "true", `needs.check.name == "a'b"`: "true", "item < 'b'": "true", "item <= 'a'": "false",
		"needs.check.big == 9007199254740992": "false", "needs.check.big > 9007199254740992": "true", "1e400 > 1e399": "true", "-1 < 0": "true",
		"item in ['otto', 'anna']": "true", "1 in needs.fetch-all": "true", "1.0 in needs.fetch-all": "true", "item in []": "false", "'changed' in needs.check": "true", "'x' in needs.check": "false",
		"2 in needs.check.parts.*.n": "true", "needs.check.parts[1].n == 2": "true", "needs.check.none == null": "true", "needs.check == null": "false",
		"'x' in needs.check && needs.check.x > 1": "false", "true || needs.nothing.x": "true",
		"(1 < 2) == (2 < 3)": "true", "!(1 < 2 && 2 < 1)": "true", "true || false && false": "true", "(true || false) && false": "false",
		`{"a": 1} == {"a": 1}`: "true", `'a' in {"a": 1}`: "true", "[1, 2] == [1, 2]": "true", "\n true\t": "true",

		"needs.check.changed":      "needs.check.changed is 3, and a condition is true or false; compare it, as in needs.check.changed == 3",
		"needs.check.missing == 1": `needs.check has no "missing"`,
		"needs.check.none.x == 1":  `needs.check.none is null: it has no "x"`,
		"params.x == 1":            "params.x }} is not known here",
		"item < 3":                 `"anna" < 3 compares neither two numbers nor two texts`,
		"1 in item":                "is neither a list nor an object",
		"1 in needs.check":         "is no text, and in looks for a key",
		"'yes' && true":            `is "yes", and a condition is true or false`,
		"":                         "column 1: it ends where a value is missing",
		"needs.check.changed = 3":  "column 21: =: write == to compare",
		"needs.check.changed + 1":  "column 21: +: there is no arithmetic",
		"1 < 2 < 3":                "column 7: < < compares the result of a comparison",
		"len(needs.check) > 1":     "column 4: len(…) is a call, and a condition has none",
		"true and false":           "column 6: and: write && for and",
		"not true":                 "column 1: not: write ! for not", "3": "true or false, and not a value alone", "[1]": "true or false, and not a value alone",
		"true &&":                    "it ends where a value is missing",
		"(true":                      "it ends where a value is missing",
		"[1, 2":                      "it ends where a value is missing",
		"[1 2]":                      "column 4: 2: it is no value",
		"item == 'anna":              "column 9: ': the text has no end",
		"${{ item }} == 1":           "column 1: $: write the path without ${{ }}",
		"item ~ 'a'":                 "column 6: ~: there are no patterns",
		"{item}":                     "column 1: { begins no object of JSON",
		"in":                         "column 1: in: it is no value",
		strings.Repeat("!", 1000):    "it ends where a value is missing",
		strings.Repeat("true ", 300): "at most 1000",
	} {
		c, err := ParseCondition(text)
		var is bool
		if err == nil {
			is, _, err = c.Holds(scope)
		}
		got := string(truths[is])
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestAConditionSaysWhatDecided(t *testing.T) {
	c, err := ParseCondition("needs.check.changed > 5 && item == 'anna' || needs.check.ok == false")
	if err != nil {
		t.Fatal(err)
	}
	if is, decided, err := c.Holds(conditionScope(t)); is || err != nil || !slices.Equal(decided, []string{"needs.check.changed is 3", "needs.check.ok is true"}) {
		t.Errorf("%v, %q, %v; want false, and what was read alone", is, decided, err)
	}
	if got := c.Paths(); !slices.Equal(got, []string{"needs.check.changed", "item", "needs.check.ok"}) {
		t.Errorf("its paths are %q", got)
	}
}

func TestAConditionOfWhatIsKnown(t *testing.T) {
	known := func(steps []string) (json.RawMessage, bool, error) {
		return json.RawMessage(`{"env": "it's", "n": [1, {"a": "b"}], "x": {"k": null}}`), steps[0] == "params", nil
	}
	for text, want := range map[string]string{
		"params.env == 'prod' && needs.a.b > 1": `"it's" == "prod" && needs.a.b > 1`,
		"item in params.n":                      `item in [1, {"a": "b"}]`,
		"'k' in params.x":                       `"k" in {"k": null}`,
		"!(a.b || c.d) && (e.f || g.h)":         "!(a.b || c.d) && (e.f || g.h)",
		"a.b && c.d || e.f":                     "a.b && c.d || e.f",
		"(a.b == c.d) == (e.f != 1)":            "(a.b == c.d) == (e.f != 1)",
		"a.b && (c.d && e.f)":                   "a.b && (c.d && e.f)",
		"[a.b || c.d, 1]==[]":                   "[a.b || c.d, 1] == []",
	} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := c.Known(known)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
		if _, err := ParseCondition(got); err != nil {
			t.Errorf("%s, as %s: %v", text, got, err)
		}
	}
}

// FuzzCondition finds conditions that mean something else once what is known stands in them.
func FuzzCondition(f *testing.F) {
	for _, text := range []string{"needs.check.changed > 0 && !(item in ['a', \"b\"])", "{\"a\": [1]} == needs.x", "(a == b) == c", "[[1], needs.fetch-all.*] != null"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCondition(text)
		if err != nil {
			return
		}
		same, err := c.Known(Nothing)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := ParseCondition(same)
		if err != nil {
			if len(same) > MaxCondition {
				return
			}
			t.Fatalf("%q, written %q: %v", text, same, err)
		}
		scope := conditionScope(t)
		was, before, failed := c.Holds(scope)
		is, after, fails := again.Holds(scope)
		if was != is || !slices.Equal(before, after) || (failed == nil) != (fails == nil) {
			t.Fatalf("%q is %v (%q, %v), and written %q it is %v (%q, %v)", text, was, before, failed, same, is, after, fails)
		}
	})
}
