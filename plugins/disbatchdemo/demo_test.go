package disbatchdemo_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disbatchdemo"
)

type reports []string

func (r *reports) Report(_ context.Context, _ plan.ID, document json.RawMessage) error {
	*r = append(*r, string(document))
	return nil
}

// run runs a task and returns its result, its report, and its output on each stream.
func run(t *testing.T, params string) (plan.Result, map[string]any, map[plan.Stream]string) {
	t.Helper()
	var kept reports
	task := plugins.Task{
		ID: plan.TaskID{ID: plan.ID{11: 1}}, QueueID: plan.QueueID{ID: plan.ID{11: 2}}, Params: json.RawMessage(params), Log: new(plugins.Log), Reports: &kept,
	}
	r := disbatchdemo.Plugin.Run(t.Context(), &task)
	said := map[plan.Stream]*strings.Builder{plan.Stdout: {}, plan.Stderr: {}, plan.System: {}}
	for _, e := range task.Log.Drain() {
		said[e.Stream].WriteString(e.Text)
	}
	printed := map[plan.Stream]string{}
	for s, text := range said {
		printed[s] = text.String()
	}
	if len(kept) > 1 {
		t.Fatalf("%s: %d reports", params, len(kept))
	}
	var report map[string]any
	if len(kept) == 1 {
		if err := json.Unmarshal([]byte(kept[0]), &report); err != nil {
			t.Fatal(err)
		}
	}
	return r, report, printed
}

func TestCommands(t *testing.T) {
	for commands, want := range map[string]struct {
		status plan.Status
		errors float64
		out    bool
		err    bool
	}{
		`"a"`:   {plan.Succeeded, 0, true, false},
		`"b"`:   {plan.Succeeded, 1, false, true},
		`"c"`:   {plan.Failed, 1, false, true},
		`"*"`:   {plan.Failed, 2, true, true},
		`"cab"`: {plan.Failed, 2, true, true},
		`"xyz"`: {plan.Succeeded, 0, false, false},
		`""`:    {plan.Succeeded, 0, false, false},
		`null`:  {plan.Succeeded, 0, false, false},
		`1`:     {plan.Succeeded, 0, true, false},
	} {
		r, report, printed := run(t, `{"commands": `+commands+`}`)
		if r.Status != want.status || report["errors"] != want.errors || (printed[plan.Stdout] != "") != want.out || (printed[plan.Stderr] != "") != want.err {
			t.Errorf("%s: status %d (%s), report %v, printed %.99q; want %+v", commands, r.Status, r.Detail, report, printed, want)
		}
	}
	if r, _, _ := run(t, `{"commands": ["a"]}`); r.Status != plan.Failed || !strings.Contains(r.Detail, `commands is ["a"]`) {
		t.Errorf("a list of commands: %+v", r)
	}
}

func TestTheReportIsDisbatchs(t *testing.T) {
	before := float64(time.Now().Unix())
	_, report, _ := run(t, `{"commands": "*", "user1": "a@example.com", "user2": "b@example.com", "counter": 7, "other": true}`)
	started, completed := report["started"], report["completed"]
	if s, ok := started.(float64); !ok || s < before || completed.(float64) < s {
		t.Errorf("started %v, completed %v; now is %v", started, completed, before)
	}
	delete(report, "started")
	delete(report, "completed")
	got, _ := json.Marshal(report)
	want := `{"commands":"abc","counter":7,"error":"command c: it was told to fail","errors":2,"queue_id":{"$oid":"000000000000000000000002"},` +
		`"status":"FAILED","task_id":{"$oid":"000000000000000000000001"},"user1":"a@example.com","user2":"b@example.com","version":"4.103"}`
	if string(got) != want {
		t.Errorf("the report is\n%s, want\n%s", got, want)
	}
	_, report, _ = run(t, `{"commands": "a"}`)
	if counter, there := report["counter"]; !there || counter != nil || report["status"] != "SUCCESS" {
		t.Errorf("the report is %v, want no counter and SUCCESS", report)
	}
	if _, report, _ := run(t, `{"commands": "a", "noreport": 1}`); report != nil {
		t.Errorf("noreport: %v", report)
	}
	if _, report, _ := run(t, `{"commands": "a", "noreport": false}`); report == nil {
		t.Error("noreport is false: there is no report")
	}
}

// TestFloods counts what is kept of what is printed: the log of an attempt is bounded.
func TestFloods(t *testing.T) {
	for commands, want := range map[string]struct {
		stream plan.Stream
		letter string
	}{"1": {plan.Stdout, "1"}, "7": {plan.Stdout, "7"}, "8": {plan.Stdout, "8"}, "e": {plan.Stdout, "e"},
		"A": {plan.Stderr, "A"}, "B": {plan.Stderr, "B"}, "C": {plan.Stderr, "C"}, "E": {plan.Stderr, "E"}} {
		r, _, printed := run(t, `{"commands": "`+commands+`"}`)
		if text := printed[want.stream]; r.Status != plan.Succeeded || !strings.HasPrefix(text, strings.Repeat(want.letter, 1023)+"\n") || len(text) != 1<<20 {
			t.Errorf("%s: status %d, %d bytes on stream %v: %.20q; want the MiB that a log keeps", commands, r.Status, len(text), want.stream, text)
		}
		if cut := strings.Contains(printed[plan.System], "more than 1 MiB"); cut == (commands == "1" || commands == "A") {
			t.Errorf("%s: the log says that there was more: %v", commands, cut)
		}
	}
}
