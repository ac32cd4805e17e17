package v1

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/oste"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

// OsteScope selects activity types. A field that is left out selects all.
type OsteScope struct {
	Company  string `query:"company" doc:"Only of that company, by its id."`
	Solution string `query:"solution" doc:"Only of that solution, by its id."`
	Type     string `query:"type" doc:"Only of that activity type, by its id."`
}

// typesIn returns the queues that the selected types are, by name. An unknown company, solution or type
// is not found.
func (a *API) typesIn(ctx context.Context, s *OsteScope) (types []*plan.Queue, err error) {
	groups, err := a.st.Groups(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range []struct{ id, what string }{{s.Company, "company"}, {s.Solution, "solution"}} {
		is := func(g plan.Group) bool {
			_, company := oste.CompanyOf(&g)
			_, solution := oste.SolutionOf(&g)
			return g.Name == c.id && (company && c.what == "company" || solution && c.what == "solution")
		}
		if c.id != "" && !slices.ContainsFunc(groups, is) {
			return nil, placed(notThere(c.what, c.id), "query."+c.what)
		}
	}
	queues, err := a.st.Queues(ctx)
	if err != nil {
		return nil, err
	}
	known := false
	for i := range queues {
		t, ok := oste.TypeOf(&queues[i])
		known = known || ok && t.ID == s.Type
		if ok && !slices.ContainsFunc([]string{s.Company, s.Solution, s.Type}, func(id string) bool { return id != "" && !inScope(&t, id) }) {
			types = append(types, &queues[i])
		}
	}
	if s.Type != "" && !known {
		return nil, placed(notThere("activity type", s.Type), "query.type")
	}
	return types, nil
}

// queueIn returns the queue with that id among those of types; nil: it is not there.
func queueIn(types []*plan.Queue, id plan.QueueID) *plan.Queue {
	if i := slices.IndexFunc(types, func(q *plan.Queue) bool { return q.ID == id }); i >= 0 {
		return types[i]
	}
	return nil
}

// OstePage is the part of a query that chooses a page of activities.
type OstePage struct {
	OsteScope
	Object string      `query:"object" doc:"Only about that object: the values of the fields that ObjectIdRef names, with commas between them."`
	After  plan.TaskID `query:"after" doc:"The id after which the list continues: next of the page before."`
	Limit  int         `query:"limit" minimum:"0" maximum:"5000" default:"100"`
}

// osteTasks lists tasks of types with their params, and writes each. keep may be nil.
func osteTasks[T any](ctx context.Context, a *API, in *OstePage, q store.TaskQuery, keep func(*plan.Task) bool, write func(*plan.Task, string) T) (*ostePage[T], error) {
	types, err := a.typesIn(ctx, &in.OsteScope)
	out := &ostePage[T]{Items: []T{}}
	if err != nil || len(types) == 0 {
		return out, err
	}
	if err := rules.CheckSubject(in.Object); err != nil {
		return nil, api.InvalidAt("query.object", "%v", err)
	}
	byQueue := make(map[plan.QueueID]*plan.Queue, len(types))
	for _, t := range types {
		byQueue[t.ID] = t
	}
	q.NoPlan, q.Subject, q.After = true, in.Object, in.After
	if len(types) == 1 {
		q.Queue = types[0].ID
	}
	most := limit(in.Limit)
	listed, next, err := (&page{left: most, next: 1000, atOnce: 1000, search: true}).tasks(ctx, &byID{a, q}, func(t *plan.Task) bool {
		return byQueue[t.Queue] != nil && (keep == nil || keep(t))
	})
	if err != nil {
		return nil, err
	}
	size := newPage(tasksAtOnce, tasksAtOnce, most)
	for some := range slices.Chunk(listed, tasksAtOnce) {
		params, err := store.TasksByID(ctx, a.st, store.TaskQuery{Params: true}, api.Each(some, func(t *plan.Task) plan.TaskID { return t.ID }))
		if err != nil {
			return nil, err
		}
		for i := range some {
			t := &some[i]
			at := slices.IndexFunc(params, func(p plan.Task) bool { return p.ID == t.ID })
			if at < 0 { // deleted since
				continue
			}
			t.Params = params[at].Params
			out.Items = append(out.Items, write(t, byQueue[t.Queue].Name))
			if size.add(len(t.Params)) && t.ID != listed[len(listed)-1].ID {
				next = t.ID
				break
			}
		}
		if size.left == 0 {
			break
		}
	}
	if !next.IsZero() {
		out.Next = next.String()
	}
	return out, nil
}

// OsteTask is the part of a path that names an activity that is a task.
type OsteTask struct {
	ID plan.TaskID `path:"id"`
}

// OsteTaskChange is what each request to change one has.
type OsteTaskChange struct {
	OsteTask
	IfMatch IfMatch `header:"If-Match"`
}

// check refuses a request whose If-Match is that of another version of an activity. Activities that wait are
// changed with their version, which the store compares.
func (in *OsteTaskChange) check(t *plan.Task) error {
	if n := in.IfMatch.edition(); n == 0 || n == t.Modified.UnixNano() {
		return nil
	}
	return api.NewProblem(http.StatusPreconditionFailed, api.CodePrecondition, "activity %s is not as If-Match has it: it was changed since, or never had that version; look at it again", t.ID)
}

// findActivity returns a task of an activity type, with its params, that has one of some statuses, and
// the queue of its type. what names for people what the statuses are.
func (a *API) findActivity(ctx context.Context, st store.Store, id plan.TaskID, what string, statuses []plan.Status) (plan.Task, *plan.Queue, error) {
	types, err := a.typesIn(ctx, &OsteScope{})
	if err != nil {
		return plan.Task{}, nil, err
	}
	t, err := st.Task(ctx, id)
	if err != nil && !errors.Is(err, plan.ErrNotFound) && !errors.Is(err, plan.ErrTooMuchOutput) {
		return t, nil, err
	}
	q := queueIn(types, t.Queue)
	if errors.Is(err, plan.ErrNotFound) || q == nil || !rules.Selected(t.Status, statuses) {
		return t, nil, notThere(what, id.String())
	}
	return t, q, nil
}

const pointInTime = "point-in-time activity"

type activityAnswer = osteOne[oste.WaitingActivity]

func answerWaiting(t *plan.Task, q *plan.Queue) *activityAnswer {
	return &activityAnswer{ETag: api.TaskTag(t.Modified), Body: oste.WaitingOf(t, q.Name)}
}

func (a *API) osteActivities() {
	const path, one = "/point-in-time-activities", "/point-in-time-activities/{id}"
	serve(a, osteEndpoint(endpoint{
		method: "GET", path: path, id: "oste-list-point-in-time-activities", summary: "List activities that have not ended", scope: Read, errors: []int{404, 422},
		doc: "By id, which is the order of their first dates; those that were made with an Idempotency-Key come first. A page may have fewer than the limit, or none, and still a next.",
	}), func(ctx context.Context, in *struct{ OstePage }) (*ostePage[oste.WaitingActivity], error) {
		return osteTasks(ctx, a, &in.OstePage, store.TaskQuery{Statuses: oste.Waiting}, nil, oste.WaitingOf)
	})
	serve(a, osteEndpoint(endpoint{
		method: "POST", path: path, id: "oste-create-point-in-time-activity", summary: "Make an activity", scope: Submit, status: http.StatusCreated, errors: []int{404, 409, 413, 422},
	}), a.createActivity)
	serve(a, osteEndpoint(endpoint{
		method: "PATCH", path: path, id: "oste-change-object", summary: "Change all that waits about an object", scope: Submit, errors: []int{404, 409, 413, 422, 501},
		doc: "Point-in-time and recurring activities. Activities that a node has claimed are left out. A change that one of them cannot take changes none.",
	}), a.changeObject)
	serve(a, osteEndpoint(endpoint{method: "GET", path: one, id: "oste-get-point-in-time-activity", summary: "Read an activity that has not ended", scope: Read, errors: []int{404, 422}}),
		func(ctx context.Context, in *OsteTask) (*activityAnswer, error) {
			t, q, err := a.findActivity(ctx, a.st, in.ID, pointInTime, oste.Waiting)
			if err != nil {
				return nil, err
			}
			return answerWaiting(&t, q), nil
		})
	const claimed = " An activity that a node has claimed is a conflict."
	serve(a, osteEndpoint(endpoint{
		method: "PUT", path: one, id: "oste-replace-point-in-time-activity", summary: "Replace an activity", scope: Submit, errors: []int{404, 409, 412, 413, 422},
		doc: "Its type stays." + claimed + osteMatch,
	}), func(ctx context.Context, in *struct {
		OsteTaskChange
		Body oste.PointInTimeActivity
	}) (*activityAnswer, error) {
		return a.changeActivity(ctx, &in.OsteTaskChange, func(oste.PointInTimeActivity) (oste.PointInTimeActivity, error) {
			return in.Body, checkDate(in.Body.Date, true)
		})
	})
	serve(a, osteEndpoint(endpoint{
		method: "PATCH", path: one, id: "oste-change-point-in-time-activity", summary: "Change an activity", scope: Submit, errors: []int{404, 409, 412, 413, 422},
		doc: "What is left out stays, and null takes a field away." + claimed + osteMatch,
	}), func(ctx context.Context, in *struct {
		OsteTaskChange
		Body merge[oste.PointInTimeActivity]
	}) (*activityAnswer, error) {
		return a.changeActivity(ctx, &in.OsteTaskChange, func(is oste.PointInTimeActivity) (oste.PointInTimeActivity, error) {
			want, err := in.Body.into(is)
			if _, said := in.Body.fields["Date"]; said && want.Date.IsZero() {
				want.Date = time.Unix(0, 0).UTC() // null: now
			}
			if err == nil {
				err = checkDate(want.Date, false)
			}
			return want, err
		})
	})
	serve(a, osteEndpoint(endpoint{
		method: "DELETE", path: one, id: "oste-delete-point-in-time-activity", summary: "Cancel an activity", scope: Operate, status: http.StatusNoContent, errors: []int{404, 409, 412, 422},
		doc: "A node stops one that runs." + osteMatch,
	}), func(ctx context.Context, in *OsteTaskChange) (*struct{}, error) {
		t, _, err := a.findActivity(ctx, a.st, in.ID, pointInTime, oste.Waiting)
		if err == nil {
			err = in.check(&t)
		}
		if err != nil {
			return nil, err
		}
		auth.Changed(ctx, in.ID.String())
		return nil, a.st.CancelTask(ctx, in.ID)
	})
}

// checkDate refuses a date that cannot be written, and one that is missing if it is needed.
func checkDate(date time.Time, needed bool) error {
	if needed && date.IsZero() {
		return api.InvalidAt("body.Date", "there is none; give the instant, as 2027-12-24T18:00:00Z")
	}
	if err := api.CheckTime(date); err != nil {
		return api.InvalidAt("body.Date", "%v", err)
	}
	return nil
}

// checkCall asks the plugin of a type whether a task can have these params.
func (a *API) checkCall(ctx context.Context, t *plan.Task, c *oste.Call) error {
	err := a.checkRunnable(ctx, []plan.Task{*t}, func(int, string) string { return "body." + blamed(c) })
	if p, ok := errors.AsType[*api.Problem](err); ok {
		p.Detail = ofAddress(p.Detail)
		for i := range p.Fields {
			p.Fields[i].Message = ofAddress(p.Fields[i].Message)
		}
	}
	return err
}

// blamed returns the field of a request that a problem of a call is at: the UriPattern if it has one,
// which is what is wrong then, or what does not suit.
func blamed(c *oste.Call) string {
	if c.UriPattern != "" {
		return "UriPattern"
	}
	return "Parameter"
}

func (a *API) createActivity(ctx context.Context, in *struct {
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"Any text of the caller. The same request, repeated with the key, makes nothing again."`
	Body oste.PointInTimeActivity
}) (*activityAnswer, error) {
	if err := checkDate(in.Body.Date, true); err != nil {
		return nil, err
	}
	if in.Body.ID != "" {
		return nil, api.InvalidAt("body.id", "the server gives it; send an Idempotency-Key to repeat a request")
	}
	q, _, err := a.findType(ctx, in.Body.ActivityType)
	if err != nil {
		return nil, placed(err, "body.ActivityType")
	}
	t, err := in.Body.Task(&q, in.Key)
	if err != nil {
		return nil, misplaced(err)
	}
	if err := a.checkCall(ctx, &t, &in.Body.Call); err != nil {
		return nil, err
	}
	auth.Changed(ctx, t.ID.String())
	if err := a.st.AddTasks(ctx, plan.PlanID{}, []plan.Task{t}); err != nil {
		if errors.Is(err, plan.ErrExists) {
			err = repeatedKey(in.Key)
		}
		return nil, err
	}
	if gone, err := a.cancelLate(ctx, &q); err != nil {
		return nil, err
	} else if gone {
		return nil, typeWasDeleted(in.Body.ActivityType)
	}
	if t, err = a.st.Task(ctx, t.ID); err != nil && !errors.Is(err, plan.ErrTooMuchOutput) {
		return nil, err
	}
	now, err := a.st.Now(ctx)
	if err == nil && !in.Body.Repeats(&t, now) {
		err = repeatedKey(in.Key)
	}
	if err != nil {
		return nil, err
	}
	out := answerWaiting(&t, &q)
	out.Location = api.OSTERoot + "/point-in-time-activities/" + t.ID.String()
	return out, nil
}

func repeatedKey(key string) error {
	p := api.NewProblem(http.StatusUnprocessableEntity, api.CodeRepeated, "the idempotency key %q was used for another activity; repeat that request, or use another key", key)
	p.Fields = []api.Field{{Message: p.Detail, Location: "header.Idempotency-Key"}}
	return p
}

// mostTries is how often a change is made again that somebody else's change of the same activity refused.
const mostTries = 3

// changeActivity changes a task that waits. It works on the store itself, because the new params are
// made of the present ones.
func (a *API) changeActivity(ctx context.Context, in *OsteTaskChange, change func(oste.PointInTimeActivity) (oste.PointInTimeActivity, error)) (*activityAnswer, error) {
	auth.Changed(ctx, in.ID.String())
	for try := 1; ; try++ {
		t, q, err := a.findActivity(ctx, hiding.Of(a.st), in.ID, pointInTime, oste.Waiting)
		if err == nil {
			err = rules.CheckSetTask(&t, false)
		}
		if err != nil {
			return nil, err
		}
		want, err := change(oste.PointInTimeOf(&t, q.Name))
		if err != nil {
			return nil, err
		}
		c, err := want.Change(q, &t)
		if err != nil {
			return nil, misplaced(err)
		}
		c.Modified = t.Modified
		n := in.IfMatch.edition()
		if n != 0 {
			c.Modified = time.Unix(0, n).UTC()
		}
		next := t
		next.Params = c.Params
		if err := a.checkCall(ctx, &next, &want.Call); err != nil {
			return nil, err
		}
		switch err := a.st.SetTask(ctx, t.ID, c); {
		case err == nil:
			if t, err = a.st.Task(ctx, t.ID); err != nil {
				return nil, err
			}
			return answerWaiting(&t, q), nil
		case !errors.Is(err, plan.ErrConflict):
			return nil, err
		case n != 0:
			if t, unread := a.st.Task(ctx, t.ID); unread == nil && rules.CheckSetTask(&t, false) == nil {
				err = api.NewProblem(http.StatusPreconditionFailed, api.CodePrecondition, "%v", err)
			}
			return nil, err
		case try == mostTries:
			return nil, err
		}
	}
}

// ObjectChange is a change of activities, such as of all that wait about an object. Fields that are
// left out stay.
type ObjectChange struct {
	Parameter  json.RawMessage `json:"Parameter,omitempty" doc:"An object in place of its own. In a change of all that waits about an object, it has to be about that object."`
	UriPattern *string         `json:"UriPattern,omitempty" maxLength:"8192" doc:"Its address in place of that of its type; an empty text: that of its type."`
}

// ObjectAnswer says how many activities were changed.
type ObjectAnswer struct {
	PointInTime int `json:"PointInTime" doc:"How many point-in-time activities were changed."`
	Recurring   int `json:"Recurring" doc:"How many recurring activities were changed."`
	LeftOut     int `json:"LeftOut" doc:"How many were about to be executed when they were to be changed, and so were not."`
}

// apply returns a call with the change.
func (c *ObjectChange) apply(call oste.Call) oste.Call {
	if c.Parameter != nil {
		call.Parameter = c.Parameter
	}
	if c.UriPattern != nil {
		call.UriPattern = *c.UriPattern
	}
	return call
}

// changed returns a task with the change, and the change of the task.
func (c *ObjectChange) changed(q *plan.Queue, t plan.Task) (plan.Task, rules.TaskChange, error) {
	is := oste.PointInTimeOf(&t, q.Name)
	is.Call, is.Date = c.apply(is.Call), time.Time{}
	change, err := is.Change(q, &t)
	if err == nil && *change.Subject != t.Subject {
		err = &oste.Mistake{Field: "Parameter", Err: errors.New("it is about another object, " + *change.Subject)}
	}
	t.Params, change.Modified = change.Params, t.Modified
	return t, change, misplaced(err)
}

func (a *API) changeObject(ctx context.Context, in *struct {
	OsteScope
	Object string `query:"object" required:"true" minLength:"1" doc:"The values of the fields that ObjectIdRef names, with commas between them."`
	Body   ObjectChange
}) (*ObjectAnswer, error) {
	if in.Body.Parameter == nil && in.Body.UriPattern == nil {
		return nil, api.InvalidAt("body", "it changes nothing; give Parameter or UriPattern")
	}
	if err := rules.CheckSubject(in.Object); err != nil {
		return nil, api.InvalidAt("query.object", "%v", err)
	}
	types, err := a.typesIn(ctx, &in.OsteScope)
	if err != nil {
		return nil, err
	}
	call := in.Body.apply(oste.Call{})
	out := &ObjectAnswer{}
	recurring, err := a.recurringAbout(ctx, types, in.Object, &in.Body)
	if err != nil {
		return nil, err
	}
	for _, write := range []bool{false, true} { // all are checked before one of them changes
		err := a.eachAbout(ctx, types, in.Object, func(q *plan.Queue, t plan.Task) error {
			changed, c, err := in.Body.changed(q, t)
			if err == nil && !write {
				err = a.checkCall(ctx, &changed, &call)
			}
			if err != nil || !write {
				return err
			}
			left, err := a.setAbout(ctx, q, t, &in.Body, c)
			if left {
				out.LeftOut++
			} else if err == nil {
				out.PointInTime++
				auth.Changed(ctx, t.ID.String())
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	set, err := a.setter(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range recurring {
		if _, err := set.Set(ctx, s.Name, 0, s.ScheduleSettings); err != nil {
			return nil, misplacedRecurring(err, &call)
		}
		auth.Changed(ctx, s.ID.String())
		out.Recurring++
	}
	return out, nil
}

// setAbout changes a task that waits, again if somebody else changes it at the same time. left says
// that a node was faster.
func (a *API) setAbout(ctx context.Context, q *plan.Queue, t plan.Task, change *ObjectChange, c rules.TaskChange) (left bool, err error) {
	for try := 1; ; try++ {
		err := a.st.SetTask(ctx, t.ID, c)
		if err == nil || errors.Is(err, plan.ErrNotFound) {
			return err != nil, nil
		}
		if !errors.Is(err, plan.ErrConflict) || try == mostTries {
			return false, err
		}
		if t, err = hiding.Of(a.st).Task(ctx, t.ID); err != nil {
			return errors.Is(err, plan.ErrNotFound), err
		}
		if rules.CheckSetTask(&t, false) != nil {
			return true, nil
		}
		if _, c, err = change.changed(q, t); err != nil {
			return false, err
		}
	}
}

// eachAbout calls do with each task of some types that waits and is about an object, as the store itself
// has it.
func (a *API) eachAbout(ctx context.Context, types []*plan.Queue, object string, do func(*plan.Queue, plan.Task) error) error {
	q := store.TaskQuery{NoPlan: true, Subject: object, Statuses: []plan.Status{plan.Held, plan.Queued}, Params: true, Limit: tasksAtOnce}
	return store.EachTask(ctx, hiding.Of(a.st), q, func(t *plan.Task) error {
		if of := queueIn(types, t.Queue); of != nil {
			return do(of, *t)
		}
		return nil
	})
}

// recurringAbout returns the schedules of tasks about an object, with the change, which their plugin
// accepts.
func (a *API) recurringAbout(ctx context.Context, types []*plan.Queue, object string, change *ObjectChange) (all []plan.Schedule, err error) {
	st, ok := schedule.StoreOf(hiding.Of(a.st))
	if !ok {
		return nil, nil
	}
	found, err := store.AllSchedules(ctx, st.Schedules)
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		is, ok := oste.RecurringOf(&s)
		at := slices.IndexFunc(types, func(q *plan.Queue) bool { return q.Name == is.ActivityType })
		if !ok || at < 0 || s.Task.Subject != object {
			continue
		}
		call := change.apply(oste.Call{})
		is.Call = change.apply(is.Call)
		if err := is.Apply(types[at], &s.ScheduleSettings); err != nil {
			return nil, misplaced(err)
		}
		if s.Task.Subject != object {
			return nil, api.InvalidAt("body.Parameter", "it is about another object, %s", s.Task.Subject)
		}
		if err := a.checkCall(ctx, &plan.Task{Queue: types[at].ID, Params: s.Task.Params}, &call); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
