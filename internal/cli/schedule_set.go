package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/client"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// withSchedules runs do with what keeps the schedules of the store that the flags name.
func (a *app) withSchedules(ctx context.Context, how func(context.Context, func(store.Store) error) error, do func(store.Store, schedule.Service) error) error {
	return how(ctx, func(st store.Store) error {
		if c, far := st.(*client.Client); far {
			return do(st, c.ScheduleService())
		}
		s, ok := schedule.StoreOf(st)
		if !ok {
			return errors.New("this store keeps no schedules")
		}
		return do(st, &schedule.Setter{Store: s, Check: a.Plugins.Refused, By: a.Getenv("USER")})
	})
}

// onSchedule is what a command does whose first argument, if it takes one, names a schedule.
func (a *app) onSchedule(do func(ctx context.Context, st store.Store, c schedule.Service, name string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withSchedules(cmd.Context(), a.withStore, func(st store.Store, c schedule.Service) error {
			return do(cmd.Context(), st, c, strings.Join(args, ""))
		})
	}
}

// scheduleFlags are the flags that a schedule is made and changed with.
type scheduleFlags struct {
	timetableFlags
	cron, plan, queue, params string
	subject                   string
	values                    []string
	attempts                  int
	timeout                   time.Duration
	overlap, missed           choice
}

func (f *scheduleFlags) add(cmd *cobra.Command) {
	f.overlap = choice{string(plan.OverlapSkip), plan.Overlaps()}
	f.missed = choice{string(plan.MissedOne), plan.Misses()}
	flags := cmd.Flags()
	flags.StringVar(&f.cron, "cron", "", "a cron `LINE`, as in '30 2 * * *'")
	f.timetableFlags.add(cmd)
	spanFlag(cmd, &f.jitter, "jitter", 0, "start each occurrence later by a delay below this, which follows from its instant")
	flags.StringVar(&f.plan, "plan", "", "start the plan of this `FILE`, whose text the schedule keeps")
	flags.StringArrayVar(&f.values, "param", nil, "with --plan, a value for a param of the plan, as `NAME=VALUE`; may be repeated")
	flags.StringVar(&f.queue, "queue", "", "start a task in this `QUEUE`")
	flags.StringVar(&f.params, "params", "{}", "with --queue, the params of the task, a JSON object")
	f.attempts = 1
	attemptsFlag(cmd, &f.attempts, "with --queue, how often it is tried")
	spanFlag(cmd, &f.timeout, "timeout", 0, "with --queue, the limit of one attempt")
	flags.StringVar(&f.subject, "subject", "", "with --queue, what the task is about, such as a customer number")
	flags.Var(&f.overlap, "overlap", "while the one before has not ended: skip the new one, queue it, replace the one before, or allow both")
	flags.Var(&f.missed, "missed", "make up once for the instants that no node came to within a minute, or skip them")
}

// names are the names of these flags.
func (f *scheduleFlags) names() []string {
	return slices.Concat([]string{"cron"}, timetableNames, []string{"jitter", "plan", "param", "queue", "params", "attempts", "timeout", "subject", "overlap", "missed"})
}

// apply changes of a schedule what the flags say that were given.
func (f *scheduleFlags) apply(cmd *cobra.Command, s *plan.ScheduleSettings) error {
	given := cmd.Flags().Changed
	if err := f.timetableFlags.apply(cmd, f.cron, &s.Timetable); err != nil {
		return err
	}
	if given("jitter") {
		s.Jitter = plan.Duration(f.jitter)
	}
	if given("overlap") {
		s.Overlap = plan.Overlap(f.overlap.value)
	}
	if given("missed") {
		s.Missed = plan.Missed(f.missed.value)
	}
	if given("plan") && given("queue") {
		return usagef("--plan and --queue: a schedule starts either a plan or a task; give one of them")
	}
	if given("queue") {
		t := plan.ScheduledTask{}
		if s.Task != nil {
			t = *s.Task
		}
		t.Queue = f.queue
		s.Plan, s.Task = nil, &t
	}
	if given("plan") {
		p, err := scheduledPlan(f.plan)
		if err != nil {
			return err
		}
		if s.Plan != nil {
			p.Params = s.Plan.Params
		}
		s.Plan, s.Task = p, nil
	}
	for _, name := range []string{"params", "attempts", "timeout", "subject"} {
		if given(name) && s.Task == nil {
			return usagef("--%s is of a task: add --queue QUEUE", name)
		}
	}
	if given("param") && s.Plan == nil {
		return usagef("--param is of a plan: add --plan FILE")
	}
	if t := s.Task; t != nil {
		if given("params") || len(t.Params) == 0 {
			raw, err := jsonObject("--params", f.params)
			if err != nil {
				return err
			}
			t.Params = raw
		}
		if given("attempts") {
			t.Retry.Attempts = f.attempts
		}
		if given("timeout") {
			t.Timeout = plan.Duration(f.timeout)
		}
		if given("subject") {
			t.Subject = f.subject
			if err := checkSubject("subject", f.subject); err != nil {
				return err
			}
		}
	}
	if given("param") {
		if slices.Contains(f.values, "") {
			s.Plan.Params = nil
		}
		values, err := pairs("--param", slices.DeleteFunc(slices.Clone(f.values), func(v string) bool { return v == "" }))
		if err != nil {
			return err
		}
		s.Plan.Params = maps.Clone(s.Plan.Params) // the others stay
		if s.Plan.Params == nil {
			s.Plan.Params = map[string]string{}
		}
		maps.Copy(s.Plan.Params, values)
	}
	return nil
}

