package demo

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// attempt runs one attempt in a bubble's own time, and returns its duration and its log.
func attempt(ctx context.Context, params string, n int) (r plan.Result, took time.Duration, printed []string) {
	log := &plugins.Log{}
	start := time.Now()
	r = Plugin.Run(ctx, &plugins.Task{Attempt: n, Params: json.RawMessage(params), Log: log})
	took = time.Since(start)
	for _, e := range log.Drain() {
		printed = append(printed, e.Text)
	}
	return r, took, printed
}

func TestItDoesWhatItIsTold(t *testing.T) {
	for _, c := range []struct {
		name    string
		params  string
		attempt int
		status  plan.Status
		output  string
		took    time.Duration
		printed []string
	}{
		{"nothing", `{}`, 1, plan.Succeeded, "", 0, nil},
		{"what comes from parents is no setting", `{"needs":{"a":1},"args":[1],"item":{"sleep":9}}`, 1, plan.Succeeded, "", 0, nil},
		{"a sleep", `{"sleep":"1m30s"}`, 1, plan.Succeeded, "", 90 * time.Second, nil},
		{"a sleep in seconds", `{"sleep":0.25}`, 1, plan.Succeeded, "", 250 * time.Millisecond, nil},
		{"a line", `{"print":"hello"}`, 1, plan.Succeeded, "", 0, []string{"hello\n"}},
		{"lines", `{"print":["a","b"]}`, 1, plan.Succeeded, "", 0, []string{"a\n", "b\n"}},
		{"an output", `{"return":{"files":["a",1.50]}}`, 1, plan.Succeeded, `{"files":["a",1.50]}`, 0, nil},
		{"the first attempts fail", `{"fail":2}`, 2, plan.Failed, "", 0, nil},
		{"and no more", `{"fail":2,"return":1}`, 3, plan.Succeeded, "1", 0, nil},
		{"they fail with a status", `{"fail":2,"status":7}`, 1, 7, "", 0, nil},
		{"with a status that is success they fail all the same", `{"fail":1,"status":1}`, 1, plan.Failed, "", 0, nil},
		{"a status that only those have", `{"fail":1,"status":7}`, 2, plan.Succeeded, "", 0, nil},
		{"a status of every attempt", `{"status":7}`, 9, 7, "", 0, nil},
		{"it prints and sleeps before it fails", `{"print":"a","sleep":"2s","fail":1}`, 1, plan.Failed, "", 2 * time.Second, []string{"a\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, took, printed := attempt(t.Context(), c.params, c.attempt)
				if r.Status != c.status || string(r.Output) != c.output {
					t.Errorf("status %d, output %s; want %d, %s; %s", r.Status, r.Output, c.status, c.output, r.Detail)
				}
				if took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if !slices.Equal(printed, c.printed) {
					t.Errorf("it printed %q, want %q", printed, c.printed)
				}
			})
		})
	}
}

func TestASleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, plugins.ErrTimeout)
		defer cancel()
		r, took, _ := attempt(ctx, `{"sleep":"1h"}`, 1)
		if r.Status != plan.Terminated || took != 3*time.Second {
			t.Errorf("status %v after %v, want terminated after 3s", r.Status, took)
		}
	})
}

func TestParamsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ params, want string }{
		{``, "params of demo"},
		{`[]`, "params of demo"},
		{`{"slep":"1s"}`, `"slep" is not known`},
		{`{"sleep":"soon"}`, `sleep: "soon"`},
		{`{"sleep":"-1s"}`, `sleep: "-1s"`},
		{`{"sleep":-1}`, "sleep: -1"},
		{`{"sleep":[]}`, "sleep: []"},
		{`{"print":5}`, "print: 5"},
		{`{"fail":"two"}`, `fail: "two"`},
		{`{"fail":-1}`, "fail: -1"},
		{`{"status":0}`, "status: 0"},
		{`{"status":"bad"}`, `status: "bad"`},
	} {
		t.Run(c.params, func(t *testing.T) {
			r, _, _ := attempt(t.Context(), c.params, 1)
			if r.Status != plan.Failed || !strings.Contains(r.Detail, c.want) {
				t.Errorf("status %v, %q; want failed, with %q", r.Status, r.Detail, c.want)
			}
		})
	}
}
