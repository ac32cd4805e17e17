package oste

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// A Call is what an activity says of its request. Its type says the rest.
type Call struct {
	ActivityType string          `json:"ActivityType,omitempty" doc:"The id of its type."`
	Parameter    json.RawMessage `json:"Parameter,omitempty" doc:"An object. Its fields fill the UriPattern, and PUT and POST send it."`
	Retries      *int            `json:"Retries,omitempty" minimum:"0" maximum:"2147483646" doc:"How many more tries it has after the first one fails; left out: as its type says."`
	UriPattern   string          `json:"UriPattern,omitempty" maxLength:"8192" doc:"Its address in place of that of its type."`
}

// callOf returns the call of a task or a schedule with these params.
func callOf(of string, params json.RawMessage, attempts int) Call {
	keys := object(params)
	c := Call{ActivityType: of, Parameter: keys[paramBody]}
	c.UriPattern, _ = jsontext.TextOf(keys[paramURL])
	if attempts > 0 {
		n := attempts - 1
		c.Retries = &n
	}
	return c
}

// Params returns params with the call in them. Other params stay.
func (c *Call) Params(params json.RawMessage) (json.RawMessage, error) {
	if len(c.Parameter) == 0 {
		c.Parameter = nil
	} else if json.Unmarshal(c.Parameter, &map[string]json.RawMessage{}) != nil || string(c.Parameter) == "null" {
		return nil, mistake("Parameter", "it is to be a JSON object")
	}
	return with(params, map[string]json.RawMessage{paramBody: c.Parameter, paramURL: textOf(c.UriPattern)}), nil
}

// Retry returns the retry of an activity of a queue; the zero value: as its type says.
func (c *Call) Retry(q *plan.Queue) plan.RetryText {
	if c.Retries == nil {
		return plan.RetryText{}
	}
	r := q.Defaults.Retry
	r.Attempts = *c.Retries + 1
	return r
}

// Object returns what an activity of a queue is about: the fields of the Parameter that ObjectIdRef
// names, in its order, with commas between them. It is "" for a type without ObjectIdRef.
func Object(q *plan.Queue, parameter json.RawMessage) (string, error) {
	fields, values := object(parameter), make([]string, len(q.ObjectRef))
	for i, name := range q.ObjectRef {
		raw, ok := fields[name]
		switch {
		case !ok || string(raw) == "null":
			return "", mistake("Parameter", "there is no field %q, by which %s knows the object", name, q.Name)
		case raw[0] == '{' || raw[0] == '[':
			return "", mistake("Parameter."+name, "it identifies the object, and has to be a text, a number or a boolean")
		}
		values[i] = rules.SubjectText(raw)
		if values[i] == "" || len(values) > 1 && strings.Contains(values[i], ",") {
			return "", mistake("Parameter."+name, "%q cannot identify the object with other fields: it is empty or has a comma", values[i])
		}
	}
	object := strings.Join(values, ",")
	if err := rules.CheckSubject(object); err != nil {
		return "", &Mistake{"Parameter", err}
	}
	return object, nil
}

// objectNow returns what an activity is about that had other params and was about an object. That stays
// until its Parameter changes: its type may know objects by other fields since.
func objectNow(q *plan.Queue, parameter, had json.RawMessage, was string) (string, error) {
	if len(had) > 0 && jsontext.Same(object(had)[paramBody], parameter) {
		return was, nil
	}
	return Object(q, parameter)
}

// A PointInTimeActivity is a task of no plan that is held until its Date.
type PointInTimeActivity struct {
	ID   string    `json:"id,omitempty"`
	Date time.Time `json:"Date,omitzero" doc:"When it is executed, to the millisecond. A date that has passed is now. It is left out of an answer once the date has come."`
	Call
}

// Task returns the task that the activity is, in the queue of its type. key, unless it is empty, gives
// the task an id that the same request gets again.
func (a *PointInTimeActivity) Task(q *plan.Queue, key string) (plan.Task, error) {
	params, err := a.Params(nil)
	if err != nil {
		return plan.Task{}, err
	}
	object, err := Object(q, a.Parameter)
	if err != nil {
		return plan.Task{}, err
	}
	t := plan.Task{
		ID: plan.TaskID{ID: plan.NewID(a.Date)}, Queue: q.ID, Status: plan.Held, Params: params, NotBefore: a.Date.UTC().Truncate(time.Millisecond),
		Definition: plan.Definition{Subject: object, Retry: a.Retry(q).Retry()},
	}
	if q.OnLost == plan.OnLostDefault {
		t.OnLost = plan.OnLostRetry // delivery is at least once, as for recurrences
	}
	if key != "" {
		t.ID.ID = KeyID(key)
	}
	return t, nil
}

// Repeats reports whether the activity that a task is has the Date of this one, as far as the task still
// says that: once its Date has come, any Date that has come is the same.
func (a *PointInTimeActivity) Repeats(t *plan.Task, now time.Time) bool {
	if t.Attempt == 0 && t.NotBefore.After(now) {
		return t.NotBefore.Equal(a.Date.Truncate(time.Millisecond))
	}
	return !a.Date.After(now)
}

// KeyID returns the id of what a request with an idempotency key makes, whatever else the request says.
// It has no instant in it, so that such ids come before all others.
func KeyID(key string) (id plan.ID) {
	sum := sha256.Sum256([]byte("oste\x00" + key))
	copy(id[4:], sum[:])
	return id
}

