// Package api owns the JSON of Sluice's REST API under [Root]. It has the resources and problems
// that the server (internal/api/v1) writes and the client (internal/client) reads, and their
// mapping to package plan's types. Everything that both sides must agree on is here and nowhere
// else.
//
// # What owns what
//
//   - plan owns every rule; a handler asks it, or the store, and decides nothing.
//   - This package owns the wire: field names, words for codes, texts for durations. A value that went over it and came back is the same.
//   - internal/api/v1 owns routes, limits and the OpenAPI document, which is made from these types.
//   - internal/client is a store.Admin and store.Reader over HTTP, so that a command that works on a store works on a server.
//   - internal/api/disbatch owns Disbatch 4's routes, internal/web the pages, internal/auth who may do what.
//   - internal/dci owns the listener, puts these together and stops them.
package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Root is where the API begins. OSTERoot is where its resources of the Open Scheduled Task Engine are, and
// DiscoRoot is where Disco's own submitters ask.
const (
	Root      = "/api/v1"
	OSTERoot  = "/oste/v1"
	DiscoRoot = "/disco"
)

// Server and client agree on these.
const (
	TasksBody = 64 << 20 // how many bytes a request may have that adds tasks
	MostPage  = 5000     // how many a list may have that is asked for
)

// A Duration is a span of time, written as in "1m30s".
type Duration = plan.Duration

// CheckTime refuses a time that cannot be written. RFC 3339 has four digits for the year. A task
// with a longer year would make every answer with that task fail.
func CheckTime(t time.Time) error {
	if !t.Equal(writable(t)) {
		return errors.New("a time is in the years 1 to 9999, by UTC")
	}
	return nil
}

