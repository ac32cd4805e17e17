package report

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// task is a task that ran for 1.5 s, if it has ended.
func task(name string, s plan.Status, change func(*Task)) Task {
	t := Task{Task: plan.Task{Name: name, Status: s}}
	if s.Finished() && s != plan.Cancelled {
		t.Started, t.Ended, t.Attempt = began, began.Add(1500*time.Millisecond), 1
	}
	if change != nil {
		change(&t)
	}
	return t
}

// run puts tasks in a plan that has ended as rules.Verdict says, or still runs.
func run(tasks ...Task) *Run {
	r := &Run{Plan: plan.Plan{Name: "nightly", Run: 3, Created: began}, Tasks: tasks, Now: began.Add(time.Hour)}
	for _, t := range tasks {
		rules.Count(&r.Plan.Counts, rules.CountedOf(&t.Task), 1)
	}
	if c := r.Plan.Counts; c.Settled() {
		r.Plan.State = rules.Verdict(plan.PlanRunning, plan.Open, c.Broken() > 0, c.Cancelled > 0)
		r.Plan.Ended = began.Add(245 * time.Second)
	}
	return r
}

func migration() *Run {
	return run(
		task("list", plan.Succeeded, func(t *Task) { t.Tail = []string{"3 mailboxes"} }),
		task("copy[0]", plan.Succeeded, func(t *Task) { t.Item, t.Attempt = json.RawMessage(`{"name": "al|ce"}`), 2 }),
		task("copy[1]", plan.Failed, func(t *Task) {
			t.Item, t.Attempt, t.Detail, t.Exit = json.RawMessage(`"bob@example.com"`), 3, "exit status 7", &plan.Exit{Code: 7}
			t.Tail = []string{"connecting to bob@example.com", "\x1b[31merror:\x1b[0m no such <mailbox> & no \"reply\"", "10%\r50%\r90%", "```", "bell \a"}
		}),
		task("copy", plan.Failed, func(t *Task) {
			t.Started, t.Reason, t.Detail, t.Expanded, t.Items = time.Time{}, plan.ReasonItems, "1 of 2 items failed", true, 2
		}),
		task("scan", plan.Terminated, func(t *Task) { t.Reason, t.Detail = plan.ReasonTimeout, "it ran longer than 1s\nand was stopped" }),
		task("lint", plan.Failed, func(t *Task) { t.ContinueOnError, t.Status, t.Tail = true, 12, []string{"1 | finding"} }),
		task("verify", plan.Cancelled, func(t *Task) { t.Reason = plan.ReasonSkipped }),
		task("lost", plan.Orphaned, func(t *Task) { t.Reason, t.Detail = plan.ReasonLost, "its node died while it ran, for the 4th time" }),
	)
}

// typed is a command as a person types it.
func typed(words ...string) string { return "sluice " + strings.Join(words, " ") }

// full is a run that has all that Text can tell.
func full() *Run {
	r := run(
		task("seen", plan.Failed, func(t *Task) { t.Tail, t.Seen = []string{"printed a moment ago"}, true }),
		task("quiet", plan.Failed, nil),
		task("list", plan.Succeeded, nil),
	)
	r.More, r.Unasked = 45, true
	r.Outputs = []Output{
		{Name: "each", Value: json.RawMessage(`[null, null]`)}, {Name: "list", Value: json.RawMessage(`{"boxes": 3}`)}, {Name: "name", Value: json.RawMessage(`"a\nb"`)},
		{Name: "copy", Missing: "too much output"},
	}
	return r
}

func junit(t *testing.T, r *Run) string {
	t.Helper()
	j := NewJUnit(r.Plan, r.Now)
	for i := range r.Tasks {
		j.Add(&r.Tasks[i])
	}
	var b strings.Builder
	if err := j.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	cancelled := run(task("list", plan.Succeeded, nil), task("copy", plan.Cancelled, func(t *Task) { t.Reason = plan.ReasonCancelled }))
	going := run(task("list", plan.Succeeded, nil), task("copy", plan.Running, func(t *Task) { t.Started = began.Add(59 * time.Minute) }),
		task("verify", plan.Held, nil))
	going.Left = "interrupted"
	for name, r := range map[string]*Run{
		"full": full(), "failed": migration(), "succeeded": run(task("list", plan.Succeeded, nil)), "cancelled": cancelled, "going": going, "empty": run(),
	} {
		for end, got := range map[string]string{"xml": junit(t, r), "md": r.Markdown(MostMarkdown), "txt": r.Text(plain{}, typed)} {
			t.Run(name+"."+end, func(t *testing.T) {
				path := filepath.Join("testdata", name+"."+end)
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("got\n%s\nwant\n%s\n(go test -run TestGolden -update rewrites the file)", got, want)
				}
			})
		}
	}
}

