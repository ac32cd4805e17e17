package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A result is one line of the table.
type result struct {
	Scenario string    `json:"scenario"`
	What     string    `json:"what"`
	Value    float64   `json:"value"`
	Unit     string    `json:"unit"`
	Peer     string    `json:"peer,omitempty"` // what Value is compared with
	PeerVal  float64   `json:"peer_value,omitempty"`
	Ratio    float64   `json:"ratio,omitempty"` // Value / PeerVal
	Floor    *floor    `json:"floor,omitempty"`
	Verdict  verdict   `json:"verdict"`
	Missed   []float64 `json:"missed,omitempty"`  // what was judged of it before in this run, if it missed its floor; oldest first
	Note     string    `json:"note,omitempty"`    // sizes, batches, tools
	Skipped  string    `json:"skipped,omitempty"` // why nothing was measured
	Error    string    `json:"error,omitempty"`
}

// A floor is what a figure has to reach.
type floor struct {
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"at_least"` // else at most
	OfRatio bool    `json:"of_ratio"` // the limit is of Ratio, not of Value
}

func atLeast(limit float64) *floor     { return &floor{Limit: limit, AtLeast: true} }
func atMost(limit float64) *floor      { return &floor{Limit: limit} }
func ratioAtMost(limit float64) *floor { return &floor{Limit: limit, OfRatio: true} }
func ratioAtLeast(limit float64) *floor {
	return &floor{Limit: limit, AtLeast: true, OfRatio: true}
}

// passed reports whether the figure, or the ratio if the limit is one of a ratio, reaches the
// floor. NaN never does.
func (f *floor) passed(figure float64) bool {
	if f.AtLeast {
		return figure >= f.Limit
	}
	return figure <= f.Limit
}

type verdict string

const (
	pass      verdict = "pass"
	fail      verdict = "FAIL"
	noFloor   verdict = "-"
	notJudged verdict = "not judged"
	didNotRun verdict = "did not run"
	broken    verdict = "ERROR"
)

// judge fills what follows from the rest: the ratio and the verdict.
func (r *result) judge(quick bool) {
	if r.PeerVal > 0 {
		r.Ratio = r.Value / r.PeerVal
	}
	switch {
	case r.Error != "":
		r.Verdict = broken
	case r.Skipped != "":
		r.Verdict = didNotRun
	case r.Floor == nil:
		r.Verdict = noFloor
	case r.Floor.OfRatio && r.PeerVal == 0:
		r.Verdict = didNotRun
	case quick:
		r.Verdict = notJudged
	case r.Floor.passed(r.judged()):
		r.Verdict = pass
	default:
		r.Verdict = fail
	}
}

func (r *result) value() string {
	if r.Skipped != "" || r.Error != "" {
		return ""
	}
	return number(r.Value, r.Unit)
}

func (r *result) peer() string {
	if r.Peer == "" || r.PeerVal == 0 {
		return r.Peer
	}
	return number(r.PeerVal, r.Unit) + " " + r.Peer
}

func (r *result) ratio() string {
	if r.PeerVal == 0 {
		return ""
	}
	return strconv.FormatFloat(r.Ratio, 'f', 2, 64)
}

func (r *result) floor() string {
	f := r.Floor
	if f == nil {
		return ""
	}
	sign := "≤ "
	if f.AtLeast {
		sign = "≥ "
	}
	return sign + r.number(f.Limit)
}

func (r *result) note() string {
	switch {
	case r.Error != "":
		return strings.ReplaceAll(r.Error, "\n", " ")
	case r.Skipped != "":
		return r.Skipped
	}
	if len(r.Missed) == 0 {
		return r.Note
	}
	before := make([]string, len(r.Missed))
	for i, v := range r.Missed {
		before[i] = r.number(v)
	}
	return "missed before: " + strings.Join(before, ", ") + "; " + r.Note
}

// judged is the figure that the floor is about.
func (r *result) judged() float64 {
	if r.Floor != nil && r.Floor.OfRatio {
		return r.Ratio
	}
	return r.Value
}

// number writes a figure that a floor is about.
func (r *result) number(v float64) string {
	if r.Floor.OfRatio {
		return "ratio " + strconv.FormatFloat(v, 'f', 2, 64)
	}
	return number(v, r.Unit)
}

func (r *result) brief() string {
	var words []string
	for _, w := range []string{r.What, r.value(), r.peer(), r.ratio(), r.floor(), string(r.Verdict), r.note()} {
		if w != "" && w != string(noFloor) {
			words = append(words, w)
		}
	}
	return strings.Join(words, " | ")
}

// number writes a figure with its unit, with as many digits as its size deserves and commas in thousands.
func number(v float64, unit string) string {
	digits := 0
	switch a := math.Abs(v); {
	case a == math.Trunc(a):
	case a < 0.1:
		digits = 3
	case a < 10:
		digits = 2
	case a < 100:
		digits = 1
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if unit == "" {
		return whole
	}
	if unit[0] == '/' {
		return whole + unit
	}
	return whole + " " + unit
}

// A report is everything that a run found.
type report struct {
	Machine []fact   `json:"machine"`
	Quick   bool     `json:"quick"`
	Results []result `json:"results"`
}

// missed reports whether the scenario has a line that misses its floor.
func (r *report) missed(scenario string) bool {
	return slices.ContainsFunc(r.Results, func(l result) bool { return l.Scenario == scenario && l.Verdict == fail })
}

// replace puts the lines of a repeated scenario in place of those before, and keeps their misses.
func (r *report) replace(scenario string, lines []result) {
	of := func(l result) bool { return l.Scenario == scenario }
	at := slices.IndexFunc(r.Results, of)
	for i := range lines {
		for _, before := range r.Results {
			if !of(before) || before.What != lines[i].What {
				continue
			}
			if lines[i].Missed = before.Missed; before.Verdict == fail {
				lines[i].Missed = append(lines[i].Missed, before.judged())
			}
		}
	}
	r.Results = slices.Insert(slices.DeleteFunc(r.Results, of), at, lines...)
}

// A fact is one line about the machine and the conditions.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// print writes the report for people: the conditions, the table, and what to make of it.
func (r *report) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Machine {
		fmt.Fprintf(tw, "%s\t%s\n", f.Name, f.Value)
	}
	fmt.Fprintln(tw)
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(tw, "SCENARIO\tWHAT\tSLUICE\tPEER\tRATIO\tFLOOR\tVERDICT\tNOTE")
	for i := range r.Results {
		l := &r.Results[i]
		cells := []string{l.Scenario, l.What, l.value(), l.peer(), l.ratio(), l.floor(), string(l.Verdict), l.note()}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.summary())
	return err
}

func (r *report) summary() string {
	count := map[verdict]int{}
	for i := range r.Results {
		count[r.Results[i].Verdict]++
	}
	if r.Quick {
		return fmt.Sprintf("quick run, floors not judged: %d lines measured, %d did not run, %d errors",
			count[notJudged]+count[noFloor], count[didNotRun], count[broken])
	}
	return fmt.Sprintf("%d floors passed, %d missed; %d lines without a floor, %d did not run, %d errors",
		count[pass], count[fail], count[noFloor], count[didNotRun], count[broken])
}

func (r *report) exitCode() int {
	for i := range r.Results {
		if v := r.Results[i].Verdict; v == fail || v == broken {
			return 1
		}
	}
	return 0
}
