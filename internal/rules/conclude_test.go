package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatFollowsAnAttempt(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", plan.MaxOutput) + `"`)
	for _, c := range []struct {
		name              string
		attempts, attempt int
		rescues           int
		result            plan.Result
		status            plan.Status
		reason            plan.Reason
		delay             time.Duration
		output            string
	}{
		{"a success ends it with its output", 0, 1, 0, plan.Result{Status: plan.Succeeded, Output: json.RawMessage(`{"a":1}`)}, plan.Succeeded, "", 0, `{"a":1}`},
		{"a success without an output ends it", 3, 1, 0, plan.Result{Status: plan.Succeeded}, plan.Succeeded, "", 0, ""},
		{"a failure ends it if nothing is said about retries", 0, 1, 0, plan.Result{Status: plan.Failed}, plan.Failed, "", 0, ""},
		{"one attempt is no retry", 1, 1, 0, plan.Result{Status: plan.Failed}, plan.Failed, "", 0, ""},
		{"a failure with attempts left holds it", 3, 1, 0, plan.Result{Status: plan.Failed, Reason: plan.ReasonSignal}, plan.Held, plan.ReasonSignal, time.Second, ""},
		{"so does a failure with a code of its own", 3, 2, 0, plan.Result{Status: 42}, plan.Held, "", 2 * time.Second, ""},
		{"the last attempt ends it with that code", 3, 3, 0, plan.Result{Status: 42}, 42, "", 0, ""},
		{"so does a failure after a loss", 2, 2, 1, plan.Result{Status: plan.Failed}, plan.Held, "", time.Second, ""},
		{"also after more losses than attempts", 2, 5, 4, plan.Result{Status: plan.Failed}, plan.Held, "", time.Second, ""},
		{"the last failure ends it, however many losses there were", 2, 4, 2, plan.Result{Status: plan.Failed}, plan.Failed, "", 0, ""},
		{"what was stopped is not tried again", 3, 1, 0, plan.Result{Status: plan.Terminated, Reason: plan.ReasonCancelled}, plan.Terminated, plan.ReasonCancelled, 0, ""},
		{"an output that is not JSON fails it for good", 3, 1, 0, plan.Result{Status: plan.Succeeded, Output: json.RawMessage(`hello`)}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"half of a surrogate pair in it is replaced", 3, 1, 0, plan.Result{Status: plan.Succeeded, Output: json.RawMessage(`"\udcff"`)}, plan.Succeeded, "", 0, `"\ufffd"`},
		{"and one that is not UTF-8", 3, 1, 0, plan.Result{Status: plan.Succeeded, Output: json.RawMessage("\"\xff\"")}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"so does one that is nested too deep", 3, 1, 0, plan.Result{Status: plan.Succeeded, Output: nested(plan.MaxOutputDepth + 1)}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"but not one that is nested as deep as may be, with much in texts", 3, 1, 0, plan.Result{Status: plan.Succeeded, Output: nested(plan.MaxOutputDepth)}, plan.Succeeded, "", 0, string(nested(plan.MaxOutputDepth))},
		{"so does an output that is too large", 3, 1, 0, plan.Result{Status: plan.Succeeded, Output: large}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"and whatever else a plugin refuses of it", 3, 1, 0, plan.Result{Status: plan.Failed, Reason: plan.ReasonOutput, Detail: "no"}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"what it should be given and cannot be fails it for good", 3, 1, 0, plan.Result{Status: plan.Failed, Reason: plan.ReasonInput}, plan.Failed, plan.ReasonInput, 0, ""},
		{"a failure that is final ends it", 3, 1, 0, plan.Result{Status: plan.Failed, Final: true}, plan.Failed, "", 0, ""},
		{"a failure that is fatal ends it, for that reason", 3, 1, 0, plan.Result{Status: plan.Failed, Fatal: true}, plan.Failed, plan.ReasonFatal, 0, ""},
		{"a success that is fatal is one", 3, 1, 0, plan.Result{Status: plan.Succeeded, Fatal: true}, plan.Succeeded, "", 0, ""},
		{"so does one with a code of its own", 3, 1, 0, plan.Result{Status: 42, Final: true, After: time.Hour}, 42, "", 0, ""},
		{"a success that is final is one", 3, 1, 0, plan.Result{Status: plan.Succeeded, Final: true}, plan.Succeeded, "", 0, ""},
		{"a failure may ask for a longer delay", 3, 1, 0, plan.Result{Status: plan.Failed, After: time.Minute}, plan.Held, "", time.Minute, ""},
		{"but for none that is shorter", 3, 2, 0, plan.Result{Status: plan.Failed, After: time.Second}, plan.Held, "", 2 * time.Second, ""},
		{"nor for one that is less than none", 3, 1, 0, plan.Result{Status: plan.Failed, After: -time.Hour}, plan.Held, "", time.Second, ""},
		{"and for a day at most", 3, 1, 0, plan.Result{Status: plan.Failed, After: 1000 * time.Hour}, plan.Held, "", plan.MaxAfter, ""},
		{"a delay after the last attempt means nothing", 3, 3, 0, plan.Result{Status: plan.Failed, After: time.Minute}, plan.Failed, "", 0, ""},
		{"an exit status of skip_on skips it, whatever attempts are left", 3, 1, 0, plan.Result{Status: plan.Failed, Exit: &plan.Exit{Code: 75}}, plan.Cancelled, plan.ReasonSkipped, 0, ""},
		{"also if the plugin made a status of its own of it", 3, 1, 0, plan.Result{Status: 75, Fatal: true, Exit: &plan.Exit{Code: 75}}, plan.Cancelled, plan.ReasonSkipped, 0, ""},
		{"but no success", 3, 1, 0, plan.Result{Status: plan.Succeeded, Exit: &plan.Exit{Code: 75}}, plan.Succeeded, "", 0, ""},
		{"nor a signal", 0, 1, 0, plan.Result{Status: plan.Failed, Reason: plan.ReasonSignal, Exit: &plan.Exit{Code: 75, Signal: "SIGHUP"}}, plan.Failed, plan.ReasonSignal, 0, ""},
		{"a plugin skips it", 3, 1, 0, plan.Skip("nothing to do"), plan.Cancelled, plan.ReasonSkipped, 0, ""},
		{"the output of a failure is dropped", 0, 1, 0, plan.Result{Status: plan.Failed, Output: json.RawMessage(`1`)}, plan.Failed, "", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := protocol.ClaimedTask{Claim: protocol.Claim{Attempt: c.attempt, Token: protocol.Token{1}}, Rescues: c.rescues}
			task.Retry.Attempts = c.attempts
			task.SkipOn = "75"
			if c.result.Exit == nil {
				c.result.Exit = &plan.Exit{Code: 3}
			}
			e := rules.Conclude(&task, c.result, func(_ plan.Retry, attempt int) time.Duration { return time.Duration(attempt) * time.Second })
			if e.Claim != task.Claim {
				t.Errorf("the ending is of another claim: %+v", e.Claim)
			}
			if e.Status != c.status || e.Reason != c.reason || e.Delay != c.delay || string(e.Output) != c.output || e.Exit == nil {
				t.Errorf("got %v, %q, delay %v, output %.20q, exit %v; want %v, %q, %v, %q", e.Status, e.Reason, e.Delay, e.Output, e.Exit, c.status, c.reason, c.delay, c.output)
			}
			if e.Reason == plan.ReasonOutput && e.Detail == "" {
				t.Error("nothing says what is wrong with its output")
			}
		})
	}
}

func ExampleConclude() {
	task := protocol.ClaimedTask{Claim: protocol.Claim{Attempt: 1}}
	task.Retry = plan.Retry{Attempts: 2}
	wait := func(r plan.Retry, attempt int) time.Duration { return 5 * time.Second }
	e := rules.Conclude(&task, plan.Result{Status: plan.Failed}, wait)
	fmt.Println(e.Status, e.Delay)
	task.Attempt = 2
	e = rules.Conclude(&task, plan.Result{Status: plan.Failed}, wait)
	fmt.Println(e.Status, e.Delay)
	// Output:
	// held 5s
	// failed 0s
}

func TestAClaimEndsAsAllowed(t *testing.T) {
	for s, ok := range map[plan.Status]bool{
		plan.Queued: true, plan.Held: true, plan.Succeeded: true, plan.Failed: true, plan.Terminated: true, plan.Cancelled: true,
		plan.Orphaned: true, plan.Claimed: false, plan.Running: false, -7: false,
	} {
		if err := rules.CheckEnding(&protocol.Ending{Status: s}); (err == nil) != ok {
			t.Errorf("an ending with %v: %v, want it allowed: %v", s, err, ok)
		}
	}
}

// nested is arrays within each other, with many more brackets in texts and in other arrays.
func nested(deep int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", deep-1) + `"\"[[[\\", {}, [], ` + strings.Repeat("[],", 2000) + `{}` + strings.Repeat("]", deep-1))
}

// A retry may choose by how an attempt failed.
func TestARetryChoosesFailures(t *testing.T) {
	for _, c := range []struct {
		retry  plan.Retry
		result plan.Result
		again  bool
	}{
		{plan.Retry{On: "75,timeout"}, plan.Result{Exit: &plan.Exit{Code: 75}}, true},
		{plan.Retry{On: "75,timeout"}, plan.Result{Exit: &plan.Exit{Code: 1}}, false},
		{plan.Retry{On: "75,timeout"}, plan.Result{Reason: plan.ReasonTimeout}, true},
		{plan.Retry{On: "75"}, plan.Result{Reason: plan.ReasonError}, false},
		{plan.Retry{NotOn: "2"}, plan.Result{Exit: &plan.Exit{Code: 2}}, false},
		{plan.Retry{NotOn: "2"}, plan.Result{Exit: &plan.Exit{Code: 3}}, true},
		{plan.Retry{NotOn: "2"}, plan.Result{Reason: plan.ReasonError}, true},
		{plan.Retry{NotOn: "signal"}, plan.Result{Reason: plan.ReasonSignal, Exit: &plan.Exit{Code: -1, Signal: "SIGKILL"}}, false},
		{plan.Retry{On: "3"}, plan.Result{Exit: &plan.Exit{Code: 3}, Final: true}, false},
	} {
		task := protocol.ClaimedTask{Claim: protocol.Claim{Attempt: 1}}
		task.Retry = c.retry
		task.Retry.Attempts, c.result.Status, c.result.Detail = 2, plan.Failed, "it failed"
		e := rules.Conclude(&task, c.result, func(plan.Retry, int) time.Duration { return time.Second })
		if again := e.Status == plan.Held; again != c.again {
			t.Errorf("%+v after %+v: again is %v, want %v", c.retry, c.result, again, c.again)
		}
		if left := strings.HasSuffix(e.Detail, "it failed; its retry leaves out such a failure"); left == (c.again || c.result.Final) {
			t.Errorf("%+v after %+v: its detail is %q", c.retry, c.result, e.Detail)
		}
	}
}