func TestLabel(t *testing.T) {
	long := strings.Repeat("漢", 30)
	for _, c := range []struct{ name, item, want string }{
		{"a task that is no item has its key alone", "", "copy[1]"},
		{"a text stands as it is", `"bob"`, "copy[1] (bob)"},
		{"anything else is JSON", "{\n \"a\": [1, null]}", `copy[1] ({"a":[1,null]})`},
		{"so are nothing and a text of nothing", "null", "copy[1] (null)"},
		{"which show what they are", `""`, `copy[1] ("")`},
		{"a long one is cut, in columns", `"` + long + `"`, "copy[1] (" + long[:19*len("漢")] + "…)"},
		{"what could change the terminal does not", `"\u001b[31mred\u001b[0m\n\u202ex"`, "copy[1] (red \ufffdx)"},
		{"what is no JSON is left out", `{"a":`, "copy[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Label(&plan.Task{Name: "copy[1]"}, json.RawMessage(c.item), "…"); got != c.want {
				t.Errorf("Label(%s) = %q, want %q", c.item, got, c.want)
			}
		})
	}
	got, want := Label(&plan.Task{Name: "copy[1]"}, json.RawMessage(`"`+long+`"`), "..."), "copy[1] ("+long[:18*len("漢")]+"...)"
	if got != want {
		t.Errorf("a long one with another mark is %q, want %q", got, want)
	}
}