// Change returns the change that gives a waiting task what the activity says. params are those of the
// task. A zero Date stays as it is.
func (a *PointInTimeActivity) Change(q *plan.Queue, t *plan.Task) (c rules.TaskChange, err error) {
	if err := cmp.Or(same("id", a.ID, t.ID.String()), same("ActivityType", a.ActivityType, q.Name)); err != nil {
		return c, err
	}
	if c.Params, err = a.Params(t.Params); err != nil {
		return c, err
	}
	object, err := objectNow(q, a.Parameter, t.Params, t.Subject)
	if err != nil {
		return c, err
	}
	c.Subject = &object
	if !a.Date.IsZero() {
		c.NotBefore = &a.Date
	}
	switch {
	case a.Retries != nil:
		c.Attempts = *a.Retries + 1
	case t.Retry.Attempts > 0: // a change of a task takes no retry away
		c.Attempts = max(1, q.Defaults.Retry.Attempts)
	}
	return c, nil
}

// A WaitingActivity is a point-in-time activity that has not ended.
type WaitingActivity struct {
	PointInTimeActivity
	State  string `json:"State" doc:"held, queued, claimed or running."`
	Object string `json:"Object,omitempty" doc:"What it is about: the fields of Parameter that ObjectIdRef names, with commas between them."`
	Tries  int    `json:"Tries" doc:"How often it was tried."`
}

// PointInTimeOf returns the activity that a task in the queue of a type is.
func PointInTimeOf(t *plan.Task, of string) PointInTimeActivity {
	return PointInTimeActivity{ID: t.ID.String(), Date: t.NotBefore, Call: callOf(of, t.Params, t.Retry.Attempts)}
}

// WaitingOf returns the unfinished activity that a task in the queue of a type is.
func WaitingOf(t *plan.Task, of string) WaitingActivity {
	return WaitingActivity{PointInTimeActivity: PointInTimeOf(t, of), State: t.State(), Object: t.Subject, Tries: t.Attempt}
}

// A RecurringActivity is a schedule of tasks in the queue of its type. Its seven fields are a cron line.
type RecurringActivity struct {
	ID        string `json:"id,omitempty" doc:"The name of its schedule."`
	Year      string `json:"Year,omitempty" doc:"1970 to 2099; left out: each. Every field holds what the field of a cron line holds, as *, 1,15, 9-17 or */5."`
	Month     string `json:"Month,omitempty" doc:"1 to 12, or jan to dec; left out: each."`
	Day       string `json:"Day,omitempty" doc:"The day of the month, 1 to 31; left out: each."`
	DayOfWeek string `json:"DayOfWeek,omitempty" doc:"0 is Sunday and 6 is Saturday; left out: each."`
	Hour      string `json:"Hour,omitempty" doc:"0 to 23."`
	Minute    string `json:"Minute,omitempty" doc:"0 to 59."`
	Second    string `json:"Second,omitempty" doc:"0 to 59; left out: 0."`
	Zone      string `json:"Zone,omitempty" doc:"The zone of the tz database in which the fields count; left out: UTC."`
	Call
}

// Fields returns the seven fields.
func (a *RecurringActivity) Fields() timetable.Fields {
	return timetable.Fields{Year: a.Year, Month: a.Month, Day: a.Day, DayOfWeek: a.DayOfWeek, Hour: a.Hour, Minute: a.Minute, Second: a.Second}
}

// Apply changes the settings of a schedule to what the activity says. Each recurrence is executed,
// whether the one before has ended or not, unless the schedule says otherwise already.
func (a *RecurringActivity) Apply(q *plan.Queue, s *plan.ScheduleSettings) error {
	fields := a.Fields()
	if _, err := timetable.New(timetable.Settings{Fields: &fields, Zone: a.Zone}); err != nil {
		return recurrence(err)
	}
	task := plan.ScheduledTask{}
	if s.Task != nil {
		task = *s.Task
	}
	var had json.RawMessage
	if task.Queue == q.Name {
		had = task.Params
	}
	var err error
	if task.Params, err = a.Params(task.Params); err != nil {
		return err
	}
	if task.Subject, err = objectNow(q, a.Parameter, had, task.Subject); err != nil {
		return err
	}
	task.Queue, task.Retry = q.Name, a.Retry(q)
	if is, ok := timetable.FieldsOf(s.Cron); !ok || is.Line() != fields.Line() {
		s.Cron = fields.Line()
	}
	s.Zone, s.Task, s.Overlap = a.Zone, &task, cmp.Or(s.Overlap, plan.OverlapAllow)
	return nil
}

// recurrence gives its place to an error about the fields, which begins with the name of one, or the zone.
func recurrence(err error) error {
	var problems plan.Problems
	if !errors.As(err, &problems) {
		return err
	}
	p := &problems[0]
	if p.Key == "zone" {
		return mistake("Zone", "%s", p.Message)
	}
	said := strings.TrimPrefix(p.Message, "fields: ")
	name, _, _ := strings.Cut(said, " ")
	return mistake(name, "%s", said)
}

// RecurringOf returns the activity that a schedule is. It reports false for a schedule of something
// else than tasks of a cron line.
func RecurringOf(s *plan.Schedule) (a RecurringActivity, ok bool) {
	f, ok := timetable.FieldsOf(s.Cron)
	if !ok || s.Task == nil {
		return a, false
	}
	return RecurringActivity{
		ID: s.Name, Year: f.Year, Month: f.Month, Day: f.Day, DayOfWeek: f.DayOfWeek, Hour: f.Hour, Minute: f.Minute, Second: f.Second,
		Zone: s.Zone, Call: callOf(s.Task.Queue, s.Task.Params, s.Task.Retry.Attempts),
	}, true
}

// RecurringName returns the name of the schedule that a recurring activity becomes.
func RecurringName(id plan.ID) string { return fmt.Sprintf("activity-%s", id) }
