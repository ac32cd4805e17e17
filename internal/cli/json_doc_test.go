package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/demo"
)

// documented is what docs/json.md says.
type documented struct {
	objects  map[string]map[string]documentedField // by the object's name, with the fields that it takes from another one
	examples map[string][]string
	commands map[string]documentedCommand // by their words, as in "plan list"
}

type documentedField struct {
	kind     string // id, text, Counts, list of Task, …
	optional bool
}

type documentedCommand struct {
	prints string // Plan, list of Plan, …
	lines  bool   // one on each line
	codes  []int
}

func readDoc(t *testing.T) documented {
	t.Helper()
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	d := documented{map[string]map[string]documentedField{}, map[string][]string{}, map[string]documentedCommand{}}
	link := regexp.MustCompile(`\[([^\]]*)\]\(#[a-z-]*\)`)
	object, code := "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		cells := strings.Split(line, " | ")
		switch {
		case strings.HasPrefix(line, "```"):
			if code = !code; code {
				d.examples[object] = append(d.examples[object], "")
			}
		case code:
			all := d.examples[object]
			all[len(all)-1] += line + "\n"
		case strings.HasPrefix(line, "## "):
			object = line[3:]
		case strings.HasPrefix(line, "All fields of "):
			d.objects[object] = maps.Clone(d.objects[link.FindStringSubmatch(line)[1]])
		case strings.HasPrefix(line, "| `") && object == "Commands":
			name := strings.Trim(cells[0], "|` ")
			m := link.FindStringSubmatch(cells[1])
			c := documentedCommand{prints: m[1], lines: strings.Contains(cells[1], "a line, while")}
			if strings.Contains(strings.Split(cells[1], ",")[0], "list of") {
				c.prints = "list of " + m[1]
			}
			always, _, _ := strings.Cut(cells[2], ";")
			for _, n := range regexp.MustCompile(`\d+`).FindAllString(always, -1) {
				code, _ := strconv.Atoi(n)
				c.codes = append(c.codes, code)
			}
			d.commands[name] = c
		case strings.HasPrefix(line, "| `") && object != "States":
			if d.objects[object] == nil {
				d.objects[object] = map[string]documentedField{}
			}
			kind, optional := strings.CutSuffix(link.ReplaceAllString(cells[1], "$1"), ", optional")
			d.objects[object][strings.Trim(cells[0], "|` ")] = documentedField{kind, optional}
		}
	}
	return d
}

// check returns what is wrong with a value that is said to be of a kind.
func (d *documented) check(at string, value any, kind string) error {
	mismatch := fmt.Errorf("%s: %v is not of type %s", at, value, kind)
	if of, list := strings.CutPrefix(kind, "list of "); list {
		items, ok := value.([]any)
		if !ok {
			return mismatch
		}
		var errs []error
		for i := range items {
			errs = append(errs, d.check(fmt.Sprintf("%s[%d]", at, i), items[i], of))
		}
		return errors.Join(errs...)
	}
	text, isText := value.(string)
	ok := false
	switch kind {
	case "value":
		ok = true
	case "text":
		ok = isText
	case "id":
		ok = regexp.MustCompile(`^[0-9a-f]{24}$`).MatchString(text)
	case "time":
		at, err := time.Parse(time.RFC3339Nano, text)
		ok = err == nil && at.Location() == time.UTC
	case "duration":
		_, err := time.ParseDuration(text)
		ok = err == nil
	case "number":
		_, ok = value.(float64)
	case "time or null":
		return d.checkOrNull(at, value, "time")
	case "number or null":
		_, ok = value.(float64)
		ok = ok || value == nil
	case "boolean":
		_, ok = value.(bool)
	default:
		fields, known := d.objects[kind]
		object, is := value.(map[string]any)
		if !known || !is {
			return mismatch
		}
		var errs []error
		for name, f := range fields {
			if _, there := object[name]; !there && !f.optional {
				errs = append(errs, fmt.Errorf("%s: %s has no field %q", at, kind, name))
			}
		}
		for name, v := range object {
			if f, there := fields[name]; there {
				errs = append(errs, d.check(at+"."+name, v, f.kind))
			} else {
				errs = append(errs, fmt.Errorf("%s: the page does not know the field %q of %s", at, name, kind))
			}
		}
		return errors.Join(errs...)
	}
	if !ok {
		return mismatch
	}
	return nil
}

func (d *documented) checkOrNull(at string, value any, kind string) error {
	if value == nil {
		return nil
	}
	return d.check(at, value, kind)
}

