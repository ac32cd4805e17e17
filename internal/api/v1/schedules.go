package v1

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// InSchedule is the part of a path that names a schedule.
type InSchedule struct {
	Schedule string `path:"schedule" minLength:"1" doc:"Its name."`
}

func (s *InSchedule) word() string { return s.Schedule }

// ChangeSchedule is what each request to change a schedule has.
type ChangeSchedule struct {
	InSchedule
	IfMatch IfMatch `header:"If-Match"`
}

type scheduleAnswer struct {
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Body     plan.Schedule
}

type changedSchedule struct {
	ETag string `header:"ETag"`
	Body plan.Schedule
}

func (a *API) schedules() {
	const tag = "schedules"
	const match = " With If-Match, only if nothing of the schedule changed since that ETag."
	serve(a, endpoint{
		method: "GET", path: "/schedules", id: "list-schedules", summary: "List schedules, by name", tag: tag, scope: Read, errors: []int{501},
		doc: "Each with the states of its occurrences as they are now.",
	}, withSetter(a, a.listSchedules))
	serve(a, endpoint{
		method: "POST", path: "/schedules", id: "create-schedule", summary: "Make a schedule", tag: tag, scope: Submit, status: http.StatusCreated, body: savedBody, errors: []int{404, 409, 413, 422, 501},
		doc: "Its first instant is after now. A schedule that is not valid is refused with each " +
			"mistake, and its line and column if that is in the plan file. A missing queue of a task is " +
			"not found.",
	}, withSetter(a, a.createSchedule))
	serve(a, endpoint{
		method: "GET", path: "/schedules/{schedule}", id: "get-schedule", summary: "Read a schedule", tag: tag, scope: Read, errors: []int{404, 501},
		doc: "With the states of its occurrences as they are now, and with the text of its plan file, " +
			"which has *** in place of secrets.",
	}, withSetter(a, a.getSchedule))
	serve(a, endpoint{
		method: "PUT", path: "/schedules/{schedule}", id: "set-schedule", summary: "Set a schedule", tag: tag, scope: Submit, body: savedBody, errors: []int{404, 409, 412, 413, 422, 501},
		doc: "All settings at once. Instants that have come are decided as before. An occurrence that was " +
			"decided before starts what the schedule said then. An empty text of the plan file leaves " +
			"the text as it is. A schedule that has the settings already stays as it is." + match,
	}, withSetterOf(a, a.setSchedule))
	serve(a, endpoint{
		method: "DELETE", path: "/schedules/{schedule}", id: "delete-schedule", summary: "Delete a schedule", tag: tag, scope: Admin, status: http.StatusNoContent, errors: []int{404, 412, 501},
		doc: "Nothing that it started is deleted or cancelled." + match,
	}, withSetterOf(a, a.deleteSchedule))
	serve(a, endpoint{
		method: "POST", path: "/schedules/{schedule}/pause", id: "pause-schedule", summary: "Pause a schedule", tag: tag, scope: Operate, errors: []int{404, 409, 412, 422, 501},
		doc: "It starts nothing at its instants. Its tasks and plans continue." + match,
	}, withSetterOf(a, a.pauseSchedule))
	serve(a, endpoint{
		method: "POST", path: "/schedules/{schedule}/resume", id: "resume-schedule", summary: "Let a paused schedule fire again", tag: tag, scope: Operate, errors: []int{404, 409, 412, 501},
		doc: "From now on: instants of the pause are not made up for." + match,
	}, withSetterOf(a, a.resumeSchedule))
	serve(a, endpoint{
		method: "POST", path: "/schedules/{schedule}/run", id: "run-schedule", summary: "Start an occurrence of a schedule now", tag: tag, scope: Submit, status: http.StatusAccepted, errors: []int{404, 409, 501},
		doc: "Also of a paused schedule. A node starts it within about a second. The answer is the " +
			"occurrence. It is a conflict if the one before has not ended and overlap does not let " +
			"another one start, or if its plan file is not valid any more. A queue that was deleted " +
			"is not found.",
	}, withSetterOf(a, a.runSchedule))
	serve(a, endpoint{
		method: "POST", path: "/schedules/{schedule}/backfill", id: "backfill-schedule", summary: "Start the past instants of a schedule in a span", tag: tag, scope: Submit, errors: []int{404, 409, 422, 501},
		doc: "All instants from from on and up to to, one after the other, or at once with overlap " +
			"allow. An instant that has an occurrence gets no other one. At most 10,000 instants.",
	}, withSetterOf(a, a.backfillSchedule))
	serve(a, endpoint{
		method: "GET", path: "/schedules/{schedule}/instants", id: "list-instants", summary: "List the next instants of a schedule", tag: tag, scope: Read, errors: []int{404, 422, 501},
		doc: "By its timetable, also while it is paused. Each instant that a clock change moves, doubles or drops has the reason.",
	}, withSetter(a, a.listInstants))
}

