package v1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/oste"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

// OsteSpan selects activities by when they were executed.
type OsteSpan struct {
	From time.Time `query:"from" doc:"Only activities whose last try ended then or later."`
	To   time.Time `query:"to" doc:"Only activities whose last try ended before then."`
}

func (s *OsteSpan) has(t *plan.Task) bool {
	return !t.Ended.Before(s.From) && (s.To.IsZero() || t.Ended.Before(s.To))
}

// OsteFailure selects failed activities by how they failed.
type OsteFailure struct {
	Reason []string `query:"reason" doc:"Only activities whose last try failed in one of these ways: the status of an answer, as 404, or timeout, lost, input, output or error; separated by commas, or repeated."`
	Detail string   `query:"detail" maxLength:"200" doc:"Only activities whose Detail has this text, as 503 or a host. Upper and lower case are the same."`
}

const failedActivity = "failed activity"

type finishedAnswer = osteOne[oste.FinishedActivity]

func (a *API) osteFinished() {
	for _, k := range []struct {
		path, id, what string
		statuses       []plan.Status
	}{
		{"/successful-activities/{id}", "oste-get-successful-activity", "successful activity", oste.Successful},
		{"/failed-activities/{id}", "oste-get-failed-activity", failedActivity, oste.Failed},
	} {
		serve(a, osteEndpoint(endpoint{
			method: "GET", path: k.path, id: k.id, summary: "Read a " + k.what, scope: Read, errors: []int{404, 422},
			doc: "With what was sent and what came back on each try.",
		}), func(ctx context.Context, in *OsteTask) (*finishedAnswer, error) {
			return a.getFinished(ctx, in.ID, k.what, k.statuses)
		})
		serve(a, osteEndpoint(endpoint{
			method: "DELETE", path: k.path, id: strings.Replace(k.id, "get", "delete", 1), summary: "Delete a " + k.what, scope: Admin, status: http.StatusNoContent,
			errors: []int{404, 409, 412, 422, 501}, doc: "With its log. No receiver gets it." + osteMatch,
		}), func(ctx context.Context, in *OsteTaskChange) (*struct{}, error) {
			return nil, a.deleteFinished(ctx, in, k.what, k.statuses)
		})
	}
	const newest = "The newest first, by id. A page may have fewer than the limit, or none, and still a next. LogDetails are left out."
	serve(a, osteEndpoint(endpoint{
		method: "GET", path: "/successful-activities", id: "oste-list-successful-activities", summary: "List successful activities", scope: Read, errors: []int{404, 422}, doc: newest,
	}), func(ctx context.Context, in *struct {
		OstePage
		OsteSpan
	}) (*ostePage[oste.FinishedActivity], error) {
		return osteTasks(ctx, a, &in.OstePage, store.TaskQuery{Statuses: oste.Successful, Newest: true}, in.has, oste.FinishedOf)
	})
	serve(a, osteEndpoint(endpoint{
		method: "GET", path: "/failed-activities", id: "oste-list-failed-activities", summary: "List failed activities", scope: Read, errors: []int{404, 422}, doc: newest,
	}), func(ctx context.Context, in *struct {
		OstePage
		OsteSpan
		OsteFailure
	}) (*ostePage[oste.FinishedActivity], error) {
		if err := in.check(); err != nil {
			return nil, err
		}
		keep := func(t *plan.Task) bool { return in.OsteSpan.has(t) && in.OsteFailure.has(t) }
		return osteTasks(ctx, a, &in.OstePage, store.TaskQuery{Statuses: oste.Failed, Newest: true}, keep, oste.FinishedOf)
	})
	serve(a, osteEndpoint(endpoint{
		method: "PATCH", path: "/failed-activities/{id}", id: "oste-change-failed-activity", summary: "Change a failed activity, and queue it again", scope: Operate, errors: []int{404, 409, 412, 413, 422},
		doc: "What is left out stays. Its tries count from 1 again. It needs the scope submit as well." + osteMatch,
	}), func(ctx context.Context, in *struct {
		OsteTaskChange
		Body FailedChange
	}) (*activityAnswer, error) {
		if in.Body.empty() {
			return nil, api.InvalidAt("body", "it changes nothing; give Parameter, UriPattern or Retries, or queue it again as it is: POST to its /retry")
		}
		return a.retryFailed(ctx, &retryOfFailed{in.OsteTaskChange, &in.Body})
	})
	serve(a, osteEndpoint(endpoint{
		method: "POST", path: "/failed-activities/{id}/retry", id: "oste-retry-failed-activity", summary: "Queue a failed activity again", scope: Operate, errors: []int{404, 409, 412, 413, 422},
		doc: "Its tries count from 1 again. The body changes it before; a change needs the scope submit as well." + osteMatch,
	}), a.retryFailed)
	serve(a, osteEndpoint(endpoint{
		method: "POST", path: "/failed-activities/retry", id: "oste-retry-failed-activities", summary: "Queue failed activities again, by a filter", scope: Operate, errors: []int{404, 409, 422},
		doc:      "Makes one portion, of at most 1,000: continue with its next as after, until there is none. A request without a condition is invalid, and so is one with a body. The rates of their queues hold.",
		bodyless: "to change activities as they are queued again, ask for each: PATCH " + api.OSTERoot + "/failed-activities/ID",
	}), a.retryAllFailed)
}