// checkJSON checks a document, or with lines one on each line.
func (d *documented) checkJSON(text, kind string, lines bool) error {
	n := 0
	for dec := json.NewDecoder(strings.NewReader(text)); dec.More(); n++ {
		var value any
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := d.check(kind, value, kind); err != nil {
			return err
		}
	}
	if n == 0 || !lines && n > 1 || lines && n != strings.Count(text, "\n") {
		return fmt.Errorf("%d documents in %d lines", n, strings.Count(text, "\n"))
	}
	return nil
}

// TestTheJSONPageNamesEveryField compares the tables with the types that are encoded.
func TestTheJSONPageNamesEveryField(t *testing.T) {
	d := readDoc(t)
	types := map[string]any{
		"Plan": planEntry{}, "Counts": plan.Counts{}, "Sums": rules.Sums{}, "Plan with tasks": planDetails{}, "Task": taskEntry{}, "Failures": failuresEntry{}, "Way": failureWay{}, "Exit": plan.Exit{}, "Progress": plan.Progress{},
		"Task in full": taskDetails{}, "Retry": api.Retry{}, "Foreach": plan.Foreach{}, "Reason": api.Reason{}, "Mistake": mistake{}, "Log entry": api.LogEntry{},
		"Queue": queueEntry{}, "Group": groupEntry{}, "Node": api.Node{}, "Plugin": pluginEntry{}, "Event": view.EventLine{}, "Version": build{}, "Config": checked{}, "Setting": setting{},
		"Balance": balanceEntry{}, "Balanced queue": balancedQueue{}, "User": userEntry{}, "Token": tokenEntry{}, "Instant": instantEntry{},
		"Param": api.Param{}, "Schedule": plan.Schedule{}, "Occurrence": plan.Occurrence{},
	}
	if got, want := slices.Sorted(maps.Keys(d.objects)), slices.Sorted(maps.Keys(types)); !slices.Equal(got, want) {
		t.Errorf("the page describes %q, want %q", got, want)
	}
	for name, v := range types {
		fields := map[string]bool{} // optional
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key != "" {
				fields[key] = strings.Contains(options, "omit")
			}
		}
		for key, f := range d.objects[name] {
			if optional, there := fields[key]; !there || optional != f.optional {
				t.Errorf("%s.%s on the page, optional: %v; is there: %v, optional: %v", name, key, f.optional, there, optional)
			}
			delete(fields, key)
		}
		for key := range fields {
			t.Errorf("%s.%s is not on the page", name, key)
		}
	}
}

// TestTheAPISaysItInTheSameWords compares what commands print with what the API answers: a field of one name has one type, and what is only in the
// one or the other is in the page's table.
func TestTheAPISaysItInTheSameWords(t *testing.T) {
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := func(cell string) (names []string) {
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cell, -1) {
			names = append(names, m[1])
		}
		return slices.Sorted(slices.Values(names))
	}
	for name, both := range map[string][2]any{
		"Plan with tasks": {planDetails{}, api.Plan{}}, "Task in full": {taskDetails{}, api.Task{}}, "Queue": {queueEntry{}, api.Queue{}}, "Group": {groupEntry{}, api.Group{}}, "Node": {api.Node{}, api.Node{}},
	} {
		row := regexp.MustCompile(`(?m)^\| \[` + name + `\]\([^)]*\) \|(.*)\|(.*)\|$`).FindStringSubmatch(string(text))
		if row == nil {
			t.Errorf("the page does not say what of %s is only there or here", name)
			continue
		}
		here, there := jsonFields(both[0]), jsonFields(both[1])
		var onlyHere, onlyThere []string
		for key, kind := range here {
			if other, is := there[key]; !is {
				onlyHere = append(onlyHere, key)
			} else if kind != other {
				t.Errorf("%s.%s is %s here, and %s in the API", name, key, kind, other)
			}
		}
		for key := range there {
			if _, is := here[key]; !is {
				onlyThere = append(onlyThere, key)
			}
		}
		slices.Sort(onlyHere)
		slices.Sort(onlyThere)
		if !slices.Equal(onlyHere, quoted(row[1])) || !slices.Equal(onlyThere, quoted(row[2])) {
			t.Errorf("of %s only %q are here, and only %q in the API; the page has %q and %q", name, onlyHere, onlyThere, quoted(row[1]), quoted(row[2]))
		}
	}
}