// scheduledPlan reads a plan file for a schedule.
func scheduledPlan(path string) (*plan.ScheduledPlan, error) {
	if planfile.IsStream(path) {
		return nil, usagef("%s: a schedule needs to know the folder of its plan; name a file", path)
	}
	data, err := planfile.Read(path)
	if err != nil {
		return nil, asUsage(err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return &plan.ScheduledPlan{File: plan.File{Text: string(textfile.WithoutMark(data)), Dir: filepath.Dir(abs)}, Source: abs}, nil
}

func scheduleCreate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a schedule that starts a plan or a task",
		Long: "Make a schedule. At each instant of a cron line or an interval it starts the plan of a " +
			"file, or a task of a queue. Nodes start them: \"sluice worker\" is one. The schedule " +
			"keeps the text of the plan file; \"sluice schedule set\" reads the file again.\n" +
			"\n" +
			"A time is RFC 3339, or local time in the zone.",
		Example: "  sluice schedule create nightly --cron '30 2 * * *' --plan nightly.yaml\n" +
			"  sluice schedule create beat --every 30s --queue q --params '{\"run\": \"./beat\"}'",
	}
	var flags scheduleFlags
	flags.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var settings plan.ScheduleSettings
		if err := flags.apply(cmd, &settings); err != nil {
			return err
		}
		if settings.Cron == "" && settings.Every == 0 {
			return usagef("say when it starts something: --cron LINE or --every DURATION")
		}
		if settings.Plan == nil && settings.Task == nil {
			return usagef("say what it starts: --plan FILE or --queue QUEUE")
		}
		return a.withSchedules(cmd.Context(), a.makingStore, func(st store.Store, c schedule.Service) error {
			s, err := c.Create(cmd.Context(), args[0], settings, "")
			if errors.Is(err, plan.ErrExists) {
				return fmt.Errorf("%w; change it with %q", err, a.command("schedule", "set", args[0]))
			}
			if err != nil {
				return scheduleError(err)
			}
			return a.tellSchedule(cmd.Context(), st, s)
		})
	}
	return cmd
}

func scheduleSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change a schedule",
		Long: "Change the settings of a schedule that flags name; the others stay, and so do params " +
			"that no --param names (--param= takes them away). Instants that " +
			"have passed are not made up for. An occurrence that has started continues.",
		Example: "  sluice schedule set nightly --cron '0 3 * * *'\n  sluice schedule set nightly --plan nightly.yaml     # read the file again",
	}
	var flags scheduleFlags
	flags.add(cmd)
	mayRemove(cmd, "except", "from", "until", "param", "subject")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.ContainsFunc(flags.names(), cmd.Flags().Changed) {
			return usagef("nothing to change: give one of --%s", strings.Join(flags.names(), ", --"))
		}
		return a.withSchedules(cmd.Context(), a.withStore, func(st store.Store, c schedule.Service) error {
			for again := false; ; again = true {
				was, err := c.Show(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				settings := was.ScheduleSettings
				if err := flags.apply(cmd, &settings); err != nil {
					return err
				}
				s, err := c.Set(cmd.Context(), args[0], was.Edition(), settings)
				switch {
				case err == nil:
					return a.tellSchedule(cmd.Context(), st, s)
				case again || !errors.Is(err, plan.ErrConflict): // else another person was quicker
					return scheduleError(err)
				}
			}
		})
	}
	return cmd
}

// scheduleError is the error of settings that are not valid, with the nearest word that is.
func scheduleError(err error) error {
	_, invalid := errors.AsType[plan.Problems](err)
	if _, placed := errors.AsType[planfile.Errors](err); invalid || placed {
		return asUsage(withNearest(err))
	}
	return err
}

// tellNext prints when a schedule that was made or changed fires next. It returns an err as it is.
func (a *app) tellNext(s plan.Schedule, err error) error {
	if err == nil {
		_, err = fmt.Fprintf(a.Stdout, "schedule %s %s\n", s.Name, whenNext(&s))
	}
	return err
}

// tellSchedule is tellNext, and says what is probably not meant, and if no node lives that fires the
// schedule.
func (a *app) tellSchedule(ctx context.Context, st store.Store, s plan.Schedule) error {
	if err := a.tellNext(s, nil); err != nil {
		return err
	}
	if t, err := timetable.New(timetable.SettingsOf(s.Timetable)); err == nil && t.Overtakes(s.Modified) {
		a.note("the jitter is longer than an interval between two instants; occurrences may start in another order than their instants")
	}
	return a.noteNoFirer(ctx, st)
}

// noteNoFirer says that nothing starts schedules, if no node lives that would.
func (a *app) noteNoFirer(ctx context.Context, st store.Store) error {
	nodes, err := st.Instances(ctx)
	if err == nil && !slices.ContainsFunc(nodes, func(i plan.Instance) bool { return i.Plan.IsZero() && !i.Runner }) {
		a.note("no node runs that starts what schedules say; start one: %s", a.command("worker"))
	}
	return err
}
