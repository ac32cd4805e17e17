package rules_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A list of failures that is too long loses lines, then details, then items, and at last failures. The list
// counts those that it leaves out.
func TestFailuresFitIntoOneMiB(t *testing.T) {
	text := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name                                  string
		failures                              int
		left, lines, details, values, omitted int
	}{
		{"none is an empty list", 0, 0, 0, 0, 0, 0},
		{"few have all", 100, 100, 100, 100, 100, 0},
		{"the last ones lose their lines first", 400, 400, 142, 400, 400, 0},
		{"then their details", 600, 600, 0, 401, 600, 0},
		{"then their items", 3000, 3000, 0, 0, 855, 0},
		{"of very many the last ones are left out", 20_000, 16_818, 0, 0, 0, 3182},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f rules.Failures
			for i := range c.failures {
				item, _ := json.Marshal(text)
				f.Add(plan.Failure{Task: fmt.Sprintf("copy[%d]", i), Key: "k", Attempt: 1, Exit: &plan.Exit{Code: 7}, Item: item, Detail: text, Lines: []string{text, text[:500]}})
			}
			list, err := f.JSON()
			if err != nil || len(list) > plan.MaxFailures {
				t.Fatalf("it has %d bytes: %v", len(list), err)
			}
			var all []struct {
				plan.Failure
				More int `json:"more"`
			}
			if err := json.Unmarshal(list, &all); err != nil {
				t.Fatal(err)
			}
			got := make([]int, 5)
			for _, f := range all {
				for k, has := range []bool{f.More == 0, f.Lines != nil, f.Detail != "", f.Item != nil} {
					if has {
						got[k]++
					}
				}
				got[4] += f.More
			}
			if want := []int{c.left, c.lines, c.details, c.values, c.omitted}; !slices.Equal(got, want) {
				t.Errorf("failures, lines, details, items and what was left out are %v, want %v", got, want)
			}
		})
	}
}

func TestTheLastLinesOfAnAttempt(t *testing.T) {
	entry := func(attempt int, text string) plan.LogEntry {
		return plan.LogEntry{Attempt: attempt, Stream: plan.Stdout, Text: text}
	}
	var many []plan.LogEntry
	for i := range 30 {
		many = append(many, entry(1, fmt.Sprintln(i)))
	}
	long := strings.Repeat("ü", 3000)
	for _, c := range []struct {
		name    string
		attempt int
		log     []plan.LogEntry
		want    []string
	}{
		{"none were printed", 1, nil, nil},
		{"entries join to lines", 1, []plan.LogEntry{entry(1, "a\nb"), entry(1, "c"), entry(1, "\n")}, []string{"a", "bc"}},
		{"an attempt before is another", 2, []plan.LogEntry{entry(1, "a\n"), entry(2, "b\n")}, []string{"b"}},
		{"an attempt that printed nothing has none", 2, []plan.LogEntry{entry(1, "a\n")}, nil},
		{"so is one before a retry", 1, []plan.LogEntry{entry(1, "a\n"), rules.RetriedEntry(time.Time{}), entry(1, "b\n")}, []string{"b"}},
		{"at most twenty", 1, many, []string{"10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29"}},
		{"a long line loses its beginning", 1, []plan.LogEntry{entry(1, "a\n"+long)}, []string{"…" + strings.Repeat("ü", 2046)}},
		{"and the lines before it go", 1, []plan.LogEntry{entry(1, long+"\nb")}, []string{"…" + strings.Repeat("ü", 2046), "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rules.LastLines(c.log, c.attempt); !slices.Equal(got, c.want) {
				t.Errorf("got %.80q, want %.80q", got, c.want)
			}
		})
	}
}

func TestFailuresAreDelivered(t *testing.T) {
	got, err := rules.DeliverFailures(json.RawMessage(`{"run": "x", "failures": 1}`), json.RawMessage(`[{"task":"a"}]`))
	if want := `{"run":"x","failures":[{"task":"a"}]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
