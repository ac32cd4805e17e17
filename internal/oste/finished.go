package oste

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// The states of activities, as codes. A store takes plan.Failed for every code above 1.
var (
	Waiting    = []plan.Status{plan.Held, plan.Queued, plan.Claimed, plan.Running}
	Successful = []plan.Status{plan.Succeeded}
	Failed     = []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned}
)

// A FinishedActivity is a task that has succeeded, or that is a dead letter.
type FinishedActivity struct {
	ID           string    `json:"id"`
	DateExecuted time.Time `json:"DateExecuted,omitzero" doc:"When its last try ended."`
	Call
	Object     string `json:"Object,omitempty" doc:"What it is about: the fields of Parameter that ObjectIdRef names, with commas between them."`
	State      string `json:"State" doc:"succeeded, failed, terminated or orphaned."`
	Reason     string `json:"Reason,omitempty" doc:"How its last try failed: the status of the answer, as 404, or a word, as timeout."`
	Detail     string `json:"Detail,omitempty" doc:"Why it failed, for people."`
	Tries      int    `json:"Tries" doc:"How often it was tried since it was added, or queued again by a person."`
	LogDetails []Try  `json:"LogDetails,omitempty" doc:"What was sent and what came back on each try, and what else its log says. Lists leave it out."`
}

// A Try is an entry of the log of an activity.
type Try struct {
	Try      int       `json:"Try,omitempty" doc:"Counts from 1, and again from 1 once a person queued the activity again."`
	At       time.Time `json:"At"`
	Sent     *Sent     `json:"Sent,omitempty"`
	CameBack *CameBack `json:"CameBack,omitempty" doc:"Left out if there was no answer."`
	Error    string    `json:"Error,omitempty" doc:"Why there was no complete answer."`
	Ms       float64   `json:"Ms,omitempty" doc:"The milliseconds until the answer had ended."`
	Text     string    `json:"Text,omitempty" doc:"Of an entry that is no request."`
}

// Sent is a request as it was sent.
type Sent struct {
	Method string          `json:"Method"`
	Uri    string          `json:"Uri"`
	Body   json.RawMessage `json:"Body,omitempty" doc:"Left out of tries before a person queued the activity again where it is longer than 64 KiB, or the task has secrets."`
}

// CameBack is an answer as it was received.
type CameBack struct {
	Status  int               `json:"Status"`
	Headers map[string]string `json:"Headers,omitempty"`
	Body    string            `json:"Body,omitempty" doc:"The first 64 KiB."`
	Cut     bool              `json:"Cut,omitempty" doc:"The answer was longer."`
}

// Way returns how the last try of a task failed, in a word: the status of an answer, as 404, or else the
// reason. It is "" for a task that did not fail.
func Way(t *plan.Task) string {
	if t.Reason != "" || t.Status == plan.Succeeded {
		return string(t.Reason)
	}
	how := t.Detail // 404 Not Found from HOST, maybe in brackets behind the words of the receiver
	if at := strings.LastIndex(how, " ("); at >= 0 && strings.HasSuffix(how, ")") {
		how = how[at+2:]
	}
	if word, _, ok := strings.Cut(how, " "); ok && isStatus(word) {
		return word
	}
	return string(plan.ReasonError)
}

// CheckWay returns why a word is no way to fail.
func CheckWay(word string) error {
	if isStatus(word) || slices.Contains(rules.ReasonWords(), word) {
		return nil
	}
	return fmt.Errorf("%q is no way to fail; give the status of an answer, as 404, or %s", word, strings.Join(rules.ReasonWords(), ", "))
}

func isStatus(word string) bool {
	return len(word) == 3 && word[0] >= '1' && word[0] <= '5' && strings.Trim(word, "0123456789") == ""
}

// FinishedOf returns the finished activity that a task in the queue of a type is, without LogDetails.
func FinishedOf(t *plan.Task, of string) FinishedActivity {
	return FinishedActivity{
		ID: t.ID.String(), DateExecuted: t.Ended, Call: callOf(of, t.Params, t.Retry.Attempts), Object: t.Subject, State: t.State(), Reason: Way(t),
		Detail: t.Detail, Tries: t.Attempt,
	}
}

// line is the line of JSON that the plugin http logs for each try.
type line struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Status  int               `json:"status"`
	Error   string            `json:"error"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Cut     bool              `json:"cut"`
	Sent    string            `json:"sent"` // of a try that failed
	Ms      struct {
		End float64 `json:"end"`
	} `json:"ms"`
}

// Tries returns what the log of an activity says, and that its last try was lost, of which the log says nothing.
// The task has the Parameter of its last tries.
func Tries(log []plan.LogEntry, t *plan.Task, parameter json.RawMessage) []Try {
	tries := make([]Try, len(log), len(log)+1)
	if t.Reason == plan.ReasonLost {
		tries = append(tries, Try{Try: t.Attempt, At: t.Ended, Text: t.Detail})
	}
	body := func(method string) json.RawMessage {
		if method == "POST" || method == "PUT" {
			return parameter
		}
		return nil
	}
	for i := len(log) - 1; i >= 0; i-- {
		e := &log[i]
		t := Try{Try: e.Attempt, At: e.At}
		var l line
		if !strings.HasPrefix(e.Text, `{"method":`) || json.Unmarshal([]byte(e.Text), &l) != nil {
			if t.Text = strings.TrimSuffix(e.Text, "\n"); rules.IsRetried(e) {
				body = func(string) json.RawMessage { return nil }
			}
			tries[i] = t
			continue
		}
		t.Sent, t.Error, t.Ms = &Sent{Method: l.Method, Uri: l.URL, Body: body(l.Method)}, l.Error, l.Ms.End
		if l.Sent != "" {
			t.Sent.Body = bodyOf(l.Sent)
		}
		if l.Status != 0 {
			t.CameBack = &CameBack{Status: l.Status, Headers: l.Headers, Body: l.Body, Cut: l.Cut}
		}
		tries[i] = t
	}
	return tries
}

// bodyOf returns a body as it was sent, or as a text where that is no JSON.
func bodyOf(sent string) json.RawMessage {
	if body := json.RawMessage(sent); json.Valid(body) {
		return body
	}
	return textOf(sent)
}