// parsed is a report as a CI server reads it.
type parsed struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Suites   []struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Name    string    `xml:"name,attr"`
			Time    float64   `xml:"time,attr"`
			Failure *failure  `xml:"failure"`
			Error   *struct{} `xml:"error"`
			Skipped *struct{} `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type failure struct {
	Text string `xml:",chardata"`
}

func parse(t *testing.T, text string) parsed {
	t.Helper()
	var p parsed
	if err := xml.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if len(p.Suites) != 1 {
		t.Fatalf("%d suites, want one", len(p.Suites))
	}
	return p
}

// kinds returns how many cases there are of each kind, after checking that the
// suites count the same.
func kinds(t *testing.T, text string) (tests, failures, errors, skipped int) {
	t.Helper()
	p := parse(t, text)
	s := p.Suites[0]
	for _, c := range s.Cases {
		tests++
		if c.Failure != nil {
			failures++
		}
		if c.Error != nil {
			errors++
		}
		if c.Skipped != nil {
			skipped++
		}
	}
	got := [4]int{tests, failures, errors, skipped}
	if s := [4]int{s.Tests, s.Failures, s.Errors, s.Skipped}; s != got {
		t.Errorf("the suite counts %v, its cases are %v", s, got)
	}
	if p := [4]int{p.Tests, p.Failures, p.Errors, p.Skipped}; p != got {
		t.Errorf("the report counts %v, its cases are %v", p, got)
	}
	return tests, failures, errors, skipped
}

func TestJUnitKinds(t *testing.T) {
	reason := func(r plan.Reason) func(*Task) { return func(t *Task) { t.Reason = r } }
	allowed := func(t *Task) { t.ContinueOnError = true }
	for _, c := range []struct {
		name string
		task Task
		want string
	}{
		{"what succeeded passed", task("t", plan.Succeeded, nil), "passed"},
		{"a failure is one", task("t", plan.Failed, nil), "failure"},
		{"so is a status of the plugin's own", task("t", 77, nil), "failure"},
		{"so is a signal", task("t", plan.Failed, reason(plan.ReasonSignal)), "failure"},
		{"items are cases themselves, and their task is none more", task("t", plan.Failed, func(t *Task) { t.Reason, t.Expanded, t.Items = plan.ReasonItems, true, 2 }), "none"},
		{"a foreach task without items is a case", task("t", plan.Succeeded, func(t *Task) { t.Expanded = true }), "passed"},
		{"so is an output that is none", task("t", plan.Failed, reason(plan.ReasonOutput)), "failure"},
		{"a plugin that could not run it is an error", task("t", plan.Failed, reason(plan.ReasonError)), "error"},
		{"so is an input that could not be made", task("t", plan.Failed, reason(plan.ReasonInput)), "error"},
		{"so is a task that was stopped", task("t", plan.Terminated, reason(plan.ReasonTimeout)), "error"},
		{"so is one that was lost", task("t", plan.Orphaned, reason(plan.ReasonLost)), "error"},
		{"an allowed failure is skipped", task("t", plan.Failed, allowed), "skipped"},
		{"an allowed loss too", task("t", plan.Orphaned, allowed), "skipped"},
		{"what was skipped is", task("t", plan.Cancelled, reason(plan.ReasonSkipped)), "skipped"},
		{"what has not finished is", task("t", plan.Queued, nil), "skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(c.task)
			r.Plan.State = plan.PlanSucceeded // no case for the plan
			tests, failures, errors, skipped := kinds(t, junit(t, r))
			want := map[string][4]int{"none": {}, "passed": {1, 0, 0, 0}, "failure": {1, 1, 0, 0}, "error": {1, 0, 1, 0}, "skipped": {1, 0, 0, 1}}[c.want]
			if got := [4]int{tests, failures, errors, skipped}; got != want {
				t.Errorf("tests, failures, errors, skipped = %v, want %v", got, want)
			}
		})
	}
}

func TestJUnitIsGreenJustWhenThePlanSucceeded(t *testing.T) {
	reasons := []plan.Reason{plan.ReasonNone, plan.ReasonSkipped, plan.ReasonTimeout}
	var all []Task
	for s := plan.Orphaned; s <= 3; s++ {
		for _, reason := range reasons {
			for _, allowed := range []bool{false, true} {
				all = append(all, task("t", s, func(t *Task) { t.Reason, t.ContinueOnError = reason, allowed }))
			}
		}
	}
	for _, a := range all {
		for _, b := range all {
			r := run(a, b)
			j := NewJUnit(r.Plan, r.Now)
			j.Add(&a)
			j.Add(&b)
			if err := j.Write(io.Discard); err != nil {
				t.Fatal(err)
			}
			if green := j.suite.Failures+j.suite.Errors == 0; green != (r.Plan.State == plan.PlanSucceeded) {
				t.Errorf("plan %v of tasks %q and %q: %d failures and %d errors",
					r.Plan.State, How(&a.Task), How(&b.Task), j.suite.Failures, j.suite.Errors)
			}
		}
	}
}

func TestHow(t *testing.T) {
	for want, tk := range map[string]Task{
		"succeeded":                         task("t", plan.Succeeded, nil),
		"failed: exit status 7":             task("t", plan.Failed, func(t *Task) { t.Exit = &plan.Exit{Code: 7} }),
		"failed: SIGKILL":                   task("t", plan.Failed, func(t *Task) { t.Exit = &plan.Exit{Code: -1, Signal: "SIGKILL"} }),
		"failed: status 12":                 task("t", 12, nil),
		"failed after 3 attempts: no room":  task("t", plan.Failed, func(t *Task) { t.Attempt, t.Detail = 3, "\nno room\non the disk" }),
		"failed: nobody answered within 1s": task("t", plan.Failed, func(t *Task) { t.Attempt, t.Detail, t.Approve = 2, "nobody answered within 1s", &plan.Approval{} }),
		"failed, which the plan allows":     task("t", plan.Failed, func(t *Task) { t.ContinueOnError = true }),
		"stopped: timeout":                  task("t", plan.Terminated, func(t *Task) { t.Reason = plan.ReasonTimeout }),
		"cancelled":                         task("t", plan.Cancelled, func(t *Task) { t.Reason = plan.ReasonCancelled }),
		"skipped":                           task("t", plan.Cancelled, func(t *Task) { t.Reason = plan.ReasonSkipped }),
		"waiting":                           task("t", plan.Held, nil),
	} {
		if got := How(&tk.Task); got != want {
			t.Errorf("How = %q, want %q", got, want)
		}
	}
}

func TestMarkdownStaysBelowTheLimit(t *testing.T) {
	var many []Task
	for i := range 20_000 {
		many = append(many, task(fmt.Sprintf("copy[%d]", i), plan.Failed, func(t *Task) {
			t.Tail = []string{strings.Repeat("x", 200)}
		}))
	}
	text := run(many...).Markdown(MostMarkdown)
	if len(text) > 1<<20 || len(text) < MostMarkdown/2 {
		t.Errorf("%d bytes, want nearly %d", len(text), MostMarkdown)
	}
	for _, want := range []string{"20,000 failed\n", "more that failed\n", "20,000 tasks</summary>", " more\n\n</details>"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q in ...%s", want, text[len(text)-300:])
		}
	}
}

func TestEachPartOfAReportIsBounded(t *testing.T) {
	long, lines := strings.Repeat("é", 1<<19), make([]string, 20)
	for i := range lines {
		lines[i] = long
	}
	lines[19] = "the last line"
	r := run(
		task("long", plan.Failed, func(t *Task) { t.Detail, t.Tail = long+"\nmore\n"+long, lines }),
		task("full", plan.Failed, func(t *Task) { t.Detail = "disk is full" }),
		task("says", plan.Succeeded, func(t *Task) { t.Says = long }),
	)
	md := r.Markdown(MostMarkdown)
	for _, want := range []string{`**long** failed\: é`, "the last line\n", "**full** failed\\: disk is full\n", "| long | failed |", "| full | failed |", "| says | succeeded |"} {
		if !strings.Contains(md, want) {
			t.Errorf("the summary does not say %q", want)
		}
	}
	annotations, text, junit := r.Annotations("a.yaml"), r.Text(plain{}, typed), junit(t, r)
	for name, text := range map[string]string{"summary": md, "annotations": annotations, "text": text, "JUnit": junit} {
		if len(text) > 32<<10 || !utf8.ValidString(text) || !strings.Contains(text, "disk is full") || !strings.Contains(text, "the last line") {
			t.Errorf("%s: %d bytes, valid: %v; want at most 32 KiB, with both failures", name, len(text), utf8.ValidString(text))
		}
	}
	for _, room := range []int{0, 1000, 6 << 10} {
		if got := r.Markdown(room); len(got) > max(room, leastMarkdown) || !strings.Contains(got, "2 failed") {
			t.Errorf("with room for %d bytes the summary has %d", room, len(got))
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestJUnitReportsErrorsOfTheWriter(t *testing.T) {
	if err := NewJUnit(run().Plan, began).Write(fullDisk{}); err != io.ErrShortWrite {
		t.Errorf("Write = %v, want the writer's error", err)
	}
}

var fences = regexp.MustCompile("(?s)\n`{3,}text\n.*\n`{3,}\n")

func FuzzReports(f *testing.F) {
	for _, s := range []string{
		"plain", "", "\x00\x1b[1;31mred\x1b[0m\x1b]0;title\a", "]]></failure>", "<script>", "a|b\n|c|", "```\n````", "\xff", "\ufffe", "@user #1 www.x.example",
		"[x](y)", "\\", "`", "~~~", "</details>", "a\r\nb\rc", "\u202eevil",
	} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, name, detail, line string) {
		r := run(task(name, plan.Failed, func(t *Task) { t.Detail, t.Tail = detail, []string{line, "second"} }), task("other", plan.Succeeded, nil))
		r.Plan.Name = name
		report := junit(t, r)
		if tests, failures, _, _ := kinds(t, report); tests != 2 || failures != 1 {
			t.Errorf("%d cases and %d failures, want 2 and 1", tests, failures)
		}
		if text, want := parse(t, report).Suites[0].Cases[0].Failure.Text, cells.Clean(line)+"\nsecond"; !strings.HasSuffix(text, strings.TrimSpace(want)) {
			t.Errorf("the failure says %q, want %q", text, want)
		}
		md := r.Markdown(MostMarkdown)
		outside := fences.ReplaceAllString(md, "")
		if n := strings.Count(outside, "<"); n != 4+strings.Count(outside, "@<!-- -->") {
			t.Errorf("%d signs < in %q, want the four of the details", n, outside)
		}
		for _, text := range []string{md, r.Text(plain{}, typed)} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\r") {
				t.Errorf("not fit to be shown: %q", text)
			}
		}
		checkTable(t, md)
		checkFence(t, md, cells.Clean(line))
	})
}