// check refuses what is no way to fail.
func (f *OsteFailure) check() error {
	for _, word := range f.Reason {
		if err := oste.CheckWay(word); err != nil {
			return api.InvalidAt("query.reason", "%v", err)
		}
	}
	return nil
}

// has reports whether a failed task failed in one of the chosen ways.
func (f *OsteFailure) has(t *plan.Task) bool {
	return (len(f.Reason) == 0 || slices.Contains(f.Reason, oste.Way(t))) && contains(t.Detail, f.Detail)
}

// mostLog is how many entries of a log the answer about an activity has at most: the newest.
const mostLog = 1000

func (a *API) getFinished(ctx context.Context, id plan.TaskID, what string, statuses []plan.Status) (*finishedAnswer, error) {
	t, q, err := a.findActivity(ctx, a.st, id, what, statuses)
	if err != nil {
		return nil, err
	}
	log, _, err := a.st.Log(ctx, id, 0, mostLog)
	if err != nil {
		return nil, err
	}
	out := &finishedAnswer{ETag: api.TaskTag(t.Modified), Body: oste.FinishedOf(&t, q.Name)}
	out.Body.LogDetails = oste.Tries(log, &t, out.Body.Parameter)
	return out, nil
}

// FailedChange is what a failed activity has from its next try on. Fields that are left out stay.
type FailedChange struct {
	ObjectChange
	Retries *int `json:"Retries,omitempty" minimum:"0" maximum:"2147483646" doc:"How many more tries it has after the next one fails."`
}

func (c *FailedChange) empty() bool {
	return c == nil || c.Parameter == nil && c.UriPattern == nil && c.Retries == nil
}

// deleteFinished deletes a finished activity, as a batch of it alone that was received at once. So no
// retry and no other batch takes it meanwhile.
func (a *API) deleteFinished(ctx context.Context, change *OsteTaskChange, what string, statuses []plan.Status) error {
	st, ok := hiding.Of(a.st).(store.Roller)
	if !ok {
		return api.NewProblem(http.StatusNotImplemented, api.CodeUnsupported, "this store does not delete tasks one by one")
	}
	id := change.ID
	t, _, err := a.findActivity(ctx, a.st, id, what, statuses)
	if err == nil {
		err = change.check(&t)
	}
	if err != nil {
		return err
	}
	auth.Changed(ctx, id.String())
	batch := plan.NewID(time.Now())
	in, err := st.BeginBatch(ctx, batch, t.Queue, []plan.Task{t})
	if err == nil && len(in) == 0 {
		err = api.NewProblem(http.StatusConflict, "conflict", "%s %s is being handed over or queued again, or an unfinished task needs it: look at it again", what, id)
	}
	if err != nil {
		return err
	}
	return st.EndBatch(ctx, batch, true)
}

// osteInstead says what to do in place of a request that finished activities do not take; "": it is
// about something else.
func osteInstead(r *http.Request) string {
	path, _ := strings.CutPrefix(r.URL.Path, api.OSTERoot)
	switch {
	case strings.HasPrefix(path, "/failed-activities/") && r.Method == http.MethodPut:
		return "; a failed activity is changed by PATCH, which queues it again"
	case strings.HasPrefix(path, "/failed-activities"), strings.HasPrefix(path, "/successful-activities"):
		return "; activities that have ended come about by execution: make one by POST to " + api.OSTERoot + "/point-in-time-activities"
	}
	return ""
}

