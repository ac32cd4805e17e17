package v1

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/oste"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// RecurringAnswer is a recurring activity as it is shown.
type RecurringAnswer struct {
	oste.RecurringActivity
	Object string    `json:"Object,omitempty" doc:"What it is about: the fields of Parameter that ObjectIdRef names, with commas between them."`
	Next   time.Time `json:"Next,omitzero" doc:"The next recurrence; left out if there is none, or while its schedule is paused."`
	Paused bool      `json:"Paused,omitempty" doc:"Its schedule is paused."`
}

type recurringAnswer = osteOne[RecurringAnswer]

func answerRecurring(s *plan.Schedule) *recurringAnswer {
	is, _ := oste.RecurringOf(s)
	return &recurringAnswer{ETag: api.EditionTag(s.Edition()), Body: RecurringAnswer{is, s.Task.Subject, s.Next, s.Paused != nil}}
}

func (a *API) osteRecurring() {
	const path, one = "/recurring-activities", "/recurring-activities/{id}"
	serve(a, osteEndpoint(endpoint{method: "GET", path: path, id: "oste-list-recurring-activities", summary: "List recurring activities, by id", scope: Read, errors: []int{404, 422, 501}}), a.listRecurring)
	serve(a, osteEndpoint(endpoint{
		method: "POST", path: path, id: "oste-create-recurring-activity", summary: "Make a recurring activity", scope: Submit, status: http.StatusCreated, errors: []int{404, 409, 413, 422, 501},
		doc: "Its first recurrence is after now. Each recurrence becomes a point-in-time activity, whether the one before has ended or not.",
	}), a.createRecurring)
	serve(a, osteEndpoint(endpoint{method: "GET", path: one, id: "oste-get-recurring-activity", summary: "Read a recurring activity", scope: Read, errors: []int{404, 501}}),
		func(ctx context.Context, in *OsteID) (*recurringAnswer, error) {
			s, _, _, err := a.findRecurring(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			return answerRecurring(&s), nil
		})
	serve(a, osteEndpoint(endpoint{
		method: "PUT", path: one, id: "oste-replace-recurring-activity", summary: "Replace a recurring activity", scope: Submit, errors: []int{404, 409, 412, 413, 422, 501},
		doc: "Recurrences that have come stay as they are." + osteMatch,
	}), func(ctx context.Context, in *ostePut[oste.RecurringActivity]) (*recurringAnswer, error) {
		return a.changeRecurring(ctx, &in.OsteChange, func(oste.RecurringActivity) (oste.RecurringActivity, error) { return in.Body, nil })
	})
	serve(a, osteEndpoint(endpoint{
		method: "PATCH", path: one, id: "oste-change-recurring-activity", summary: "Change a recurring activity", scope: Submit, errors: []int{404, 409, 412, 413, 422, 501},
		doc: "What is left out stays, and null takes a field away." + osteMatch,
	}), func(ctx context.Context, in *ostePatch[oste.RecurringActivity]) (*recurringAnswer, error) {
		return a.changeRecurring(ctx, &in.OsteChange, in.Body.into)
	})
	serve(a, osteEndpoint(endpoint{
		method: "DELETE", path: one, id: "oste-delete-recurring-activity", summary: "Delete a recurring activity", scope: Admin, status: http.StatusNoContent, errors: []int{404, 412, 501},
		doc: "Activities that it made stay." + osteMatch,
	}), func(ctx context.Context, in *OsteChange) (*struct{}, error) {
		s, _, set, err := a.findRecurring(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		auth.Changed(ctx, s.ID.String())
		return nil, unmatched(set.Delete(ctx, s.Name, in.IfMatch.edition()))
	})
}

// findRecurring returns the schedule that a recurring activity is, the queues of all types, and a setter.
func (a *API) findRecurring(ctx context.Context, id string) (s plan.Schedule, types []*plan.Queue, set *schedule.Setter, err error) {
	if set, err = a.setter(ctx); err != nil {
		return s, nil, nil, err
	}
	if types, err = a.typesIn(ctx, &OsteScope{}); err != nil {
		return s, nil, nil, err
	}
	if s, err = schedule.Find(ctx, set.Store, id); err != nil && !errors.Is(err, plan.ErrNotFound) {
		return s, nil, nil, err
	}
	if is, ok := oste.RecurringOf(&s); err != nil || !ok || typeNamed(types, is.ActivityType) == nil {
		return s, nil, nil, notThere("recurring activity", id)
	}
	return s, types, set, nil
}

// typeNamed returns the queue of that name among those of types; nil: it is not there.
func typeNamed(types []*plan.Queue, name string) *plan.Queue {
	if i := slices.IndexFunc(types, func(q *plan.Queue) bool { return q.Name == name }); i >= 0 {
		return types[i]
	}
	return nil
}

func (a *API) listRecurring(ctx context.Context, in *struct {
	OsteScope
	Object string `query:"object" doc:"Only about that object."`
	After  string `query:"after" doc:"The id after which the list continues: next of the page before."`
	Limit  int    `query:"limit" minimum:"0" maximum:"5000" default:"100"`
}) (*ostePage[RecurringAnswer], error) {
	set, err := a.setter(ctx)
	if err != nil {
		return nil, err
	}
	types, err := a.typesIn(ctx, &in.OsteScope)
	if err != nil {
		return nil, err
	}
	out, most := &ostePage[RecurringAnswer]{Items: []RecurringAnswer{}}, limit(in.Limit)
	q := store.ScheduleQuery{After: in.After, Limit: 1000}
	for looked := 0; ; looked += q.Limit {
		found, err := set.Store.Schedules(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range found {
			is, ok := oste.RecurringOf(&found[i])
			if !ok || typeNamed(types, is.ActivityType) == nil || in.Object != "" && found[i].Task.Subject != in.Object {
				continue
			}
			if len(out.Items) == most {
				out.Next = out.Items[most-1].ID
				return out, nil
			}
			out.Items = append(out.Items, answerRecurring(&found[i]).Body)
		}
		if len(found) < q.Limit {
			return out, nil
		}
		if q.After = found[len(found)-1].Name; looked >= mostLooked {
			out.Next = q.After
			return out, nil
		}
	}
}

func (a *API) createRecurring(ctx context.Context, in *struct {
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"Any text of the caller. The same request, repeated with the key, makes nothing again."`
	Body oste.RecurringActivity
}) (*recurringAnswer, error) {
	set, err := a.setter(ctx)
	if err != nil {
		return nil, err
	}
	if in.Body.ID != "" {
		return nil, api.InvalidAt("body.id", "the server gives it; send an Idempotency-Key to repeat a request")
	}
	q, _, err := a.findType(ctx, in.Body.ActivityType)
	if err != nil {
		return nil, placed(err, "body.ActivityType")
	}
	var settings plan.ScheduleSettings
	if err := in.Body.Apply(&q, &settings); err != nil {
		return nil, misplaced(err)
	}
	now, err := set.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	id := plan.ScheduleID{ID: plan.NewID(now)}
	if in.Key != "" {
		id.ID = oste.KeyID(in.Key)
	}
	s, err := set.CreateAs(ctx, id, oste.RecurringName(id.ID), settings, "")
	if err != nil {
		return nil, misplacedRecurring(err, &in.Body.Call)
	}
	if !schedule.Same(&s.ScheduleSettings, &settings) {
		return nil, repeatedKey(in.Key)
	}
	auth.Changed(ctx, s.ID.String())
	if gone, err := a.cancelLate(ctx, &q); err != nil {
		return nil, err
	} else if gone {
		return nil, typeWasDeleted(in.Body.ActivityType)
	}
	out := answerRecurring(&s)
	out.Location = api.OSTERoot + "/recurring-activities/" + s.Name
	return out, nil
}

func (a *API) changeRecurring(ctx context.Context, in *OsteChange, change func(oste.RecurringActivity) (oste.RecurringActivity, error)) (*recurringAnswer, error) {
	s, types, set, err := a.findRecurring(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	auth.Changed(ctx, s.ID.String())
	is, _ := oste.RecurringOf(&s)
	want, err := change(is)
	if err != nil {
		return nil, err
	}
	if want.ID != "" && want.ID != s.Name {
		return nil, api.InvalidAt("body.id", "it is %q, and stays", s.Name)
	}
	if want.ActivityType == "" {
		want.ActivityType = is.ActivityType
	}
	q := typeNamed(types, want.ActivityType)
	if q == nil {
		return nil, placed(notThere("activity type", want.ActivityType), "body.ActivityType")
	}
	settings := s.ScheduleSettings
	if err := want.Apply(q, &settings); err != nil {
		return nil, misplaced(err)
	}
	if s, err = set.Set(ctx, s.Name, in.IfMatch.edition(), settings); err != nil {
		return nil, misplacedRecurring(unmatched(err), &want.Call)
	}
	return answerRecurring(&s), nil
}

// misplacedRecurring gives the places of a recurring activity to the problems of its schedule.
func misplacedRecurring(err error, c *oste.Call) error {
	problems, ok := errors.AsType[plan.Problems](err)
	if !ok {
		return err
	}
	p := api.Invalid("%s", ofAddress(err.Error()))
	for i := range problems {
		place := map[string]string{"cron": "Day", "zone": "Zone", "subject": "Parameter", "retry": "Retries"}[problems[i].Key]
		switch {
		case place == "":
			place = blamed(c)
		case strings.Contains(problems[i].Message, timetable.YearsPassed):
			place = "Year"
		}
		p.Fields = append(p.Fields, api.Field{Message: ofAddress(problems[i].Message), Location: "body." + place})
	}
	return p
}
