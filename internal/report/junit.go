package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// JUnit collects a plan's tasks as the test cases of one JUnit test suite. Add
// each task, then call Write. It belongs to one goroutine, and keeps
// what was added as XML: some 200 bytes a task and its last lines.
//
// JUnit knows four ways to end; tasks have more:
//
//	succeeded                                                   passed, with a
//	                                                            flakyFailure for each
//	                                                            attempt that failed before
//	failed by itself: its exit status, its output               failure
//	terminated, orphaned, timed out, or could not run           error
//	failed and continue-on-error                                skipped, with a message
//	skipped, cancelled, not finished                            skipped, with a message
//
// A foreach task with items is no case: its items are. So tests equals Tasks of rules.Sums, and
// failures and errors together equal its Broken.
//
// A CI server takes a report without failures and errors for a success. A plan may have failed
// without a failed task: it was cancelled, or has not finished. Such a plan has one more case,
// "(plan)", with an error that says so.
type JUnit struct {
	plan  plan.Plan
	now   time.Time
	cases bytes.Buffer
	suite suite
}

// NewJUnit returns a report of the plan without tasks.
func NewJUnit(p plan.Plan, now time.Time) *JUnit { return &JUnit{plan: p, now: now} }

// The elements are those that Jenkins, GitLab and the reporters for GitHub read. These share no
// schema, but all accept this order of a case's children.
type suite struct {
	XMLName   xml.Name
	Name      string `xml:"name,attr"`
	Tests     int    `xml:"tests,attr"`
	Failures  int    `xml:"failures,attr"`
	Errors    int    `xml:"errors,attr"`
	Skipped   int    `xml:"skipped,attr"`
	Time      string `xml:"time,attr"`
	Timestamp string `xml:"timestamp,attr,omitempty"`
}

type properties struct {
	XMLName  xml.Name   `xml:"properties"`
	Property []property `xml:"property"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testcase struct {
	XMLName   xml.Name  `xml:"testcase"`
	Name      string    `xml:"name,attr"`
	Classname string    `xml:"classname,attr"`
	Time      string    `xml:"time,attr"`
	Flaky     []message `xml:"flakyFailure"`
	Skipped   *message  `xml:"skipped"`
	Error     *message  `xml:"error"`
	Failure   *message  `xml:"failure"`
	Out       *text     `xml:"system-out"`
}

type message struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	text
}

// text is kept as it is, so that lines stay lines for who opens the file.
type text struct {
	Text string `xml:",cdata"`
}

// Add adds the case of a task. Suite and class have the plan's name without its
// run, so that CI servers know a task again in the next run.
func (j *JUnit) Add(t *Task) {
	if t.Gathers() {
		return
	}
	c := testcase{Name: t.label(), Time: seconds(took(&t.Task, j.now))}
	tail := strings.Join(t.tail(), "\n")
	m := &message{Message: How(&t.Task), Type: string(t.Reason), text: text{tail}}
	if detail := strings.Split(cut(strings.TrimSpace(t.Detail), mostDetail), "\n"); len(detail) > 1 { // more than How says
		for i := range detail {
			detail[i] = line(detail[i])
		}
		m.Text = strings.TrimSpace(strings.Join(detail, "\n") + "\n\n" + tail)
	}
	if m.Type == "" {
		m.Type = t.State()
	}
	var out *text
	if tail != "" {
		out = &text{tail}
	}
	switch {
	case broke(&t.Task) && !t.ContinueOnError && bySelf(&t.Task):
		c.Failure = m
	case broke(&t.Task) && !t.ContinueOnError:
		c.Error = m
	case t.Status == plan.Succeeded:
		c.Out = out
		for n := range FailedAttempts(&t.Task) {
			m := message{Message: fmt.Sprintf("attempt %d failed, and another one succeeded", n+1), Type: "retry"}
			if lines := t.earlier(n); len(lines) > 0 {
				m.Message, m.Text = fmt.Sprintf("attempt %d failed: %s", n+1, lines[len(lines)-1]), strings.Join(lines, "\n")
			}
			c.Flaky = append(c.Flaky, m)
		}
	case t.Status.Finished():
		c.Skipped, c.Out = &message{Message: m.Message}, out
	default:
		c.Skipped, c.Out = &message{Message: "not finished: " + m.Message}, out
	}
	j.add(c)
}

// bySelf reports whether a failed task ran and said itself that it failed.
func bySelf(t *plan.Task) bool {
	if t.Status < plan.Failed {
		return false
	}
	switch t.Reason {
	case plan.ReasonNone, plan.ReasonSignal, plan.ReasonOutput, plan.ReasonFatal:
		return true
	}
	return false
}

func (j *JUnit) add(c testcase) {
	c.Classname = cells.Clean(j.plan.Name)
	j.suite.Tests++
	switch {
	case c.Failure != nil:
		j.suite.Failures++
	case c.Error != nil:
		j.suite.Errors++
	case c.Skipped != nil:
		j.suite.Skipped++
	}
	j.cases.Write(element(c, "    "))
}

// Write writes the report. It is to be called once.
func (j *JUnit) Write(w io.Writer) error {
	if j.plan.State != plan.PlanSucceeded && j.suite.Failures+j.suite.Errors == 0 {
		verdict := Verdict(&j.plan, j.now)
		j.add(testcase{Name: "(plan)", Time: seconds(0), Error: &message{Message: verdict, Type: j.plan.State.String()}})
	}
	j.suite.Name = cells.Clean(j.plan.Name)
	j.suite.Time = seconds(rules.Took(&j.plan, j.now))
	if began := rules.Began(&j.plan); !began.IsZero() {
		j.suite.Timestamp = began.UTC().Format("2006-01-02T15:04:05")
	}
	all := j.suite
	all.Timestamp = ""
	var head bytes.Buffer
	head.WriteString(xml.Header)
	open(&head, "", "testsuites", all)
	open(&head, "  ", "testsuite", j.suite)
	run := properties{Property: []property{{"plan", cells.Clean(j.plan.Title())}, {"id", j.plan.ID.String()}}}
	head.Write(element(run, "    "))
	for _, part := range [][]byte{head.Bytes(), j.cases.Bytes(), []byte("  </testsuite>\n</testsuites>\n")} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// open writes the start of an element whose end is written later.
func open(b *bytes.Buffer, indent, name string, s suite) {
	s.XMLName.Local = name
	text := bytes.TrimSuffix(element(s, indent), []byte("</"+name+">\n"))
	b.Write(append(text, '\n'))
}

// element returns v as an element on lines of its own.
func element(v any, indent string) []byte {
	b, err := xml.MarshalIndent(v, indent, "  ")
	if err != nil {
		panic(err) // our structs of texts and numbers, into memory
	}
	return append(b, '\n')
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