// setter changes schedules for the caller. It works on the store itself, because a change writes what it read,
// and hides what is secret in what it returns.
func (a *API) setter(ctx context.Context) (*schedule.Setter, error) {
	st, ok := schedule.StoreOf(hiding.Of(a.st))
	if !ok {
		return nil, api.NewProblem(http.StatusNotImplemented, api.CodeUnsupported, "this store keeps no schedules")
	}
	return &schedule.Setter{Store: st, Check: a.c.Check, By: submitter(ctx)}, nil
}

// withSetter is a handler that is given a setter.
func withSetter[I, O any](a *API, handle func(context.Context, *schedule.Setter, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		set, err := a.setter(ctx)
		if err != nil {
			return nil, err
		}
		return handle(ctx, set, in)
	}
}

// withSetterOf is withSetter for a request that changes the schedule in its path, which it notes for the audit log.
func withSetterOf[I, O any, P interface {
	*I
	word() string
}](a *API, handle func(context.Context, *schedule.Setter, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return withSetter(a, func(ctx context.Context, set *schedule.Setter, in *I) (*O, error) {
		s, err := schedule.Find(ctx, set.Store, P(in).word())
		if err != nil {
			return nil, err
		}
		auth.Changed(ctx, s.ID.String())
		return handle(ctx, set, in)
	})
}

func (a *API) listSchedules(ctx context.Context, set *schedule.Setter, in *struct {
	After string `query:"after" doc:"The name after which the list continues: next of the page before."`
	Limit int    `query:"limit" minimum:"0" maximum:"5000" default:"100"`
}) (*api.ScheduleList, error) {
	most := limit(in.Limit)
	found, err := set.List(ctx, store.ScheduleQuery{After: in.After, Limit: most + 1})
	if err != nil {
		return nil, err
	}
	out := &api.ScheduleList{Schedules: nonNil(found)}
	if len(found) > most {
		out.Schedules, out.Next = found[:most], found[most-1].Name
	}
	return out, nil
}

func (a *API) getSchedule(ctx context.Context, set *schedule.Setter, in *InSchedule) (*changedSchedule, error) {
	return answerSchedule(set.Show(ctx, in.Schedule))
}

func answerSchedule(s plan.Schedule, err error) (*changedSchedule, error) {
	if err != nil {
		return nil, unmatched(err)
	}
	return &changedSchedule{api.EditionTag(s.Edition()), s}, nil
}

func (a *API) createSchedule(ctx context.Context, set *schedule.Setter, in *struct{ Body api.NewSchedule }) (*scheduleAnswer, error) {
	if err := checkSpan(in.Body.From, in.Body.Until, "until"); err != nil {
		return nil, err
	}
	s, err := set.CreateAs(ctx, in.Body.ID, in.Body.Name, in.Body.ScheduleSettings, in.Body.Applied)
	if err != nil {
		return nil, refusedSchedule(err, &in.Body.ScheduleSettings)
	}
	auth.Changed(ctx, s.ID.String())
	return &scheduleAnswer{api.EditionTag(s.Edition()), api.Root + "/schedules/" + s.Name, s}, nil
}

func (a *API) setSchedule(ctx context.Context, set *schedule.Setter, in *struct {
	ChangeSchedule
	Body plan.ScheduleSettings
}) (*changedSchedule, error) {
	if err := checkSpan(in.Body.From, in.Body.Until, "until"); err != nil {
		return nil, err
	}
	s, err := set.Set(ctx, in.Schedule, in.IfMatch.edition(), in.Body)
	if err != nil {
		err = refusedSchedule(err, &in.Body)
	}
	return answerSchedule(s, err)
}

func (a *API) pauseSchedule(ctx context.Context, set *schedule.Setter, in *struct {
	ChangeSchedule
	Body *api.Pausing
}) (*changedSchedule, error) {
	why := ""
	if in.Body != nil {
		why = in.Body.Why
	}
	s, err := set.Pause(ctx, in.Schedule, in.IfMatch.edition(), why)
	if err != nil {
		err = refusedSchedule(err, &plan.ScheduleSettings{})
	}
	return answerSchedule(s, err)
}

func (a *API) resumeSchedule(ctx context.Context, set *schedule.Setter, in *ChangeSchedule) (*changedSchedule, error) {
	return answerSchedule(set.Resume(ctx, in.Schedule, in.IfMatch.edition()))
}

func (a *API) runSchedule(ctx context.Context, set *schedule.Setter, in *InSchedule) (*plan.Occurrence, error) {
	o, err := set.Run(ctx, in.Schedule)
	return &o, unqueued(err)
}

func (a *API) backfillSchedule(ctx context.Context, set *schedule.Setter, in *struct {
	InSchedule
	Body api.Backfill
}) (*api.BackfilledAnswer, error) {
	if in.Body.Dry {
		auth.Unchanged(ctx)
	}
	if err := checkSpan(in.Body.From, in.Body.To, "to"); err != nil {
		return nil, err
	}
	n, err := set.Backfill(ctx, in.Schedule, in.Body.Span, in.Body.Dry)
	if err != nil {
		return nil, refusedSchedule(err, &plan.ScheduleSettings{})
	}
	return &api.BackfilledAnswer{Instants: n}, nil
}

func (a *API) deleteSchedule(ctx context.Context, set *schedule.Setter, in *ChangeSchedule) (*struct{}, error) {
	return nil, unmatched(set.Delete(ctx, in.Schedule, in.IfMatch.edition()))
}

func (a *API) listInstants(ctx context.Context, set *schedule.Setter, in *struct {
	InSchedule
	N     int    `query:"n" minimum:"1" maximum:"1000" default:"5" doc:"How many instants; those that are dropped come in addition."`
	After string `query:"after" doc:"A time: RFC 3339, or local time in the zone of the schedule. Only instants after it; default now."`
}) (*api.InstantsAnswer, error) {
	s, err := schedule.Find(ctx, set.Store, in.Schedule)
	if err != nil {
		return nil, err
	}
	table, err := timetable.New(timetable.SettingsOf(s.Timetable))
	if err != nil {
		return nil, err
	}
	var after time.Time
	if in.After == "" {
		after, err = set.Store.Now(ctx)
	} else if after, err = timetable.Instant(in.After, table.Zone()); err != nil {
		err = api.InvalidAt("query.after", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	out, left := &api.InstantsAnswer{Instants: []api.Instant{}}, in.N
	for o := range table.After(after) {
		out.Instants = append(out.Instants, api.Instant{At: o.At.UTC(), Local: o.At.Format(time.RFC3339Nano), Change: string(o.Change), Reason: o.Reason})
		if o.Change != timetable.Dropped {
			left--
		}
		if left == 0 {
			break
		}
	}
	return out, nil
}

// edition reads what api.EditionTag writes; 0: any edition.
func (m IfMatch) edition() int64 {
	if m.any() {
		return 0
	}
	n, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(string(m), "W/"), `"`), 10, 64)
	if err != nil || n <= 0 {
		return noEdition
	}
	return n
}

// noEdition is one that nothing reaches.
const noEdition = 1<<63 - 1

// unmatched is the problem of a schedule that is of another edition than If-Match says; any other
// error is returned as it is.
func unmatched(err error) error {
	if errors.Is(err, schedule.ErrEdition) {
		return api.NewProblem(http.StatusPreconditionFailed, api.CodePrecondition, "%v", err)
	}
	return err
}

// checkSpan refuses times that cannot be written.
func checkSpan(from, to time.Time, end string) error {
	if err := api.CheckTime(from); err != nil {
		return api.InvalidAt("body.from", "%v", err)
	}
	if err := api.CheckTime(to); err != nil {
		return api.InvalidAt("body."+end, "%v", err)
	}
	return nil
}

// refusedSchedule is the problem of settings that are not valid, with the place of each mistake.
func refusedSchedule(err error, s *plan.ScheduleSettings) error {
	var placed planfile.Errors
	var problems plan.Problems
	switch {
	case errors.As(err, &placed):
		return fileProblem(err, "body.plan.file.text", "body.plan.params")
	case errors.As(err, &problems):
		p := api.Invalid("%v", err)
		for i := range problems {
			p.Fields = append(p.Fields, api.Field{Message: problems[i].Message, Location: "body." + scheduleField(&problems[i], s)})
		}
		return p
	case errors.Is(err, plan.ErrNotFound) && s.Task != nil:
		p := api.ProblemOf(err)
		p.Fields = []api.Field{{Message: err.Error(), Location: "body.task.queue"}}
		return p
	}
	return unqueued(err)
}

// scheduleField is the path of the field that a problem is of.
func scheduleField(p *plan.Problem, s *plan.ScheduleSettings) string {
	switch {
	case p.Task >= 0 && s.Plan != nil:
		return "plan.file.text"
	case p.Task >= 0:
		switch p.Key {
		case "params", "retry", "timeout", "subject":
			return "task." + p.Key
		}
		return "task.params" // what its plugin refuses
	case p.Key == "dir":
		return "plan.file.dir"
	case p.Key == "params":
		return "plan.params"
	}
	return p.Key
}