// writable returns the time that can be written for one that another program may have put into the database.
func writable(t time.Time) time.Time {
	switch year := t.UTC().Year(); {
	case year < 1:
		return time.Time{}
	case year > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

// A Plan is a plan as a store keeps it.
type Plan struct {
	ID        plan.PlanID     `json:"id"`
	Name      string          `json:"name"`
	Run       int             `json:"run" doc:"The number of the run; NAME#RUN names it."`
	State     string          `json:"state" doc:"submitting, running, succeeded, failed, cancelled or abandoned."`
	Status    plan.Lifecycle  `json:"status" doc:"The state's code: -4, 0, 1, 2, -5 or -6."`
	Stalled   bool            `json:"stalled,omitempty" doc:"Its state is running, and no live node runs it."`
	Outdated  []string        `json:"outdated,omitempty" doc:"For one plan that has ended: the tasks that a retry kept although one of their parents ran again, so that their outputs come from earlier inputs. Retry them with downstream."`
	Closing   plan.Closing    `json:"closing,omitempty" doc:"Why a plan starts nothing more: cancelled, failed, or timeout if it ran longer than its timeout. An ended plan keeps it."`
	Finally   bool            `json:"finally,omitempty" doc:"It has tasks of finally, which run when all others have ended."`
	Ending    string          `json:"ending,omitempty" doc:"How the other tasks ended of a plan that has tasks of finally: succeeded, failed or cancelled. Left out as long as they have not."`
	Stopped   plan.Closing    `json:"stopped,omitempty" doc:"Why the other tasks were stopped of a plan that has tasks of finally, in the words of closing. Left out as long as they have not ended, and if nothing stopped them."`
	OnFailure plan.OnFailure  `json:"on_failure,omitempty" doc:"Whether other tasks run on after a failure: continue or stop."`
	Overlap   plan.Overlap    `json:"overlap,omitempty" doc:"skip: it starts only if no other run of its name has not ended."`
	Priority  int             `json:"priority,omitempty" doc:"Of its turns in queues that it shares with other plans, up to 100; left out if nobody set it, and then 10."`
	Source    string          `json:"source,omitempty" doc:"The absolute path of its file."`
	By        string          `json:"submitted_by,omitempty" doc:"The user or the token that submitted it; left out if it did not come through a server with an access file."`
	Own       bool            `json:"own,omitempty" doc:"A node of its own runs it; others may help."`
	Keep      Duration        `json:"keep,omitempty" doc:"How long it is kept after its end; -1ns for ever, 0s the store's default."`
	Timeout   Duration        `json:"timeout,omitempty" doc:"How long it may run, from its begin or its last retry on. Then what runs is stopped, and it has failed."`
	Deadline  time.Time       `json:"deadline,omitzero" doc:"When that is over; left out before it has begun."`
	Size      int             `json:"size,omitempty" doc:"How many tasks it is submitted with, if that is known before."`
	Edits     int             `json:"edits,omitempty" doc:"Tasks added after it was ready, and retries."`
	Params    json.RawMessage `json:"params,omitempty" doc:"The params of its submission, an object."`
	Secrets   []string        `json:"secrets,omitempty" doc:"Names of params that are never shown, in this plan; a * in a name stands for any letters."`
	Created   time.Time       `json:"created"`
	Modified  time.Time       `json:"modified,omitzero"`
	Retried   time.Time       `json:"retried,omitzero" doc:"When a retry last let it run again after it had ended. What it took counts from then."`
	Ended     time.Time       `json:"ended,omitzero"`
	Left      int             `json:"seconds_left,omitempty" doc:"About how many seconds remain, by the pace of its tasks so far; left out if that is unknown."`
	Counts    plan.Counts     `json:"counts" doc:"How many of its tasks are in each state, each in one number. allowed are failures that continue_on_error of their task allows. A foreach task that has items is in gathering or, once it has ended, in gathered; its items are counted instead."`
	Sums      rules.Sums      `json:"sums" doc:"The totals of counts. tasks is all tasks. done is succeeded, failed, terminated, orphaned, allowed, skipped and cancelled. broken makes the plan fail: failed, terminated and orphaned."`
}

// PlanOf writes a plan. ShownPlan adds what follows from the nodes.
func PlanOf(p *plan.Plan) Plan {
	ending := ""
	if p.Ending != plan.PlanRunning {
		ending = p.Ending.String()
	}
	return Plan{
		Finally: p.Finally, Ending: ending, Stopped: p.Stopped,
		ID: p.ID, Name: p.Name, Run: p.Run, State: p.State.String(), Status: p.State, Closing: p.Closing, OnFailure: p.OnFailure, Overlap: p.Overlap, Priority: p.Priority, Source: p.Source, By: p.By,
		Own: p.Own, Keep: Duration(p.Keep), Timeout: Duration(p.Timeout), Deadline: writable(p.Deadline), Size: p.Size, Edits: p.Edits, Params: p.Params, Secrets: p.Secrets, Created: writable(p.Created), Modified: writable(p.Modified),
		Retried: writable(p.Retried), Ended: writable(p.Ended), Counts: p.Counts, Sums: rules.SumsOf(p.Counts),
	}
}

// Domain is the plan that was written.
func (p *Plan) Domain() plan.Plan {
	ending := plan.PlanRunning
	for _, l := range []plan.Lifecycle{plan.PlanSucceeded, plan.PlanFailed, plan.PlanCancelled} {
		if p.Ending == l.String() {
			ending = l
		}
	}
	return plan.Plan{
		Finally: p.Finally, Ending: ending, Stopped: p.Stopped,
		ID: p.ID, Name: p.Name, Run: p.Run, State: p.Status, Closing: p.Closing, OnFailure: p.OnFailure, Overlap: p.Overlap, Priority: p.Priority, Source: p.Source, By: p.By, Own: p.Own,
		Keep: time.Duration(p.Keep), Timeout: time.Duration(p.Timeout), Deadline: p.Deadline, Size: p.Size, Edits: p.Edits, Params: p.Params, Secrets: p.Secrets, Created: p.Created, Modified: p.Modified,
		Retried: p.Retried, Ended: p.Ended, Counts: p.Counts,
	}
}

// A PlanChange changes a plan.
type PlanChange struct {
	Priority int `json:"priority" minimum:"1" maximum:"100" doc:"Of its turns in queues that it shares with other plans; 10 is usual."`
}

// A NewPlan begins a plan to which tasks are added before it is made ready.
type NewPlan struct {
	Name      string          `json:"name" maxLength:"200" pattern:"^([0-9a-f]{1,23}|[0-9a-f]{25,}|[0-9a-f]*[A-Zg-z_][A-Za-z0-9_-]*|[0-9a-f]+-[A-Za-z0-9_-]*)$" patternDescription:"a name of letters, digits, _ and -, without - in front, and other than 24 hex digits, which would be taken for an id" doc:"Letters, digits, _ and -, without - in front. 24 hex digits are no name."`
	OnFailure plan.OnFailure  `json:"on_failure,omitempty" enum:"continue,stop"`
	Finally   bool            `json:"finally,omitempty" doc:"Tasks of finally are to be added before it is made ready."`
	Overlap   plan.Overlap    `json:"overlap,omitempty" enum:"allow,skip" doc:"skip: it starts only if no other run of its name has not ended; default allow."`
	Priority  int             `json:"priority,omitempty" minimum:"0" maximum:"100" doc:"Of its turns in queues that it shares with other plans; default 10."`
	Source    string          `json:"source,omitempty" doc:"The absolute path of its file."`
	Keep      Duration        `json:"keep,omitempty"`
	Timeout   Duration        `json:"timeout,omitempty" doc:"How long it may run, from its begin or its last retry on; 0: as long as it takes."`
	Key       string          `json:"key,omitempty" maxLength:"255" doc:"The idempotency key. If a plan has it already, that plan is returned instead."`
	Own       bool            `json:"own,omitempty" doc:"A node of its own will run it; others may help."`
	Size      int             `json:"size,omitempty" minimum:"0" doc:"How many tasks it will have when it is made ready; 0: not known yet."`
	Params    json.RawMessage `json:"params,omitempty" doc:"An object."`
	Secrets   []string        `json:"secrets,omitempty" maxItems:"200" doc:"Names of params that are never shown, in this plan and all of its tasks."`
	File      *plan.File      `json:"file,omitempty" doc:"The plan file, to be kept with the plan: its text, of at most 256 KiB, and the folder that its relative paths start from."`
}

// NewPlanOf writes what of a plan its submitter decides, but its id.
func NewPlanOf(p *plan.Plan) NewPlan {
	n := NewPlan{Name: p.Name, OnFailure: p.OnFailure, Finally: p.Finally, Overlap: p.Overlap, Priority: p.Priority, Source: p.Source, Keep: Duration(max(p.Keep, rules.ForEver)), Timeout: Duration(p.Timeout), Key: p.Key, Own: p.Own, Size: p.Size, Params: p.Params, Secrets: p.Secrets}
	if p.File != (plan.File{}) {
		n.File = &p.File
	}
	return n
}

// A Note is what is valid of a plan file and probably not meant.
type Note struct {
	Message string `json:"message" doc:"For people."`
	Line    int    `json:"line,omitempty" doc:"Line of the plan file, from 1; left out if the note is about no place in the file."`
	Column  int    `json:"column,omitempty" doc:"In the line, in characters from 1."`
	Do      string `json:"do,omitempty" doc:"A command that may help. It names this server, or the store that it is for; URI replaces a store that is not shown."`
	Give    string `json:"give,omitempty" doc:"A parameter of the request that helps: dir."`
}

// Submitted is a plan whose file was submitted.
type Submitted struct {
	Plan
	Notes []Note `json:"notes,omitempty" doc:"Parts of its file that are valid and probably not meant."`
}

// Checked is what is known of a plan file that could be submitted.
type Checked struct {
	Name   string  `json:"name" doc:"The plan's."`
	Tasks  int     `json:"tasks" doc:"The number of tasks in the file. A foreach makes more as it runs."`
	Needs  int     `json:"needs" doc:"The number of their needs."`
	Levels int     `json:"levels" doc:"The number of tasks on the longest path."`
	Params []Param `json:"params" doc:"The params of the plan, in the order of the file."`
	Notes  []Note  `json:"notes" doc:"Parts of the file that are valid and probably not meant."`
}

// Param is what a plan file says of a param.
type Param struct {
	Name    string          `json:"name"`
	Default json.RawMessage `json:"default,omitempty" doc:"The default. Left out for a secret param."`
	Missing bool            `json:"missing,omitempty" doc:"It has to be given, and was not. The plan cannot be submitted without it."`
	Secret  bool            `json:"secret,omitempty" doc:"It is never shown."`
	Choices rules.Choices   `json:"choices,omitempty" doc:"The values that it may have, as texts, numbers and booleans. Left out: it may have any value."`
	About   string          `json:"about,omitempty" doc:"A text for people who give it."`
}

// A Definition is what a person wrote about a task, with durations as texts.
type Definition struct {
	plan.Definition
	Retry    *Retry   `json:"retry,omitempty"`
	Timeout  Duration `json:"timeout,omitempty" doc:"The limit of one attempt."`
	Estimate Duration `json:"estimate,omitempty" doc:"How long it probably runs."`
}

// A AnswerBody is a person's answer to the question of a task.
type AnswerBody struct {
	Approve bool      `json:"approve" doc:"true approves, and false rejects."`
	Note    string    `json:"note,omitempty" maxLength:"1000" doc:"For people."`
	Asked   time.Time `json:"asked" doc:"The started of the task as the person saw it: an answer to an earlier question is refused."`
}

// A Retry says how often a task that fails is tried again.
type Retry = plan.RetryText

func definitionOf(d *plan.Definition) Definition {
	w := Definition{Definition: *d, Timeout: Duration(d.Timeout), Estimate: Duration(d.Estimate)}
	if r := d.Retry; r != (plan.Retry{}) {
		w.Retry = &Retry{Attempts: r.Attempts, Delay: Duration(r.Delay), Factor: r.Factor, Max: Duration(r.Max), On: r.On, NotOn: r.NotOn}
	}
	return w
}

func (w *Definition) domain() plan.Definition {
	d := w.Definition
	d.Timeout, d.Estimate = time.Duration(w.Timeout), time.Duration(w.Estimate)
	if r := w.Retry; r != nil {
		d.Retry = r.Retry()
	}
	if d.Finally && d.When == "" {
		d.When = plan.AllDone
	}
	return d
}

// A Task is a task as a store keeps it.
type Task struct {
	ID      plan.TaskID  `json:"id"`
	Name    string       `json:"name"`
	Plan    plan.PlanID  `json:"plan,omitzero" doc:"Left out for a task of no plan."`
	Queue   string       `json:"queue" doc:"The queue's name."`
	QueueID plan.QueueID `json:"queue_id"`
	State   string       `json:"state" doc:"held, queued, claimed, running, succeeded, failed, terminated, cancelled, skipped, orphaned or unknown."`
	Status  plan.Status  `json:"status" doc:"The state's code, or a code above 2 that the plugin chose."`
	Reason  plan.Reason  `json:"reason,omitempty"`
	Allowed bool         `json:"allowed,omitempty" doc:"It failed, and its continue_on_error allows that."`
	Detail  string       `json:"detail,omitempty" doc:"The error, for people. While a task is claimed or running, it is of the attempt before."`
	Exit    *plan.Exit   `json:"exit,omitempty" doc:"How the command of the last ended attempt ended. While a task is claimed or running, that is the attempt before."`
	Definition
	Attempt   int             `json:"attempt,omitempty" doc:"The number of the last or present attempt; the first is 1."`
	Rescues   int             `json:"rescues,omitempty" doc:"How often an attempt of it was lost, mostly with its node."`
	Most      int             `json:"most_attempts,omitempty" doc:"How many attempts it has at most, with those that were lost. It is left out of a task without retry."`
	Node      plan.NodeName   `json:"node,omitempty"`
	Instance  plan.InstanceID `json:"instance,omitzero"`
	Progress  *plan.Progress  `json:"progress,omitempty" doc:"The progress that a running task reported: a fraction from 0 to 1, and a text of at most 200 bytes. A store has it within about a second."`
	Of        plan.TaskID     `json:"of,omitzero" doc:"The foreach task of an item."`
	Index     *int            `json:"index,omitempty" doc:"Its place among the items, from 0."`
	ItemLabel string          `json:"item_label,omitempty" doc:"The label of an item of a foreach task, in at most 40 columns of one line, if it is asked for: its text, or the beginning of its JSON. The whole item is among its params."`
	Items     int             `json:"items,omitempty"`
	Expanding bool            `json:"expanding,omitempty"`
	Expanded  bool            `json:"expanded,omitempty" doc:"Its items are all in."`
	Cancel    bool            `json:"cancel,omitempty" doc:"A person cancelled it."`
	Ran       bool            `json:"ran,omitempty" doc:"It waits, or was cancelled, after an attempt of it began. A retry keeps this while a clean-up of the task is to run. If the task is stopped before it begins again, it counts as stopped while it ran."`
	Batch     plan.ID         `json:"batch,omitzero" doc:"The batch in which the finished task is being handed over. Lists leave it out."`
	NotBefore time.Time       `json:"not_before,omitzero" doc:"The task is held until then."`
	Created   time.Time       `json:"created,omitzero"`
	Modified  time.Time       `json:"modified,omitzero"`
	Started   time.Time       `json:"started,omitzero" doc:"When the last attempt began; for a foreach task over a list or an output, when its items began to be made. It may be left out if the task is claimed for another attempt."`
	Ended     time.Time       `json:"ended,omitzero" doc:"When the last attempt ended. It may be left out if the task waits for another attempt."`

	Needs  []plan.TaskID   `json:"needs,omitempty" doc:"Its parents, in order, if they are asked for."`
	Params json.RawMessage `json:"params,omitempty" doc:"If they are asked for."`
	Output json.RawMessage `json:"output,omitempty" doc:"If it is asked for."`
}

// TaskOf writes a task; queue is the name of its queue.
func TaskOf(t *plan.Task, queue string) Task {
	w := Task{
		ID: t.ID, Name: t.Name, Plan: t.Plan, Queue: queue, QueueID: t.Queue, State: t.State(), Status: t.Status, Reason: t.Reason, Allowed: t.Allowed(), Detail: t.Detail,
		Exit: t.Exit, Definition: definitionOf(&t.Definition), Attempt: t.Attempt, Rescues: t.Rescues, Node: t.Node, Instance: t.Instance, Of: t.Of,
		Items: t.Items, Expanding: t.Expanding, Expanded: t.Expanded, Cancel: t.Cancel, Ran: t.Ran, Progress: t.Progress, Batch: t.Batch, NotBefore: writable(t.NotBefore), Created: writable(t.Created),
		Modified: writable(t.Modified), Started: writable(t.Started), Ended: writable(t.Ended), Needs: t.Needs, Params: t.Params, Output: t.Output,
	}
	if t.Retry.Attempts > 1 {
		w.Most = rules.Most(t.Retry.Attempts, t.Rescues)
	}
	if !t.Of.IsZero() {
		w.Index = &t.Index
	}
	return w
}

// Domain is the task that was written.
func (t *Task) Domain() plan.Task {
	d := plan.Task{
		ID: t.ID, Plan: t.Plan, Name: t.Name, Queue: t.QueueID, Definition: t.Definition.domain(), Params: t.Params, Needs: t.Needs, Of: t.Of,
		Status: t.Status, Reason: t.Reason, Detail: t.Detail, Exit: t.Exit, Output: t.Output, Attempt: t.Attempt, Rescues: t.Rescues,
		Expanding: t.Expanding, Expanded: t.Expanded, Items: t.Items, Cancel: t.Cancel, Ran: t.Ran, Node: t.Node, Instance: t.Instance, Progress: t.Progress, Batch: t.Batch, NotBefore: t.NotBefore,
		Created: t.Created, Modified: t.Modified, Started: t.Started, Ended: t.Ended,
	}
	if t.Index != nil {
		d.Index = *t.Index
	}
	return d
}

// A NewTask is a task that is added, or that takes another's place in a retry.
type NewTask struct {
	ID      plan.TaskID  `json:"id" doc:"The caller may choose it. Adding a task again under its id changes nothing."`
	Name    string       `json:"name,omitempty" doc:"Unique in a plan; a task of no plan needs none. At most 200 letters, digits, _ and -, without - in front, and not 24 hex digits. In a retry: as it is."`
	QueueID plan.QueueID `json:"queue_id"`
	Definition
	Params    json.RawMessage `json:"params,omitempty" doc:"An object."`
	Needs     []plan.TaskID   `json:"needs,omitempty"`
	NotBefore time.Time       `json:"not_before,omitzero" doc:"The task is held until then."`
	Created   time.Time       `json:"created,omitzero"`
}

// NewTaskOf writes what of a task its submitter decides.
func NewTaskOf(t *plan.Task) NewTask {
	return NewTask{
		ID: t.ID, Name: t.Name, QueueID: t.Queue, Definition: definitionOf(&t.Definition), Params: t.Params, Needs: t.Needs, NotBefore: t.NotBefore,
		Created: t.Created,
	}
}

// Domain is the task that was written, held.
func (t *NewTask) Domain() plan.Task {
	return plan.Task{
		ID: t.ID, Name: t.Name, Queue: t.QueueID, Definition: t.Definition.domain(), Params: t.Params, Needs: t.Needs, Status: plan.Held,
		NotBefore: t.NotBefore, Created: t.Created,
	}
}

// A TaskChange is a change of a task of no plan that waits. A field that is left out stays as it is.
type TaskChange struct {
	NotBefore *time.Time      `json:"not_before,omitempty" doc:"The task is held until then, to the millisecond. A time that has passed does not hold it any more; neither does null."`
	Params    json.RawMessage `json:"params,omitempty" doc:"An object, in place of the params of its submitter. The outputs of its parents stay. Needs the scope submit, because params are what a task does."`
	Template  bool            `json:"template,omitempty" doc:"With params: they hold expressions."`
	Attempts  int             `json:"attempts,omitempty" minimum:"1" doc:"The largest number of attempts, at most 2147483647."`
	Timeout   *Duration       `json:"timeout,omitempty" doc:"The limit of one attempt; 0s or null: none of its own."`
	Subject   *string         `json:"subject,omitempty" doc:"What it is about: one line of at most 200 bytes; none if it is empty or null."`
}

// UnmarshalJSON implements json.Unmarshaler. A null takes a value away.
func (w *TaskChange) UnmarshalJSON(text []byte) error {
	type fields TaskChange
	if err := json.Unmarshal(text, (*fields)(w)); err != nil {
		return err
	}
	said := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	if _, is := said["not_before"]; is && w.NotBefore == nil {
		w.NotBefore = new(time.Time)
	}
	if _, is := said["timeout"]; is && w.Timeout == nil {
		w.Timeout = new(Duration)
	}
	if _, is := said["subject"]; is && w.Subject == nil {
		w.Subject = new(string)
	}
	return nil
}

// TaskChangeOf writes a change; what the caller read of the task is the ETag's.
func TaskChangeOf(c *rules.TaskChange) TaskChange {
	return TaskChange{NotBefore: c.NotBefore, Params: c.Params, Template: c.Template, Attempts: c.Attempts, Timeout: (*Duration)(c.Timeout), Subject: c.Subject}
}

// Domain is the change that was written.
func (w *TaskChange) Domain() rules.TaskChange {
	return rules.TaskChange{NotBefore: w.NotBefore, Params: w.Params, Template: w.Template, Attempts: w.Attempts, Timeout: (*time.Duration)(w.Timeout), Subject: w.Subject}
}

// A TaskFilter chooses tasks of no plan by conditions, of which it has one at least. A task has to meet
// all of them.
type TaskFilter struct {
	Queue     string   `json:"queue,omitempty" doc:"Of that queue, by its name or id."`
	Group     string   `json:"group,omitempty" doc:"Of a queue in that group, or in a group in it."`
	State     []string `json:"state,omitempty" doc:"In one of these states, by word or number. Left out: for cancel every task that has not finished, for set every task that waits, for retry those that failed, were stopped or were lost. A retry takes cancelled and skipped tasks if they are named here."`
	Subject   string   `json:"subject,omitempty" doc:"With exactly that subject."`
	OlderThan Duration `json:"older_than,omitempty" doc:"Created that long ago at least."`
	Reason    []string `json:"reason,omitempty" doc:"Whose last attempt failed in one of these ways: an exit status from 1 to 255, timeout, signal, lost, input, output, error, fatal, skipped or cancelled."`
}

// TaskFilterOf writes a filter.
func TaskFilterOf(f *rules.TaskFilter) TaskFilter {
	w := TaskFilter{Group: f.Group, State: f.States, Subject: f.Subject, OlderThan: Duration(f.OlderThan), Reason: f.Reasons}
	if !f.Queue.IsZero() {
		w.Queue = f.Queue.String()
	}
	return w
}

// Domain is the filter that was written, but for its queue, whose id a store knows.
func (w *TaskFilter) Domain() rules.TaskFilter {
	return rules.TaskFilter{Group: w.Group, States: w.State, Subject: w.Subject, OlderThan: time.Duration(w.OlderThan), Reasons: w.Reason}
}

// String writes the conditions for people, as the audit log has them.
func (w *TaskFilter) String() string {
	var all []string
	add := func(is bool, format string, value any) {
		if is {
			all = append(all, fmt.Sprintf(format, value))
		}
	}
	add(w.Queue != "", "queue=%s", w.Queue)
	add(w.Group != "", "group=%s", w.Group)
	add(len(w.State) > 0, "state=%s", strings.Join(w.State, ","))
	add(w.Subject != "", "subject=%q", w.Subject)
	add(w.OlderThan > 0, "older_than=%v", time.Duration(w.OlderThan))
	add(len(w.Reason) > 0, "reason=%s", strings.Join(w.Reason, ","))
	return strings.Join(all, " ")
}

// A BulkOrder is a portion of the tasks that a filter chooses.
type BulkOrder struct {
	Filter TaskFilter `json:"filter"`
	Check  bool       `json:"check,omitempty" doc:"Only count; change nothing."`
	After  string     `json:"after,omitempty" doc:"The next of the answer before."`
}

// A BulkAnswer is what became of a portion.
type BulkAnswer struct {
	Matched  int    `json:"matched" doc:"How many tasks the filter chose, of at most 1,000 in a portion."`
	Changed  int    `json:"changed" doc:"How many of them were cancelled, changed or retried; with check none."`
	Stopping int    `json:"stopping,omitempty" doc:"How many of the cancelled tasks a node has, which stops them."`
	LeftOut  int    `json:"left_out" doc:"How many are not any more as they were chosen: a node claimed them, they ended, or they are being handed over."`
	Next     string `json:"next,omitempty" doc:"after continues; left out: that was the last portion. Tasks that are added meanwhile are left alone."`
}

// TaskTag is the ETag of a task that has that Modified; "" for the zero time, which is any.
func TaskTag(modified time.Time) string {
	if modified.IsZero() {
		return ""
	}
	return EditionTag(modified.UnixNano())
}

// An Ask says which tasks run again.
type Ask struct {
	Tasks      []plan.TaskID `json:"tasks,omitempty" doc:"The tasks that should run again; none: all tasks of the plan that did not succeed."`
	Downstream bool          `json:"downstream,omitempty" doc:"All tasks below run again too, even if they succeeded; a task of no plan runs again even if it succeeded."`
	Lists      rules.ListAsk `json:"lists,omitempty" enum:"again,first,compare" doc:"With compare, the list of each foreach task, as it is now, is compared with its items: new ones are added, those that are gone are skipped, and the others stay. If any come or go, the tasks below run again. With again, the tasks run again whose outputs are such lists, and nothing else: wait for them, and then compare. With first, only the lists are compared that others follow from, and only what makes those runs: ask for it, and wait, until it names no task, and then compare. With tasks, only the lists of these, and those that follow from them."`
	Check      bool          `json:"check,omitempty" doc:"Only tell what would run again; change nothing."`
}

// A Retried is a task that runs again, with the state that it was in.
type Retried struct {
	ID     plan.TaskID `json:"id"`
	Status plan.Status `json:"status"`
	Ran    bool        `json:"ran,omitempty" doc:"It keeps ran: what it did may still have to be undone."`
	Anew   bool        `json:"anew,omitempty" doc:"A foreach task whose items are made again."`
	Gone   bool        `json:"gone,omitempty" doc:"An item that is not in its list any more. It does not run, and is skipped."`

	Items *rules.RelistCounts `json:"items,omitempty" doc:"Of a foreach task whose list was compared with its items: how these differ."`
}

// RetriedOf writes a task that is to run again.
func RetriedOf(r *rules.Retried) Retried { return Retried(*r) }

// Domain is the task that was written.
func (r *Retried) Domain() rules.Retried { return rules.Retried(*r) }

// A Queue is where tasks of one plugin wait, under one limit.
type Queue struct {
	ID      plan.QueueID   `json:"id"`
	Name    string         `json:"name"`
	State   string         `json:"state" doc:"open, full or paused."`
	Status  int            `json:"status" doc:"The state's code: 1, 2 or 0."`
	Plugin  string         `json:"plugin"`
	Threads *int           `json:"threads" doc:"How many of its tasks run at once, over all nodes; null: no limit."`
	Sort    plan.QueueSort `json:"sort" doc:"fifo, lifo or default."`
	Queued  int            `json:"queued"`
	Active  int            `json:"active" doc:"Claimed or running."`

	Pin         []plan.NodeName `json:"pin,omitempty" doc:"The only nodes that serve it."`
	Ignore      []plan.NodeName `json:"ignore,omitempty" doc:"Nodes that do not serve it, if pin is empty."`
	NodeThreads int             `json:"node_threads,omitempty" doc:"How many of its tasks one node runs at once."`
	plan.QueueSettings
	Spent time.Time `json:"rate_spent,omitzero" doc:"When all that has started would be over at the pace of the rate. The next task starts once that is less than burst starts ahead."`
}

// QueueOf writes a queue.
func QueueOf(q *plan.Queue) Queue {
	w := Queue{
		ID: q.ID, Name: q.Name, Plugin: q.Plugin, Sort: q.Sort, Queued: q.Queued, Active: q.Active, State: "open", Status: 1,
		Pin: q.Pin, Ignore: q.Ignore, NodeThreads: max(0, q.NodeThreads), QueueSettings: q.QueueSettings, Spent: q.Spent,
	}
	if w.Sort == "" {
		w.Sort = "default"
	}
	if !q.Unlimited {
		w.Threads = &q.Threads
		switch {
		case q.Threads <= 0:
			w.State, w.Status = "paused", 0
		case q.Active >= q.Threads:
			w.State, w.Status = "full", 2
		}
	}
	return w
}

// Domain is the queue that was written.
func (q *Queue) Domain() plan.Queue {
	d := plan.Queue{
		ID: q.ID, Name: q.Name, Plugin: q.Plugin, Unlimited: q.Threads == nil, Sort: q.Sort, Pin: q.Pin, Ignore: q.Ignore,
		NodeThreads: q.NodeThreads, QueueSettings: q.QueueSettings, Spent: q.Spent, Queued: q.Queued, Active: q.Active,
	}
	if q.Threads != nil {
		d.Threads = *q.Threads
	}
	if d.Sort == "default" {
		d.Sort = ""
	}
	return d
}

// A SetQueue is what may be said of a queue.
type SetQueue struct {
	Threads     *int            `json:"threads" minimum:"0" doc:"At most 1000000. null: no limit; 0: the queue is paused."`
	Sort        plan.QueueSort  `json:"sort,omitempty" enum:"fifo,lifo,default"`
	Pin         []plan.NodeName `json:"pin,omitempty"`
	Ignore      []plan.NodeName `json:"ignore,omitempty"`
	NodeThreads int             `json:"node_threads,omitempty" minimum:"0" doc:"At most 1000000. Left out or 0: no limit."`
	plan.QueueSettings
}

// A QueueSettings sets a queue that is there. A client that does not know one of plan.QueueSettings
// leaves it out, and the queue keeps its own. A setting that is null says nothing from then on.
type QueueSettings struct {
	SetQueue
	said map[string]json.RawMessage
}

// A NewQueue is a queue that is to be made.
type NewQueue struct {
	ID     plan.QueueID `json:"id,omitzero" doc:"The caller may choose it; by default the server does."`
	Name   string       `json:"name" minLength:"1" doc:"At most 200 letters, digits, _, -, colons and dots, without - in front. Not 24 hex digits, which would be taken for an id, nor . and .., which the path of a URL drops."`
	Plugin string       `json:"plugin" minLength:"1" doc:"The work of its tasks: at most 200 letters, digits, _ and :, as in copy_mail."`
	SetQueue
}

// SettingsOf writes what of a queue may be set.
func SettingsOf(q *plan.Queue) SetQueue {
	w := QueueOf(q)
	for _, s := range rules.KeptStatuses {
		age := rules.KeepOf(&w.Keep, s)
		*age = max(*age, Duration(rules.ForEver))
	}
	return SetQueue{Threads: w.Threads, Sort: w.Sort, Pin: w.Pin, Ignore: w.Ignore, NodeThreads: w.NodeThreads, QueueSettings: w.QueueSettings}
}

// settingNames are the names of plan.QueueSettings in JSON, in its order.
func settingNames() (names []string) {
	for i, of := 0, reflect.TypeFor[plan.QueueSettings](); i < of.NumField(); i++ {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// MarshalJSON implements json.Marshaler. It says null of the settings that say nothing.
func (s QueueSettings) MarshalJSON() ([]byte, error) {
	fields := map[string]json.RawMessage{}
	for _, name := range settingNames() {
		fields[name] = json.RawMessage("null")
	}
	text, err := json.Marshal(s.SetQueue)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *QueueSettings) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &s.SetQueue); err != nil {
		return err
	}
	return json.Unmarshal(text, &s.said)
}

// Said returns what the body has at the key of a setting; nil if it has none.
func (s *QueueSettings) Said(key string) json.RawMessage { return s.said[key] }

// VersionOf is the ETag of what may be set of a queue: how full it is makes no other version.
func VersionOf(q *plan.Queue) string {
	text, _ := json.Marshal(SettingsOf(q)) // none of its fields can fail
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// most returns the limit of tasks; 0 if the queue has none.
func (s *SetQueue) most() int {
	if s.Threads == nil {
		return 0
	}
	return *s.Threads
}

// Apply changes the queue to these settings.
func (s *QueueSettings) Apply(q *plan.Queue) error {
	was := reflect.ValueOf(q.QueueSettings)
	if err := s.SetQueue.Apply(q); err != nil {
		return err
	}
	for i, name := range settingNames() {
		if _, said := s.said[name]; !said {
			reflect.ValueOf(&q.QueueSettings).Elem().Field(i).Set(was.Field(i))
		}
	}
	return nil
}

// Apply changes the queue to these settings.
func (s *SetQueue) Apply(q *plan.Queue) error {
	names, err := secret.CheckNames(s.Secrets)
	if err != nil {
		return InvalidAt("body.secrets", "%v", err)
	}
	s.Secrets = names
	for _, list := range []struct {
		where     string
		was, want []plan.NodeName
	}{{"body.pin", q.Pin, s.Pin}, {"body.ignore", q.Ignore, s.Ignore}} {
		for _, name := range list.want { // other programs may have set any name
			if err := rules.CheckNodeName(string(name)); err != nil && !slices.Contains(list.was, name) {
				return InvalidAt(list.where, "%v", err)
			}
		}
	}
	for _, limit := range []struct {
		key       string
		was, want int
	}{{"threads", q.Threads, s.most()}, {"node_threads", q.NodeThreads, s.NodeThreads}} {
		if err := rules.CheckLimit(limit.key, limit.want); err != nil && limit.was != limit.want { // as for names
			return InvalidAt("body."+limit.key, "%v", err)
		}
	}
	if err := s.Rate.Check(); err != nil {
		return InvalidAt("body.rate", "%v", err)
	}
	if err := rules.CheckKeep("keep", q.Keep, s.Keep); err != nil {
		return InvalidAt("body.keep", "%v", err)
	}
	if s.Weight != 0 {
		if err := plan.CheckWeight(s.Weight); err != nil {
			return InvalidAt("body.weight", "%v", err)
		}
	}
	w := Queue{Threads: s.Threads, Sort: s.Sort, Pin: s.Pin, Ignore: s.Ignore, NodeThreads: s.NodeThreads}
	d := w.Domain()
	q.Threads, q.Unlimited, q.Sort, q.Pin, q.Ignore, q.NodeThreads = d.Threads, d.Unlimited, d.Sort, d.Pin, d.Ignore, d.NodeThreads
	q.QueueSettings = s.QueueSettings
	return nil
}

// A NewSchedule is a schedule that is to be made.
type NewSchedule struct {
	ID   plan.ScheduleID `json:"id,omitzero" doc:"The caller may choose it, so that a repeated request makes one schedule; by default the server does."`
	Name string          `json:"name" minLength:"1" doc:"At most 200 letters, digits, _ and -, without - in front. 24 hex digits are no name."`
	plan.ScheduleSettings
	Applied string `json:"applied_from,omitempty" doc:"The folder of the file that says it, if a file does."`
}

// EditionTag is the ETag of an edition of a schedule; "" for 0, which is any.
func EditionTag(edition int64) string {
	if edition == 0 {
		return ""
	}
	return `"` + strconv.FormatInt(edition, 10) + `"`
}

// An Instant is one of a schedule.
type Instant struct {
	At     time.Time `json:"at" doc:"Without the jitter."`
	Local  string    `json:"local" doc:"The same instant in the zone of the schedule."`
	Change string    `json:"change,omitempty" enum:"moved,doubled,dropped" doc:"What a clock change did: dropped is an instant that the schedule leaves out."`
	Reason string    `json:"reason,omitempty" doc:"Of the change."`
}

// A Pausing says why a schedule is paused.
type Pausing struct {
	Why string `json:"why,omitempty" doc:"For people; at most 1000 bytes."`
}

// A Backfill is the past instants that are to be started.
type Backfill struct {
	plan.Span
	Dry bool `json:"dry,omitempty" doc:"Only count them, and change nothing."`
}

// A Node is one process that claims tasks, or that runs one which a node claimed.
type Node struct {
	ID       plan.InstanceID `json:"id"`
	Name     plan.NodeName   `json:"name"`
	State    string          `json:"state" doc:"alive, silent or gone."`
	Status   int             `json:"status" doc:"The state's code: 1, 0 or -1."`
	Host     string          `json:"host"`
	PID      int             `json:"pid"`
	Identity string          `json:"identity,omitempty" doc:"Distinguishes the process from a later one with the same pid."`
	Lease    Duration        `json:"lease" doc:"It is declared dead after that long without a heartbeat."`
	Threads  int             `json:"threads"`
	Most     *int            `json:"maxthreads,omitempty" doc:"How many tasks all processes of its name run together, as set by set-node; left out: no limit."`
	Running  int             `json:"running" doc:"The number of its claimed and running tasks."`
	Plugins  []string        `json:"plugins"`
	Active   []plan.QueueID  `json:"active_queues,omitempty" doc:"The only queues that it serves."`
	Ignored  []plan.QueueID  `json:"ignore_queues,omitempty"`
	Plan     plan.PlanID     `json:"plan,omitzero" doc:"The only plan whose tasks it claims."`
	Version  string          `json:"version,omitempty"`
	Sole     bool            `json:"sole,omitempty"`
	Runner   bool            `json:"runner,omitempty" doc:"It runs one task that a node of its name claimed."`
	Pauses   []Pause         `json:"pauses,omitempty" doc:"The queues with tasks that it could not begin."`
	Beats    int64           `json:"beats"`
	Age      float64         `json:"age" doc:"Seconds since its last heartbeat."`
}

// A Pause is a queue with tasks that a node could not begin.
type Pause struct {
	Queue plan.QueueID  `json:"queue"`
	Each  Duration      `json:"each,omitempty" doc:"How long the node leaves the queue alone before it tries one task; left out: it takes tasks again."`
	Why   string        `json:"why,omitempty" doc:"What the node lacks."`
	Tasks []plan.TaskID `json:"tasks,omitempty" doc:"The tasks that it could not begin."`
}

// PausesOf writes the pauses of an instance.
func PausesOf(i *plan.Instance) []Pause {
	return Each(i.Pauses, func(p *plan.Pause) Pause {
		return Pause{Queue: p.Queue, Each: Duration(p.Each), Why: p.Why, Tasks: p.Tasks}
	})
}

// Domain is the pause that was written.
func (p *Pause) Domain() plan.Pause {
	return plan.Pause{Queue: p.Queue, Each: time.Duration(p.Each), Why: p.Why, Tasks: p.Tasks}
}

// NodeOf writes an instance, without State, Status, Most and Running: see ReadNodes.
func NodeOf(i *plan.Instance) Node {
	return Node{
		ID: i.ID, Name: i.Node, Host: i.Host, PID: i.Process.PID, Identity: i.Process.Identity, Lease: Duration(i.Lease), Threads: i.Threads,
		Plugins: append([]string{}, i.Plugins...), Active: i.Active, Ignored: i.Ignored, Plan: i.Plan, Version: i.Version, Sole: i.Sole, Runner: i.Runner,
		Pauses: PausesOf(i), Beats: i.Beats, Age: i.Age.Seconds(),
	}
}

// Domain is the instance that was written.
func (n *Node) Domain() plan.Instance {
	return plan.Instance{
		ID: n.ID, Node: n.Name, Host: n.Host, Process: plan.Process{PID: n.PID, Identity: n.Identity}, Lease: time.Duration(n.Lease), Threads: n.Threads,
		Plugins: n.Plugins, Active: n.Active, Ignored: n.Ignored, Plan: n.Plan, Version: n.Version, Sole: n.Sole, Runner: n.Runner, Beats: n.Beats,
		Pauses: Domain[plan.Pause](n.Pauses), Age: time.Duration(n.Age * float64(time.Second)),
	}
}

// A LogEntry is a piece of what a task printed: usually one line, with its newline if it had one.
type LogEntry struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	Stream  string    `json:"stream" enum:"stdout,stderr,system,runner" doc:"system: lines of Sluice; runner: lines that another program's task runner printed itself."`
	Text    string    `json:"text"`
}

var streams = map[plan.Stream]string{plan.Stdout: "stdout", plan.Stderr: "stderr", plan.System: "system", plan.Runner: "runner"}

// StreamWord names a stream.
func StreamWord(s plan.Stream) string { return streams[s] }

// LogEntryOf writes an entry of a log.
func LogEntryOf(e *plan.LogEntry) LogEntry {
	return LogEntry{At: writable(e.At), Attempt: e.Attempt, Stream: streams[e.Stream], Text: e.Text}
}

// Domain is the entry that was written.
func (e *LogEntry) Domain() plan.LogEntry {
	d := plan.LogEntry{At: e.At, Attempt: e.Attempt, Text: e.Text}
	for s, word := range streams {
		if word == e.Stream {
			d.Stream = s
		}
	}
	return d
}

// A Change is one thing that changed: a task, or, without one, a plan.
type Change struct {
	At      time.Time       `json:"at"`
	Plan    plan.PlanID     `json:"plan,omitzero"`
	Task    plan.TaskID     `json:"task,omitzero"`
	Name    string          `json:"name,omitempty"`
	Of      plan.TaskID     `json:"of,omitzero"`
	State   string          `json:"state" doc:"Of the task, or of the plan if there is no task."`
	Status  int             `json:"status"`
	Reason  plan.Reason     `json:"reason,omitempty"`
	Allowed bool            `json:"allowed,omitempty" doc:"It failed, and its continue_on_error allows that."`
	Attempt int             `json:"attempt,omitempty"`
	Node    plan.NodeName   `json:"node,omitempty"`
	Detail  string          `json:"detail,omitempty" doc:"The error, for people. While a task is claimed or running, it is of the attempt before."`
	Output  json.RawMessage `json:"output,omitempty"`
	Counts  *plan.Counts    `json:"counts,omitempty" doc:"The counts of a plan, if the caller asked for counts."`
	Sums    *rules.Sums     `json:"sums,omitempty" doc:"The totals of counts."`
}

// ChangeOf writes a change.
func ChangeOf(c *store.Change) Change {
	w := Change{
		At: writable(c.At), Plan: c.Plan, Task: c.Task, Name: c.Name, Of: c.Of, State: plan.State(c.Status, c.Reason), Status: int(c.Status), Reason: c.Reason,
		Allowed: c.Allowed, Attempt: c.Attempt, Node: c.Node, Detail: c.Detail, Output: c.Output,
	}
	if c.Task.IsZero() {
		w.State, w.Status = c.State.String(), int(c.State)
	}
	return w
}

// Domain is the change that was written.
func (c *Change) Domain() store.Change {
	d := store.Change{
		At: c.At, Plan: c.Plan, Task: c.Task, Name: c.Name, Of: c.Of, Reason: c.Reason, Allowed: c.Allowed, Attempt: c.Attempt, Node: c.Node, Detail: c.Detail,
		Output: c.Output,
	}
	if c.Task.IsZero() {
		d.State = plan.Lifecycle(c.Status)
	} else {
		d.Status = plan.Status(c.Status)
	}
	return d
}

// A Reason is one link of the chain that says why a task does not run.
type Reason struct {
	ID        plan.TaskID `json:"id"`
	Name      string      `json:"name"`
	ItemLabel string      `json:"item_label,omitempty" doc:"The label of an item of a foreach task."`
	State     string      `json:"state"`
	Status    plan.Status `json:"status"`
	Why       string      `json:"why"`
	Do        string      `json:"do,omitempty" doc:"A command that may help. It names this server, or the store that it is for; URI replaces a store that is not shown."`
}

// An Input is a parent's contribution to a task's params.
type Input struct {
	Name   string          `json:"name"`
	Output json.RawMessage `json:"output"`
}

// InputOf writes an input. An output that says nothing is null.
func InputOf(i *plan.Input) Input {
	w := Input{Name: i.Name, Output: i.Output}
	if len(w.Output) == 0 {
		w.Output = json.RawMessage("null")
	}
	return w
}

// Domain is the input that was written.
func (i *Input) Domain() plan.Input { return plan.Input{Name: i.Name, Output: i.Output} }

// A Parent is how a task ended that another one needs.
type Parent struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// ParentOf writes how a parent ended.
func ParentOf(p *plan.Parent) Parent { return Parent(*p) }

// Domain is the parent that was written.
func (p *Parent) Domain() plan.Parent { return plan.Parent(*p) }

// SizeHeader tells how many bytes a result has, -1 if it is null; Content-Length would have to be right.
const SizeHeader = "Sluice-Size"
