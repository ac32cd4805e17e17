package sluice

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/mend"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// mend adds to the ask of a retry what a mended spec changes.
func (s *Store) mend(ctx context.Context, id plan.PlanID, spec *plan.Spec, ask *rules.Ask) error {
	p, err := s.driver.Plan(ctx, id) // with its true params, as its tasks
	if err != nil {
		return err
	}
	if err := compiler.Validate(spec); err != nil {
		return err
	}
	if err := s.refused(spec); err != nil {
		return err
	}
	names, err := secret.CheckNames(spec.Secrets)
	switch {
	case err != nil:
		return err
	case spec.Name != p.Name:
		return fmt.Errorf("retry %s: %w: the spec is the plan %q", p.Title(), plan.ErrConflict, spec.Name)
	case !slices.Equal(names, p.Secrets):
		return fmt.Errorf("retry %s: %w: the spec keeps other params secret than the plan", p.Title(), plan.ErrConflict)
	}
	tasks, err := store.AllTasks(ctx, s.driver, store.TaskQuery{Plan: id, Needs: true, Params: true})
	if err != nil {
		return err
	}
	selected, err := rules.SelectRetry(tasks, ask.Tasks, ask.Downstream)
	if err != nil {
		return fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	queues, err := s.driver.Queues(ctx)
	if err != nil {
		return err
	}
	compiled := func(params map[string]json.RawMessage) (plan.Plan, []plan.Task, error) {
		as := *spec
		as.Params = params
		return compiler.Again(&as, id, time.Now(), submit.Queues(ctx, s.driver))
	}
	now, changed, err := compiled(spec.Params)
	if err != nil {
		return err
	}
	v := mend.Version{Plan: &p, Name: "the spec", Stored: tasks, Tasks: changed, Secrets: secret.Of(queues).And(p.Secrets), Mark: "…"}
	v.Hidden = append(v.Secrets.Values(p.Params), v.Secrets.Values(now.Params)...)
	if string(now.Params) != string(p.Params) {
		ask.Params, ask.Choices = now.Params, planfile.ChoicesIn(spec.File)
		var was map[string]json.RawMessage
		if len(p.Params) > 0 {
			if err := json.Unmarshal(p.Params, &was); err != nil {
				return fmt.Errorf("params of %s: %w", p.Title(), err)
			}
		}
		if _, before, err := compiled(was); err == nil { // else the spec has no use for those any more
			named := mend.ByName(before)
			v.AsBefore = func(old *plan.Task) bool {
				then := named[old.Name]
				if then == nil {
					return false
				}
				changes, err := mend.Changes(old, then, v.Mark, v.Secrets, v.Hidden...)
				return err == nil && len(changes) == 0
			}
		}
	}
	if now.Timeout != p.Timeout {
		ask.Timeout = &now.Timeout
	}
	if ask.Replace, _, err = v.Replacements(selected, false); err != nil {
		return fmt.Errorf("retry %s: %w: %w", p.Title(), plan.ErrConflict, err)
	}
	return nil
}