type retryOfFailed struct {
	OsteTaskChange
	Body *FailedChange
}

func (a *API) retryFailed(ctx context.Context, in *retryOfFailed) (*activityAnswer, error) {
	auth.Changed(ctx, in.ID.String())
	t, q, err := a.findActivity(ctx, hiding.Of(a.st), in.ID, failedActivity, oste.Failed)
	if err == nil {
		err = in.check(&t)
	}
	if err != nil {
		return nil, err
	}
	ask := rules.Ask{Tasks: []plan.TaskID{t.ID}}
	if c := in.Body; !c.empty() {
		if !may(ctx, Submit) {
			return nil, api.NewProblem(http.StatusForbidden, api.CodeForbidden, "a change of what activity %s does needs the scope submit", t.ID)
		}
		next, err := c.resubmitted(q, &t)
		if err != nil {
			return nil, misplaced(err)
		}
		call := c.apply(oste.Call{})
		if err := a.checkCall(ctx, &next, &call); err != nil {
			return nil, err
		}
		ask.Replace = []plan.Task{next}
	}
	if _, err := a.st.Retry(ctx, plan.PlanID{}, ask); err != nil {
		return nil, err
	}
	if t, err = a.st.Task(ctx, t.ID); err != nil && !errors.Is(err, plan.ErrTooMuchOutput) {
		return nil, err
	}
	return answerWaiting(&t, q), nil
}

// resubmitted returns a failed task as it is submitted again.
func (c *FailedChange) resubmitted(q *plan.Queue, t *plan.Task) (plan.Task, error) {
	is := oste.PointInTimeOf(t, q.Name)
	is.Call = c.apply(is.Call)
	if c.Retries != nil {
		is.Retries = c.Retries
	}
	params, err := is.Params(t.Params)
	if err != nil {
		return plan.Task{}, err
	}
	object := t.Subject
	if c.Parameter != nil {
		if object, err = oste.Object(q, is.Parameter); err != nil {
			return plan.Task{}, err
		}
	}
	next := plan.Task{ID: t.ID, Name: t.Name, Queue: t.Queue, Definition: t.Definition, Status: plan.Held, Params: params}
	next.Subject, next.Retry = object, is.Retry(q).Retry()
	return next, nil
}

func (a *API) retryAllFailed(ctx context.Context, in *struct {
	OsteScope
	Object string `query:"object" doc:"Only about that object."`
	OsteSpan
	OsteFailure
	Check bool   `query:"check" doc:"Only count; change nothing."`
	After string `query:"after" doc:"next of the answer before."`
}) (*api.BulkAnswer, error) {
	if in.OsteScope == (OsteScope{}) && in.Object == "" && in.OsteSpan == (OsteSpan{}) && len(in.Reason) == 0 && in.Detail == "" {
		return nil, api.InvalidAt("query", "it names nothing, and would take every failed activity; give company, solution, type, object, reason, detail, from or to")
	}
	types, err := a.typesIn(ctx, &in.OsteScope)
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	o := &bulk.Order{
		What: rules.BulkRetry, Check: in.Check, After: in.After, Filter: rules.TaskFilter{Subject: in.Object, States: failing},
		Keep: func(t *plan.Task) bool {
			return queueIn(types, t.Queue) != nil && in.OsteSpan.has(t) && in.OsteFailure.has(t)
		},
		Changed: func(id plan.TaskID) { auth.Changed(ctx, id.String()) },
	}
	if len(types) == 1 {
		o.Filter.Queue = types[0].ID
	}
	auth.Chosen(ctx, fmt.Sprintf("company=%q solution=%q type=%q object=%q reason=%q detail=%q from=%v to=%v", in.Company, in.Solution, in.Type, in.Object, in.Reason, in.Detail, in.From, in.To))
	done, err := bulk.Do(ctx, a.st, o)
	if err == nil && done.Changed == 0 {
		auth.Unchanged(ctx)
	}
	if wrong, ok := errors.AsType[*rules.FilterError](err); ok {
		err = api.InvalidAt("query."+cmp.Or(map[string]string{"subject": "object"}[wrong.Condition], wrong.Condition), "%v", err)
	}
	if err != nil {
		return nil, err
	}
	return &api.BulkAnswer{Matched: done.Matched, Changed: done.Changed, LeftOut: done.LeftOut, Next: done.Next}, nil
}