// checkTable checks that the table has four rows of four cells.
func checkTable(t *testing.T, md string) {
	t.Helper()
	_, table, _ := strings.Cut(md, "</summary>\n\n")
	table, _, _ = strings.Cut(table, "\n\n</details>")
	rows := strings.Split(table, "\n")
	if len(rows) != 4 {
		t.Errorf("%d rows, want 4: %q", len(rows), table)
	}
	for _, row := range rows {
		escaped := strings.ReplaceAll(row, `\\`, "")
		if n := strings.Count(strings.ReplaceAll(escaped, `\|`, ""), "|"); n != 5 {
			t.Errorf("%d lines between cells, want 5: %q", n, row)
		}
	}
}

// checkFence checks that the block of code ends where it should.
func checkFence(t *testing.T, md, line string) {
	t.Helper()
	_, block, _ := strings.Cut(md, "text\n"+line+"\n")
	body, rest, _ := strings.Cut(block, "\n")
	if fence, _, _ := strings.Cut(rest, "\n"); body != "second" || strings.Trim(fence, "`") != "" || len(fence) < 3 {
		t.Errorf("after the line %q come %q and %q", line, body, fence)
	} else if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, fence) {
		t.Errorf("the line %q ends the block", line)
	}
}

func TestOutputText(t *testing.T) {
	long, _ := json.Marshal(strings.Repeat("x", 120))
	huge, _ := json.Marshal(strings.Repeat("é", mostOutput))
	for _, c := range []struct{ name, value, want string }{
		{"a text is itself", `"Hello"`, "Hello"},
		{"a text of lines stands below", `"a\nb\n"`, "\n  a\n  b"},
		{"a small value is on one line", "[1,\n 2]", "[1,2]"},
		{"a large value is on lines of its own", `{"a":` + string(long) + `}`, "\n  {\n    \"a\": " + string(long) + "\n  }"},
		{"escape sequences do not get out", `"a\u001b[2Jb"`, "ab"},
		{
			"a huge text is cut, in whole characters", string(huge),
			"\n  " + strings.Repeat("é", mostOutput/2) + "\n  … 8002 bytes; all of it: sluice task show p#1 t --output json",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Output{Name: "t", Value: json.RawMessage(c.value)}
			if got := o.text("p#1", "…", typed); got != c.want {
				t.Errorf("got\n%.300s\nwant\n%.300s", got, c.want)
			}
		})
	}
}

