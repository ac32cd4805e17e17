package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/oste"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

// These routes show groups, queues, schedules and tasks as the resources of the Open Scheduled Task
// Engine, under api.OSTERoot. Package oste owns what is which.

const osteMatch = " With If-Match, only if it is still that of that ETag."

// OsteID is the part of a path that names a company, a solution, a type or a recurring activity.
type OsteID struct {
	ID string `path:"id" minLength:"1"`
}

// OsteChange is what each request to change one of them has.
type OsteChange struct {
	OsteID
	IfMatch IfMatch `header:"If-Match"`
}

// OsteDelete is a request to delete one in which something may wait.
type OsteDelete struct {
	OsteChange
	Cancel bool `query:"cancel" doc:"Cancel first what waits in it. Otherwise it is refused if anything does, with the number."`
}

// ostePage is a page of resources.
type ostePage[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"There are more: ask again with it as after."`
}

// osteOne is a resource.
type osteOne[T any] struct {
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Body     T
}

type ostePut[T any] struct {
	OsteChange
	Body T
}

type ostePatch[T any] struct {
	OsteChange
	Body merge[T]
}

// A merge is the fields of a resource that a PATCH replaces. A field that is null is taken away
// (RFC 7396).
type merge[T any] struct{ fields map[string]json.RawMessage }

// UnmarshalJSON implements json.Unmarshaler. Names of fields may be in upper or lower case, as elsewhere.
func (m *merge[T]) UnmarshalJSON(text []byte) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(text, &given); err != nil {
		return err
	}
	m.fields = map[string]json.RawMessage{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for key, value := range given {
			if strings.EqualFold(key, name) {
				m.fields[name] = value
			}
		}
	}
	return nil
}

// Schema implements huma.SchemaProvider.
func (*merge[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// into returns a resource with these fields.
func (m *merge[T]) into(is T) (now T, err error) {
	text, err := json.Marshal(is)
	if err != nil {
		return now, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return now, err
	}
	maps.Copy(all, m.fields)
	maps.DeleteFunc(all, func(_ string, v json.RawMessage) bool { return v == nil || string(v) == "null" })
	if text, err = json.Marshal(all); err == nil {
		err = json.Unmarshal(text, &now)
	}
	if no, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && no.Field != "" {
		return now, api.InvalidAt("body."+no.Field, "%s%s", no.Value, unfit)
	}
	return now, err
}

// misplaced gives its place in the body to a mistake.
func misplaced(err error) error {
	if m, ok := errors.AsType[*oste.Mistake](err); ok {
		return api.InvalidAt("body."+m.Field, "%v", m.Err)
	}
	return err
}

// paramOfTask is what the plugin http puts before a fault of an address: words that OSTE does not have.
var paramOfTask = regexp.MustCompile(`(with the defaults of queue "[^"]*": )?task "[^"]*": params\.url: `)

// ofAddress returns what the plugin http says of an address, in the words of OSTE.
func ofAddress(fault string) string { return paramOfTask.ReplaceAllString(fault, "") }

func taken(what, id string) error {
	return api.NewProblem(http.StatusConflict, "exists", "%s %q is there already, and says something else; change it with PUT or PATCH", what, id)
}

func notThere(what, id string) error {
	return api.NewProblem(http.StatusNotFound, "not_found", "%s %q is not there", what, id)
}

// osteEndpoint completes an endpoint under api.OSTERoot.
func osteEndpoint(e endpoint) endpoint {
	e.root, e.tag = api.OSTERoot, "oste"
	return e
}

// osteGroup is a kind of resource that is a group.
type osteGroup[T any] struct {
	what, path string
	of         func(*plan.Group) (T, bool)
	apply      func(*T, *plan.Group) error
	// before makes changes elsewhere that go with a change of a group; nil: there are none.
	before func(ctx context.Context, was, is *plan.Group) error
}

func (a *API) osteTypes() {
	serveOsteGroups(a, &osteGroup[oste.Company]{what: "company", path: "/companies", of: oste.CompanyOf, apply: (*oste.Company).Apply})
	serveOsteGroups(a, &osteGroup[oste.Solution]{what: "solution", path: "/solutions", of: oste.SolutionOf, apply: (*oste.Solution).Apply, before: a.keepTypes})
	serveOsteTypes(a)
}

func serveOsteGroups[T any](a *API, k *osteGroup[T]) {
	one := k.path + "/{id}"
	serve(a, osteEndpoint(endpoint{method: "GET", path: k.path, id: "oste-list-" + k.path[1:], summary: "List " + k.path[1:] + ", by id", scope: Read}),
		func(ctx context.Context, _ *struct{}) (*ostePage[T], error) {
			groups, err := a.st.Groups(ctx)
			out := &ostePage[T]{Items: []T{}}
			for i := range groups {
				if r, ok := k.of(&groups[i]); ok {
					out.Items = append(out.Items, r)
				}
			}
			return out, err
		})
	serve(a, osteEndpoint(endpoint{
		method: "POST", path: k.path, id: "oste-create-" + k.what, summary: "Make a " + k.what, scope: Submit, status: http.StatusCreated, errors: []int{404, 409, 422},
		doc: "One that is there with these settings is no error.",
	}), func(ctx context.Context, in *struct{ Body T }) (*osteOne[T], error) {
		return k.create(ctx, a, &in.Body)
	})
	serve(a, osteEndpoint(endpoint{method: "GET", path: one, id: "oste-get-" + k.what, summary: "Read a " + k.what, scope: Read, errors: []int{404}}),
		func(ctx context.Context, in *OsteID) (*osteOne[T], error) {
			_, g, _, err := k.find(ctx, a, in.ID)
			return k.answer(&g), err
		})
	serve(a, osteEndpoint(endpoint{
		method: "PUT", path: one, id: "oste-replace-" + k.what, summary: "Replace a " + k.what, scope: Operate, errors: []int{404, 409, 412, 422},
		doc: "What is left out says nothing." + osteMatch,
	}), func(ctx context.Context, in *ostePut[T]) (*osteOne[T], error) {
		return again(func() (*osteOne[T], error) {
			return k.change(ctx, a, &in.OsteChange, func(T) (T, error) { return in.Body, nil })
		})
	})
	serve(a, osteEndpoint(endpoint{
		method: "PATCH", path: one, id: "oste-change-" + k.what, summary: "Change a " + k.what, scope: Operate, errors: []int{404, 409, 412, 422},
		doc: "What is left out stays, and null takes a field away." + osteMatch,
	}), func(ctx context.Context, in *ostePatch[T]) (*osteOne[T], error) {
		return again(func() (*osteOne[T], error) { return k.change(ctx, a, &in.OsteChange, in.Body.into) })
	})
	serve(a, osteEndpoint(endpoint{
		method: "DELETE", path: one, id: "oste-delete-" + k.what, summary: "Delete a " + k.what, scope: Admin, status: http.StatusNoContent, errors: []int{404, 409, 412, 422, 501},
		doc: "With all that is in it. Its finished activities stay as tasks, without a type." + osteMatch,
	}), func(ctx context.Context, in *OsteDelete) (*struct{}, error) { return nil, k.delete(ctx, a, in) })
}

// find returns all groups, and the one with that id as a group and as a resource.
func (k *osteGroup[T]) find(ctx context.Context, a *API, id string) (groups []plan.Group, g plan.Group, is T, err error) {
	if groups, g, err = a.findGroup(ctx, id); err != nil && !errors.Is(err, plan.ErrNotFound) {
		return nil, g, is, err
	}
	is, ok := k.of(&g)
	if !ok {
		return nil, g, is, notThere(k.what, id)
	}
	return groups, g, is, nil
}

func (k *osteGroup[T]) answer(g *plan.Group) *osteOne[T] {
	is, _ := k.of(g)
	return &osteOne[T]{ETag: api.GroupTag(g), Body: is}
}

func (k *osteGroup[T]) create(ctx context.Context, a *API, body *T) (*osteOne[T], error) {
	g := plan.Group{}
	if err := k.apply(body, &g); err != nil {
		return nil, misplaced(err)
	}
	groups, err := a.st.Groups(ctx)
	if err != nil {
		return nil, err
	}
	if g.Parent != "" && len(rules.GroupsOf(groups, g.Parent)) == 0 {
		return nil, placed(notThere("company", g.Parent), "body.Company")
	}
	if err := a.checkOsteGroup(groups, &plan.Group{}, &g); err != nil {
		return nil, err
	}
	auth.Changed(ctx, g.Name)
	if err := a.st.PutGroup(ctx, plan.Group{}, g); err != nil {
		if errors.Is(err, plan.ErrExists) {
			err = placed(taken(k.what, g.Name), "body.Name")
		}
		return nil, err
	}
	out := k.answer(&g)
	out.Location = api.OSTERoot + k.path + "/" + g.Name
	return out, nil
}

func (k *osteGroup[T]) change(ctx context.Context, a *API, in *OsteChange, change func(T) (T, error)) (*osteOne[T], error) {
	groups, was, is, err := k.find(ctx, a, in.ID)
	if err != nil {
		return nil, err
	}
	auth.Changed(ctx, was.Name)
	want, err := change(is)
	if err != nil {
		return nil, err
	}
	g := was
	if err := k.apply(&want, &g); err != nil {
		return nil, misplaced(err)
	}
	if err := a.checkOsteGroup(groups, &was, &g); err != nil {
		return nil, err
	}
	if !in.IfMatch.has(api.GroupTag(&was)) && !was.Same(&g.GroupSettings) { // else it is asked again, since an answer was lost
		return nil, unlike("group", in.ID)
	}
	if k.before != nil {
		if err := k.before(ctx, &was, &g); err != nil {
			return nil, err
		}
	}
	if err := a.st.PutGroup(ctx, was, g); err != nil {
		return nil, in.IfMatch.unmatched(err, "group", in.ID)
	}
	return k.answer(&g), nil
}

// checkOsteGroup is checkGroup, with the places of a company or a solution.
func (a *API) checkOsteGroup(groups []plan.Group, was, g *plan.Group) error {
	err := a.checkGroup(groups, was, g)
	if err == nil {
		return nil
	}
	p := api.ProblemOf(err)
	for i := range p.Fields {
		f := &p.Fields[i]
		is := f.Location
		if place := map[string]string{"body.parent": "body.Company", "body.success_uri": "body.SuccessUri", "body.dead_letter_uri": "body.DeadLetterUri"}[is]; place != "" {
			f.Location, p.Detail = place, strings.Replace(p.Detail, is+":", place+":", 1)
		}
	}
	return p
}

// keepTypes gives the activity types of a solution its periods, before the solution has them. So a
// request that is repeated completes what one before it began.
func (a *API) keepTypes(ctx context.Context, was, is *plan.Group) error {
	if was.Keep == is.Keep {
		return nil
	}
	queues, err := a.st.Queues(ctx)
	if err != nil {
		return err
	}
	for i := range queues {
		if _, ok := oste.TypeOf(&queues[i]); !ok || queues[i].Group != is.Name {
			continue
		}
		q := queues[i]
		q.Keep = oste.KeepIn(is)
		if err := a.st.ChangeQueue(ctx, queues[i], q); err != nil {
			return err
		}
	}
	return nil
}

func (k *osteGroup[T]) delete(ctx context.Context, a *API, in *OsteDelete) error {
	groups, was, _, err := k.find(ctx, a, in.ID)
	if err != nil {
		return err
	}
	auth.Changed(ctx, was.Name)
	if !in.IfMatch.has(api.GroupTag(&was)) {
		return unlike("group", in.ID)
	}
	queues, err := a.st.Queues(ctx)
	if err != nil {
		return err
	}
	var types, otherQueues []plan.Queue
	var solutions, otherGroups []plan.Group
	for i := range groups {
		if _, ok := oste.SolutionOf(&groups[i]); ok && groups[i].Parent == was.Name {
			solutions = append(solutions, groups[i])
		} else {
			otherGroups = append(otherGroups, groups[i])
		}
	}
	for i := range queues {
		q := &queues[i]
		if t, ok := oste.TypeOf(q); ok && inScope(&t, was.Name) {
			types = append(types, *q)
		} else {
			otherQueues = append(otherQueues, *q)
		}
	}
	doomed := append(solutions, was)
	for i := range doomed { // in which a queue or a group may be that is no resource, and so is not deleted with it
		if err := rules.CheckDeleteGroup(append(doomed[i:i+1:i+1], otherGroups...), otherQueues, &doomed[i]); err != nil {
			return err
		}
	}
	if err := a.deleteTypes(ctx, k.what+" "+in.ID, types, in.Cancel); err != nil {
		return err
	}
	for _, g := range doomed {
		if err := a.st.DeleteGroup(ctx, g); err != nil {
			return in.IfMatch.unmatched(err, "group", in.ID)
		}
	}
	return nil
}

// inScope reports whether a type is the one of an id, or in the company or solution of that id.
func inScope(t *oste.ActivityType, id string) bool {
	return t.ID == id || t.Solution == id || len(t.ID) > len(id) && t.ID[:len(id)+1] == id+"."
}

// deleteTypes deletes the queues of activity types. It refuses to if anything waits in them, unless it is
// to be cancelled first. what names for people what is deleted.
func (a *API) deleteTypes(ctx context.Context, what string, types []plan.Queue, cancel bool) error {
	st, ok := a.st.(store.QueueDeleter)
	if !ok {
		return api.NewProblem(http.StatusNotImplemented, api.CodeUnsupported, "this store does not delete queues")
	}
	if err := a.checkTypes(ctx, types); err != nil {
		return err
	}
	waiting, recurring, err := a.waitingIn(ctx, types, oste.Waiting)
	if err != nil {
		return err
	}
	if n := waiting + len(recurring); n > 0 && !cancel {
		p := api.NewProblem(http.StatusConflict, "conflict", "in %s %d activities wait, %d of them recurring; cancel them first, as with ?cancel=true", what, n, len(recurring))
		p.Fields = []api.Field{{Message: p.Detail, Location: "query.cancel"}}
		return p
	}
	if err := a.checkOwed(ctx, what, types); err != nil {
		return err
	}
	if cancel {
		err := a.checkTried(ctx, what, types)
		if err == nil {
			err = a.cancelIn(ctx, types, recurring)
		}
		if err == nil {
			err = a.checkOwed(ctx, what, types) // which those are that began meanwhile, and were stopped
		}
		if err != nil {
			return err
		}
	}
	for i := range types {
		auth.Changed(ctx, types[i].ID.String())
		if err := st.DeleteQueue(ctx, types[i].ID); err != nil {
			return err
		}
		if _, err := a.cancelLate(ctx, &types[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkTypes refuses a deletion of types that a store would refuse for one of them, before anything changes.
func (a *API) checkTypes(ctx context.Context, types []plan.Queue) error {
	for i := range types {
		var ofPlan *plan.Task
		q := store.TaskQuery{Queue: types[i].ID, Statuses: oste.Waiting, Brief: true, Limit: mostPage}
		err := store.EachTask(ctx, a.st, q, func(t *plan.Task) error {
			if !t.Plan.IsZero() {
				ofPlan = t
			}
			return nil
		})
		if err := cmp.Or(err, rules.CheckDeleteQueue(&types[i], ofPlan, 0)); err != nil {
			return err
		}
	}
	return nil
}

// cancelLate reports whether a type is not there any more, and then cancels what waits in it. A request that
// makes an activity finds its type, adds it, and then asks for that. A deletion asks once the type is gone. So
// one of the two sees the other, and nothing waits without its type.
func (a *API) cancelLate(ctx context.Context, of *plan.Queue) (gone bool, err error) {
	queues, err := a.st.Queues(ctx)
	if err != nil {
		return false, err
	}
	again := false // under the same name, by which recurring activities know it
	for i := range queues {
		if queues[i].ID == of.ID {
			return false, nil
		}
		again = again || queues[i].Name == of.Name
	}
	types := []plan.Queue{*of}
	var recurring []plan.Schedule
	if !again {
		if recurring, err = a.recurringIn(ctx, types); err != nil {
			return true, err
		}
	}
	return true, a.cancelWaiting(ctx, types, recurring)
}

// typeWasDeleted is the answer to a request whose activity was added to a type that was deleted meanwhile.
func typeWasDeleted(id string) error {
	return placed(notThere("activity type", id), "body.ActivityType")
}

// checkOwed refuses a deletion while finished activities of types are still to be handed over: without
// their type nobody would.
func (a *API) checkOwed(ctx context.Context, what string, types []plan.Queue) error {
	owed := 0
	for i := range types {
		n, err := store.OwedOf(ctx, a.st, types[i].ID)
		if err != nil {
			return err
		}
		owed += n
	}
	if owed == 0 {
		return nil
	}
	return api.NewProblem(http.StatusConflict, "conflict", "in %s %s still to be handed over: wait until that is done, or take away SuccessUri and DeadLetterUri of the solution",
		what, map[bool]string{true: "1 finished activity is", false: fmt.Sprintf("%d finished activities are", owed)}[owed == 1])
}

// cancelIn is cancelWaiting for types that are there. It refuses if activities were added meanwhile.
func (a *API) cancelIn(ctx context.Context, types []plan.Queue, recurring []plan.Schedule) error {
	if err := a.cancelWaiting(ctx, types, recurring); err != nil {
		return err
	}
	left, _, err := a.waitingIn(ctx, types, []plan.Status{plan.Held, plan.Queued})
	if err == nil && left > 0 {
		err = api.NewProblem(http.StatusConflict, "conflict", "%d activities were added meanwhile; ask again", left)
	}
	return err
}

// cancelWaiting deletes recurring activities, and cancels what waits in the queues of types. The nodes stop
// what runs.
func (a *API) cancelWaiting(ctx context.Context, types []plan.Queue, recurring []plan.Schedule) error {
	set, err := a.setter(ctx)
	if err != nil {
		return err
	}
	for i := range recurring {
		if err := set.Delete(ctx, recurring[i].Name, 0); err != nil && !errors.Is(err, plan.ErrNotFound) {
			return err
		}
		auth.Changed(ctx, recurring[i].ID.String())
	}
	for i := range types {
		o := bulk.Order{
			What: rules.BulkCancel, Filter: rules.TaskFilter{Queue: types[i].ID},
			Changed: func(id plan.TaskID) { auth.Changed(ctx, id.String()) },
		}
		if _, err := bulk.All(ctx, a.st, o); err != nil {
			return err
		}
	}
	return nil
}

// waitingIn counts the activities with some statuses in queues, and returns the schedules of their tasks.
func (a *API) waitingIn(ctx context.Context, types []plan.Queue, statuses []plan.Status) (n int, recurring []plan.Schedule, err error) {
	for i := range types {
		q := store.TaskQuery{NoPlan: true, Queue: types[i].ID, Statuses: statuses, Brief: true, Limit: mostPage}
		if err := store.EachTask(ctx, a.st, q, func(*plan.Task) error { n++; return nil }); err != nil {
			return 0, nil, err
		}
	}
	recurring, err = a.recurringIn(ctx, types)
	return n, recurring, err
}

// checkTried refuses to cancel activities of types that were tried, if their dead letters are handed over: such an
// activity would be one.
func (a *API) checkTried(ctx context.Context, what string, types []plan.Queue) error {
	groups, err := a.st.Groups(ctx)
	if err != nil {
		return err
	}
	tried := 0
	for _, roll := range rules.Rolls(groups, types) {
		if roll.Limits[plan.Terminated] == 0 {
			continue
		}
		q := store.TaskQuery{NoPlan: true, Queue: roll.Queue.ID, Statuses: oste.Waiting, Began: true, Brief: true, Limit: mostPage}
		if err := store.EachTask(ctx, a.st, q, func(*plan.Task) error { tried++; return nil }); err != nil {
			return err
		}
	}
	if tried == 0 {
		return nil
	}
	return api.NewProblem(http.StatusConflict, "conflict", "in %s activities wait that were tried already, and that are dead letters to be handed over once they are cancelled: %d. "+
		"Wait until they have ended, or take away DeadLetterUri of the solution", what, tried)
}

// recurringIn returns the schedules of tasks of types.
func (a *API) recurringIn(ctx context.Context, types []plan.Queue) (recurring []plan.Schedule, err error) {
	st, ok := schedule.StoreOf(hiding.Of(a.st))
	if !ok || len(types) == 0 {
		return nil, nil
	}
	all, err := store.AllSchedules(ctx, st.Schedules)
	for i := range all {
		t := all[i].Task
		if t != nil && slices.ContainsFunc(types, func(q plan.Queue) bool { return q.Name == t.Queue }) {
			recurring = append(recurring, all[i])
		}
	}
	return recurring, err
}

// findType returns the queue that an activity type is.
func (a *API) findType(ctx context.Context, id string) (plan.Queue, oste.ActivityType, error) {
	queues, err := a.st.Queues(ctx)
	if err != nil {
		return plan.Queue{}, oste.ActivityType{}, err
	}
	for i := range queues {
		if t, ok := oste.TypeOf(&queues[i]); ok && t.ID == id {
			return queues[i], t, nil
		}
	}
	return plan.Queue{}, oste.ActivityType{}, notThere("activity type", id)
}

func serveOsteTypes(a *API) {
	const path, one = "/activity-types", "/activity-types/{id}"
	serve(a, osteEndpoint(endpoint{method: "GET", path: path, id: "oste-list-activity-types", summary: "List activity types, by id", scope: Read, errors: []int{404}}),
		func(ctx context.Context, in *struct{ OsteScope }) (*ostePage[oste.ActivityType], error) {
			types, err := a.typesIn(ctx, &in.OsteScope)
			out := &ostePage[oste.ActivityType]{Items: []oste.ActivityType{}}
			for _, q := range types {
				t, _ := oste.TypeOf(q)
				out.Items = append(out.Items, t)
			}
			return out, err
		})
	serve(a, osteEndpoint(endpoint{
		method: "POST", path: path, id: "oste-create-activity-type", summary: "Make an activity type", scope: Submit, status: http.StatusCreated, errors: []int{404, 409, 422},
		doc: "One that is there and says the same is no error.",
	}), a.createType)
	serve(a, osteEndpoint(endpoint{method: "GET", path: one, id: "oste-get-activity-type", summary: "Read an activity type", scope: Read, errors: []int{404}}),
		func(ctx context.Context, in *OsteID) (*osteOne[oste.ActivityType], error) {
			q, _, err := a.findType(ctx, in.ID)
			return answerType(&q), err
		})
	serve(a, osteEndpoint(endpoint{
		method: "PUT", path: one, id: "oste-replace-activity-type", summary: "Replace an activity type", scope: Submit, errors: []int{404, 409, 412, 422},
		doc: "What is left out says nothing. It counts for each try that begins later, of activities that wait too." + osteMatch,
	}), func(ctx context.Context, in *ostePut[oste.ActivityType]) (*osteOne[oste.ActivityType], error) {
		return again(func() (*osteOne[oste.ActivityType], error) {
			return a.changeType(ctx, &in.OsteChange, func(oste.ActivityType) (oste.ActivityType, error) { return in.Body, nil })
		})
	})
	serve(a, osteEndpoint(endpoint{
		method: "PATCH", path: one, id: "oste-change-activity-type", summary: "Change an activity type", scope: Submit, errors: []int{404, 409, 412, 422},
		doc: "What is left out stays, and null takes a field away. It counts for each try that begins later, of activities that wait too." + osteMatch,
	}), func(ctx context.Context, in *ostePatch[oste.ActivityType]) (*osteOne[oste.ActivityType], error) {
		return again(func() (*osteOne[oste.ActivityType], error) {
			return a.changeType(ctx, &in.OsteChange, in.Body.into)
		})
	})
	serve(a, osteEndpoint(endpoint{
		method: "DELETE", path: one, id: "oste-delete-activity-type", summary: "Delete an activity type", scope: Admin, status: http.StatusNoContent, errors: []int{404, 409, 412, 422, 501},
		doc: "Its finished activities stay as tasks, without a type." + osteMatch,
	}), func(ctx context.Context, in *OsteDelete) (*struct{}, error) {
		q, _, err := a.findType(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		if !in.IfMatch.has(api.VersionOf(&q)) {
			return nil, unlike("activity type", in.ID)
		}
		return nil, a.deleteTypes(ctx, "activity type "+in.ID, []plan.Queue{q}, in.Cancel)
	})
}

func answerType(q *plan.Queue) *osteOne[oste.ActivityType] {
	t, _ := oste.TypeOf(q)
	return &osteOne[oste.ActivityType]{ETag: api.VersionOf(q), Body: t}
}

// checkType asks the plugin of a type about its address, whatever the Parameter will be.
func (a *API) checkType(q *plan.Queue) error {
	if a.c.Check == nil {
		return nil
	}
	for _, p := range a.c.Check(&plan.Spec{Tasks: []plan.TaskSpec{{Name: q.Name, Plugin: q.Plugin, Params: oste.Draft(q)}}}) {
		return api.InvalidAt("body.UriPattern", "%s", ofAddress(p.Message))
	}
	return nil
}

func (a *API) createType(ctx context.Context, in *struct{ Body oste.ActivityType }) (*osteOne[oste.ActivityType], error) {
	q := plan.Queue{Unlimited: true}
	if err := in.Body.Apply(&q); err != nil {
		return nil, misplaced(err)
	}
	groups, err := a.st.Groups(ctx)
	if err != nil {
		return nil, err
	}
	group := rules.GroupsOf(groups, q.Group)
	if len(group) == 0 {
		return nil, placed(notThere("solution", q.Group), "body.Solution")
	}
	q.Keep = oste.KeepIn(group[0])
	if err := a.checkType(&q); err != nil {
		return nil, err
	}
	now, err := a.st.Now(ctx)
	if err != nil {
		return nil, err
	}
	q.ID.ID = plan.NewID(now)
	made, err := a.st.CreateQueue(ctx, q)
	if errors.Is(err, plan.ErrExists) {
		var is oste.ActivityType
		want, _ := oste.TypeOf(&q)
		made, is, err = a.findType(ctx, q.Name)
		if errors.Is(err, plan.ErrNotFound) || err == nil && !reflect.DeepEqual(is, want) { // as a queue of another plugin
			err = placed(taken("activity type", q.Name), "body.Name")
		}
	}
	if err != nil {
		return nil, err
	}
	auth.Changed(ctx, made.ID.String())
	out := answerType(&made)
	out.Location = api.OSTERoot + "/activity-types/" + made.Name
	return out, nil
}

func (a *API) changeType(ctx context.Context, in *OsteChange, change func(oste.ActivityType) (oste.ActivityType, error)) (*osteOne[oste.ActivityType], error) {
	was, is, err := a.findType(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	auth.Changed(ctx, was.ID.String())
	want, err := change(is)
	if err != nil {
		return nil, err
	}
	q := was
	if err := cmp.Or(want.Apply(&q), a.checkType(&q)); err != nil {
		return nil, misplaced(err)
	}
	if !in.IfMatch.has(api.VersionOf(&was)) && !q.SameSettings(&was) {
		return nil, unlike("activity type", in.ID)
	}
	if err := a.st.ChangeQueue(ctx, was, q); err != nil {
		return nil, in.IfMatch.unmatched(err, "activity type", in.ID)
	}
	return answerType(&q), nil
}
