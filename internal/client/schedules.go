package client

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A ScheduleService is the schedules of the store behind a server: a schedule.Service. Any number of
// goroutines may use it at once.
type ScheduleService struct{ c *Client }

// ScheduleService returns the schedules of the server.
func (c *Client) ScheduleService() *ScheduleService { return &ScheduleService{c} }

// List implements schedule.Service. It asks for each schedule by itself if the query has Files. A
// query by Due is refused, because it is for nodes.
func (s *ScheduleService) List(ctx context.Context, q store.ScheduleQuery) ([]plan.Schedule, error) {
	if !q.Due.IsZero() {
		return nil, s.c.node()
	}
	if q.Name != "" {
		one, err := s.Show(ctx, q.Name)
		switch {
		case errors.Is(err, plan.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		}
		if one.Plan != nil && !q.Files {
			one.Plan.File.Text = ""
		}
		return []plan.Schedule{one}, nil
	}
	found, err := s.pages(ctx, q.After, cmp.Or(q.Limit, listLimit))
	if err != nil || !q.Files {
		return found, err
	}
	whole := found[:0]
	for i := range found {
		one, err := s.Show(ctx, found[i].Name)
		switch {
		case errors.Is(err, plan.ErrNotFound): // it was deleted meanwhile
		case err != nil:
			return nil, err
		default:
			whole = append(whole, one)
		}
	}
	return whole, nil
}

// pages reads up to so many schedules, a page at a time.
func (s *ScheduleService) pages(ctx context.Context, after string, most int) (found []plan.Schedule, err error) {
	for most > 0 {
		page, err := get[api.ScheduleList](ctx, s.c, query("after", after, "limit", strconv.Itoa(min(most, api.MostPage))), "schedules")
		if err != nil {
			return nil, err
		}
		found = append(found, page.Schedules...)
		most -= len(page.Schedules)
		switch {
		case page.Next == "":
			return found, nil
		case page.Next <= after || len(page.Schedules) == 0:
			return nil, s.c.nonsense(errStandsStill)
		}
		after = page.Next
	}
	return found, nil
}

// Show implements schedule.Service.
func (s *ScheduleService) Show(ctx context.Context, name string) (plan.Schedule, error) {
	return get[plan.Schedule](ctx, s.c, nil, "schedules", name)
}

// Create implements schedule.Service. The id of the schedule is minted here, so that asking again makes
// no other.
func (s *ScheduleService) Create(ctx context.Context, name string, settings plan.ScheduleSettings, applied string) (made plan.Schedule, err error) {
	body := api.NewSchedule{ID: plan.ScheduleID{ID: plan.NewID(time.Now())}, Name: name, ScheduleSettings: settings, Applied: applied}
	err = s.c.do(ctx, &request{method: "POST", path: in("schedules"), body: &body, again: true, timeout: lookTime}, &made)
	return made, err
}

// Set implements schedule.Service.
func (s *ScheduleService) Set(ctx context.Context, name string, edition int64, settings plan.ScheduleSettings) (is plan.Schedule, err error) {
	r := &request{method: "PUT", path: in("schedules", name), match: api.EditionTag(edition), body: &settings, again: true, timeout: lookTime}
	err = s.c.do(ctx, r, &is)
	return is, err
}

// Pause implements schedule.Service.
func (s *ScheduleService) Pause(ctx context.Context, name string, edition int64, why string) (is plan.Schedule, err error) {
	r := &request{method: "POST", path: in("schedules", name, "pause"), match: api.EditionTag(edition), body: &api.Pausing{Why: why}, timeout: lookTime}
	err = s.c.do(ctx, r, &is)
	return is, err
}

// Resume implements schedule.Service.
func (s *ScheduleService) Resume(ctx context.Context, name string, edition int64) (is plan.Schedule, err error) {
	r := &request{method: "POST", path: in("schedules", name, "resume"), match: api.EditionTag(edition), timeout: lookTime}
	err = s.c.do(ctx, r, &is)
	return is, err
}

// Run implements schedule.Service.
func (s *ScheduleService) Run(ctx context.Context, name string) (o plan.Occurrence, err error) {
	err = s.c.do(ctx, &request{method: "POST", path: in("schedules", name, "run"), timeout: lookTime}, &o)
	return o, err
}

// Backfill implements schedule.Service.
func (s *ScheduleService) Backfill(ctx context.Context, name string, span plan.Span, dry bool) (instants int, err error) {
	var out api.BackfilledAnswer
	r := &request{method: "POST", path: in("schedules", name, "backfill"), body: &api.Backfill{Span: span, Dry: dry}, again: dry, timeout: lookTime}
	err = s.c.do(ctx, r, &out)
	return out.Instants, err
}

// Delete implements schedule.Service.
func (s *ScheduleService) Delete(ctx context.Context, name string, edition int64) error {
	return s.c.do(ctx, &request{method: "DELETE", path: in("schedules", name), match: api.EditionTag(edition), timeout: lookTime}, nil)
}