func TestAnnotationsTakeTextsForWhatTheyAre(t *testing.T) {
	r := run(
		task("copy[1]", plan.Failed, func(t *Task) { t.Detail, t.Tail = "100% full", []string{"a\r%0A", "::error::b: c, d"} }),
		task("lint", plan.Failed, func(t *Task) { t.ContinueOnError = true }),
		task("list", plan.Succeeded, nil),
	)
	want := "::error title=nightly#3%3A copy[1],file=a%2Cb%25.yaml::failed: 100%25 full%0A%250A%0A::error::b: c, d\n" +
		"::warning title=nightly#3%3A lint,file=a%2Cb%25.yaml::failed, which the plan allows\n"
	if got := r.Annotations("a,b%.yaml"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

type stars struct{}

func (stars) Bold(s string) string        { return "*" + s + "*" }
func (stars) State(word, s string) string { return "<" + word + ">" + s }

func TestStyledVerdictColoursTheTitleAndTheState(t *testing.T) {
	r := migration()
	r.Plan.Name = "failed\n"
	want := "*failed #3* <failed>failed in 4m05s: 2 succeeded, 1 failed, 1 allowed, 1 stopped, 1 lost, 1 skipped"
	if got := StyledVerdict(&r.Plan, r.Now, stars{}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGoOn(t *testing.T) {
	for state, want := range map[plan.Lifecycle]string{
		plan.PlanRunning:    "sluice plan run --resume p#1",
		plan.PlanFailed:     "sluice plan retry p#1 --run",
		plan.PlanCancelled:  "sluice plan retry p#1 --run",
		plan.PlanSucceeded:  "",
		plan.PlanAbandoned:  "",
		plan.PlanSubmitting: "",
	} {
		if got := GoOn(&plan.Plan{Name: "p", Run: 1, State: state}, typed); got != want {
			t.Errorf("%v: got %q, want %q", state, got, want)
		}
	}
}

func TestTheEndNamesCleanUpsThatDidNotRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		state plan.Lifecycle
		unrun []string
		want  string
	}{
		{"of a plan that was stopped, with what runs them", plan.PlanFailed, []string{"undo", "mail"},
			"clean-ups that did not finish, because the plan was stopped: undo and mail; to run these, and what is below: sluice plan retry nightly#3 undo mail --run\n"},
		{"of one that was left", plan.PlanRunning, []string{"undo"}, "clean-ups that have not finished, and run only if the plan goes on: undo\n"},
		{"none", plan.PlanFailed, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(task("a", plan.Failed, nil))
			r.Plan.State, r.Unrun = c.state, c.unrun
			got := r.Text(plain{}, typed)
			if c.want == "" && strings.Contains(got, "not run") || !strings.HasSuffix(got, c.want) {
				t.Errorf("got %q, want %q at its end", got, c.want)
			}
		})
	}
}

func TestWaysBeginWithWhatKeepsMost(t *testing.T) {
	failed := func(source string, reason plan.Reason) *Run {
		r := run(task("backup", plan.Succeeded, nil), task("check", plan.Failed, func(t *Task) { t.Reason = reason }))
		r.Plan.Source = source
		return r
	}
	lists := func(value string) *Run {
		r := failed("p.yaml", plan.ReasonInput)
		r.Tasks[1].Foreach = &plan.Foreach{Value: value}
		return r
	}
	both := func(r *Run) *Run {
		r.Tasks = append(r.Tasks, task("send", plan.Failed, nil))
		return r
	}
	changed := func(r *Run) *Run {
		r.Changed = r.Plan.Source
		return r
	}
	cancelled := func() *Run {
		r := run(task("check", plan.Terminated, nil))
		r.Plan.State, r.Plan.Counts.Terminated = plan.PlanCancelled, 1
		return r
	}
	rollBack := Reaction{Cleaned: []string{"roll-back"}, Undone: []string{"backup"}}
	many := Reaction{Cleaned: []string{"a", "b"}, Undone: strings.Split("123456789", "")}
	for _, c := range []struct {
		name     string
		run      *Run
		reaction Reaction
		ways     []string
	}{
		{"what failed alone", failed("", ""), Reaction{}, []string{"to go on: sluice plan retry nightly#3 --run"}},
		{"what may be undone runs again only if a person says so", failed("", ""), rollBack, []string{
			"to go on: sluice plan retry nightly#3 --run",
			"roll-back ran because of the failure; if that undid work that is kept, run that again too: sluice plan retry nightly#3 backup --downstream --run",
		}},
		{"so where the plan was cancelled", cancelled(), rollBack, []string{
			"to go on: sluice plan retry nightly#3 --run",
			"roll-back ran because the plan was cancelled; if that undid work that is kept, run that again too: sluice plan retry nightly#3 backup --downstream --run",
		}},
		{"many names are for programs only", failed("", ""), many, []string{
			"to go on: sluice plan retry nightly#3 --run",
			"a and b ran because of the failure; if that undid work that is kept, run that again too: sluice plan retry nightly#3 TASK... --downstream --run",
		}},
		{"a file that is to be mended is", failed("p.yaml", plan.ReasonInput), rollBack, []string{
			"it would fail in the same way again; once p.yaml is mended: sluice plan retry nightly#3 --with p.yaml --run",
			"roll-back ran because of the failure; if that undid work that is kept, run that again too: " +
				"sluice plan retry nightly#3 backup --downstream --with p.yaml --run",
		}},
		{"a list that is none is mended where it comes from", lists("needs.backup"), Reaction{}, []string{
			"it would fail in the same way again; once p.yaml is mended: sluice plan retry nightly#3 backup --downstream --with p.yaml --run",
		}},
		{"a list that is none, and what may be undone", lists("needs.backup"), Reaction{Cleaned: []string{"roll-back"}, Undone: []string{"init"}}, []string{
			"it would fail in the same way again; once p.yaml is mended: sluice plan retry nightly#3 backup --downstream --with p.yaml --run",
			"roll-back ran because of the failure; if that undid work that is kept, run that again too: " +
				"sluice plan retry nightly#3 init backup --downstream --with p.yaml --run",
		}},
		{"a part of an output that is no list", lists("needs.backup.files"), Reaction{}, []string{
			"it would fail in the same way again; once p.yaml is mended: sluice plan retry nightly#3 --with p.yaml --run",
			"if what backup put out is the mistake: sluice plan retry nightly#3 backup --downstream --with p.yaml --run",
		}},
		{"a file that is to be mended, and a failure of another kind", both(failed("p.yaml", plan.ReasonInput)), Reaction{}, []string{
			"to go on: sluice plan retry nightly#3 --run",
			"check would fail in the same way again; once p.yaml is mended: sluice plan retry nightly#3 --with p.yaml --run",
		}},
		{"a list that is none, and a failure of another kind", both(lists("needs.backup")), Reaction{}, []string{
			"to go on: sluice plan retry nightly#3 --run",
			"check would fail in the same way again; once p.yaml is mended: sluice plan retry nightly#3 backup --downstream --with p.yaml --run",
		}},
		{"a file that was changed since the submission", changed(failed("p.yaml", "")), rollBack, []string{
			"to go on: sluice plan retry nightly#3 --run",
			"to go on with the changes in p.yaml: sluice plan retry nightly#3 --with p.yaml --run",
			"roll-back ran because of the failure; if that undid work that is kept, run that again too: " +
				"sluice plan retry nightly#3 backup --downstream --with p.yaml --run",
		}},
		{"a file that is to be mended, and was changed", changed(failed("p.yaml", plan.ReasonInput)), Reaction{}, []string{
			"it would fail in the same way again; once p.yaml is mended: sluice plan retry nightly#3 --with p.yaml --run",
		}},
		{"what cannot run, and ran before, is told as stopped", failed("", ""), Reaction{Skipped: []string{"check", "mail"}, Stopped: []string{"alter"}, Missing: []string{"copy"}}, []string{
			"to go on: sluice plan retry nightly#3 --run",
			"check and mail will be skipped, and alter will be stopped, because of copy, which the retry leaves out; to retry that too: sluice plan retry nightly#3 copy --run",
		}},
		{"also alone, and where nothing failed", failed("", ""), Reaction{Stopped: []string{"alter"}}, []string{
			"to go on: sluice plan retry nightly#3 --run",
			"alter will be stopped, because of what was skipped above; to see why: sluice plan explain nightly#3 alter",
		}},
		{"one that succeeded has none", run(task("a", plan.Succeeded, nil)), Reaction{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run.Reacted = c.reaction
			if got, want := strings.Join(c.run.Ways(typed), "\n"), strings.Join(c.ways, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestARetriedPlanTookTheTimeSinceItsRetry(t *testing.T) {
	p := plan.Plan{Name: "nightly", Run: 3, State: plan.PlanFailed, Created: began, Retried: began.Add(9 * time.Hour), Ended: began.Add(9*time.Hour + time.Second)}
	if got, want := Verdict(&p, p.Ended.Add(time.Hour)), "nightly#3 failed in 1.0s: "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var b strings.Builder
	if err := NewJUnit(p, p.Ended).Write(&b); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`time="1.000" timestamp="%s"`, p.Retried.UTC().Format("2006-01-02T15:04:05")); !strings.Contains(b.String(), want) {
		t.Errorf("want %s in\n%s", want, b.String())
	}
	p.Ended = p.Retried
	if got, want := Verdict(&p, p.Ended), "nightly#3 failed at once: "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