// jsonFields returns the fields of a type as they are in JSON, each with the kind of its value there.
func jsonFields(v any) map[string]string {
	kinds := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" {
			continue
		}
		is := f.Type
		if is.Kind() == reflect.Pointer {
			is = is.Elem()
		}
		text, _ := reflect.New(is).Elem().Interface().(interface{ MarshalText() ([]byte, error) })
		switch {
		case is == reflect.TypeFor[json.RawMessage]():
			kinds[key] = "a value"
		case text != nil, is.Kind() == reflect.String:
			kinds[key] = "a text"
		case is.Kind() >= reflect.Int && is.Kind() <= reflect.Float64:
			kinds[key] = "a number"
		default:
			kinds[key] = is.Kind().String()
		}
	}
	return kinds
}

func TestTheJSONPagesExamplesAreOfTheirTypes(t *testing.T) {
	d := readDoc(t)
	for name, examples := range d.examples {
		for _, e := range examples {
			if err := d.checkJSON(e, name, name == "Event"); err != nil {
				t.Error(err)
			}
		}
	}
	if len(d.examples) < 8 {
		t.Errorf("the page has %d examples", len(d.examples))
	}
}

func TestTheJSONPageNamesEveryCommand(t *testing.T) {
	d := readDoc(t)
	a := &app{Program: Program{Plugins: plugins.NewRegistry()}}
	var with []string
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("output") != nil {
			_, words, _ := strings.Cut(cmd.CommandPath(), " ")
			with = append(with, words)
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(a.root())
	slices.Sort(with)
	if got := slices.Sorted(maps.Keys(d.commands)); !slices.Equal(got, with) {
		t.Errorf("the page has %q, with --output are %q", got, with)
	}
}

// TestTheJSONPageHoldsForWhatIsPrinted runs each command and holds what it prints, and its exit code, against the page.
func TestTheJSONPageHoldsForWhatIsPrinted(t *testing.T) {
	d := readDoc(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mail.yaml": `
plan: mail
params: {domain: example.com}
tasks:
  list: {plugin: demo, params: {return: [alice, bob], print: "two\n"}, estimate: 1s}
  copy: {needs: [list], foreach: "${{ needs.list }}", plugin: demo, params: {fail: 9, print: "no\n"}, retry: {attempts: 2, delay: 1ms}, timeout: 30m}
  tried: {plugin: demo, params: {fail: 1}, continue-on-error: true, description: may fail, on_lost: fail}
  verify: {needs: [copy], plugin: demo}
  report: {needs: [verify], when: all_done, plugin: demo, params: {return: {a: 1}}}`,
		"good.yaml": "plan: good\ntasks: {a: {plugin: demo, params: {return: 1}}}",
		"good.json": `{"mongohost": "localhost", "database": "disbatch", "auth": {"disbatchd": "secret"}, "databse": "x", "attributes": {"w": 1}}`,
		"bad.json":  `{"mongohost": 5}`,
		"bad.yaml":  "plan: bad\ntasks: {a: {retyr: 3}}",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uri := "sqlite:" + filepath.Join(dir, "s.db")
	reg := plugins.NewRegistry()
	reg.Register(demo.Name, demo.Plugin)
	seen := map[string]bool{}
	run := func(command string, code int, args ...string) string {
		t.Helper()
		words := append(strings.Fields(command), args...)
		var out, errs bytes.Buffer
		got := Program{
			Open: open.Open, Existing: open.Existing, Private: open.Private, DefaultStore: func() (string, bool) { return uri, true }, Redact: open.Redact, Plugins: reg, Version: "v1.2.3",
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" },
		}.Run(context.Background(), append(words, "--output", "json"))
		c := d.commands[command]
		if got != code || !slices.Contains(c.codes, got) {
			t.Errorf("%q ended with %d, want %d; on the page are %v\n%s", words, got, code, c.codes, &errs)
		}
		if err := d.checkJSON(out.String(), c.prints, c.lines); err != nil {
			t.Errorf("%q: %v", words, err)
		}
		seen[command] = true
		return out.String()
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	run("version", 0)
	hash := auth.HashPassword("correct horse battery")
	access := fmt.Sprintf(`{"users": [{"name": "alice", "password": %q, "role": "editor"}], "tokens": [
		{"id": "ci", "sha256": "%064d", "scopes": ["read"], "created": "2030-01-02T03:04:05+01:00", "expires": "2040-01-02T03:04:05Z", "note": "x"},
		{"id": "old", "sha256": "%064d", "scopes": ["submit"], "expires": "2020-01-02T03:04:05Z"}]}`, hash, 1, 2)
	if err := os.WriteFile(file("access.json"), []byte(access), 0o600); err != nil {
		t.Fatal(err)
	}
	run("access user list", 0, "--access", file("access.json"))
	run("access token list", 0, "--access", file("access.json"))
	run("config check", 0, file("good.json"))
	run("config check", 2, file("bad.json"))
	run("plan validate", 2, file("bad.yaml"), file("good.yaml"))
	run("plan run", 0, file("good.yaml"))
	run("plan run", 1, file("mail.yaml"))
	run("plan submit", 0, file("good.yaml"))
	run("plan check", 3, "good")
	run("plan wait", 3, "good", "--timeout", "300ms")
	run("plan wait", 1, "mail")
	run("plan list", 0)
	run("plan status", 0, "mail")
	run("plan failures", 0, "mail")
	run("plan explain", 0, "mail", "verify")
	run("plan explain", 0, "good", "a")
	run("plan retry", 0, "mail", "--dry-run")
	run("task list", 0)
	for _, name := range []string{"list", "copy", "copy[1]", "tried", "verify", "report"} {
		run("task show", 0, "mail", name)
	}
	run("task logs", 0, "mail", "copy[1]")
	run("task retry", 0, "mail", "copy[1]", "--dry-run")
	run("queue list", 0)
	run("group list", 0)
	run("balance show", 0)
	run("schedule preview", 0, "30 2 * * *", "--zone", "Europe/Berlin", "--after", "2027-10-30", "-n", "3")
	schedules(t, uri, file("good.yaml"))
	run("schedule list", 0)
	run("schedule show", 0, "whole")
	run("schedule show", 0, "new")
	st, err := open.Open(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	node := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Lease: time.Minute, Plugins: []string{"demo"}, Plan: plan.PlanID{ID: plan.ID{1}}}
	balance := st.(store.Balance).SetBalance(t.Context(), json.RawMessage(`{"queues": [["demo"], ["x"]], "max_tasks": {"* 07:00": "5"}, "status": "OK"}`))
	if err := errors.Join(st.Register(t.Context(), node), balance, st.Close()); err != nil {
		t.Fatal(err)
	}
	run("balance show", 0)
	run("node list", 0)
	run("plugin list", 0, "--plugin-dir", dir)
	run("plan prune", 0, "--keep", "1ns", "--dry-run")
	pack, err := jobpack.Make(&jobpack.Pack{Version: 1, Prefix: "count", Worker: "w", Stages: []jobpack.Stage{{Name: "reduce", Grouping: "group_all"}}}, fstest.MapFS{"w": {}}, nil)
	if err == nil {
		err = os.WriteFile(file("pack"), pack, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	run("disco submit", 0, file("pack"), "--input", "raw://x")
	for command := range d.commands {
		if !seen[command] {
			t.Errorf("%q was not run", command)
		}
	}
}

// schedules makes a schedule of which nothing happened, and one that has all that a schedule can have.
func schedules(t *testing.T, uri, path string) {
	t.Helper()
	st, err := open.Open(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	of, err := scheduledPlan(path)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	one := plan.Schedule{ID: plan.ScheduleID{ID: plan.NewID(at)}, Name: "new", Created: at, Modified: at, Cursor: at, Next: at}
	one.Cron, one.Plan, one.Overlap, one.Missed = "@daily", of, plan.OverlapSkip, plan.MissedOne
	all := one
	all.ID.ID, all.Name, all.Plan = plan.NewID(at), "whole", nil
	all.Timetable = plan.Timetable{Every: plan.Duration(time.Hour), From: at, Until: at.Add(time.Hour), Zone: "UTC", Except: []string{"2030-01-01"}, Skipped: "run", Repeated: "first", Jitter: plan.Duration(time.Second)}
	all.Task = &plan.ScheduledTask{Queue: "demo", Params: json.RawMessage(`{"a": 1}`), Retry: plan.RetryText{Attempts: 2}, Timeout: plan.Duration(time.Minute), Subject: "order 4711"}
	all.Paused, all.Applied, all.Look, all.Succeeded = &plan.PausedSchedule{At: at, By: "ann", Why: "x"}, "/srv", at, at
	all.Backfills, all.Tally = []plan.Span{{From: at, To: at}}, plan.ScheduleTally{Started: 1, Succeeded: 1, Failed: 1, Skipped: 1}
	all.Last = []plan.Occurrence{{At: at, Kind: plan.ByRun, State: plan.OccurrenceFailed, Reason: "x", Plan: plan.PlanID{ID: plan.NewID(at)}, Begun: at, Ended: at}}
	all.Open = []plan.Occurrence{{At: at, State: plan.OccurrenceWaiting, Stop: true, Target: &plan.ScheduleTarget{Task: all.Task}, Task: plan.TaskID{ID: plan.NewID(at)}}}
	refused, err := st.(store.Schedules).PutSchedules(t.Context(), []plan.Schedule{one, all})
	if err = errors.Join(append(refused, err, st.Close())...); err != nil {
		t.Fatal(err)
	}
}
