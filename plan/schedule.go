package plan

import (
	"encoding/json"
	"fmt"
	"time"
)

// Limits of what a schedule keeps.
const (
	MostLast     = 20     // occurrences that have ended or were skipped
	MostWaiting  = 100    // occurrences that wait for the one before
	MostBackfill = 10_000 // occurrences of one backfill
	MostWhy      = 1000   // bytes of the reason for a pause
)

// A Timetable says at which instants a schedule fires. Either Cron or Every is set. docs/schedules.md
// explains the fields. The zero value of every other field is the default.
type Timetable struct {
	Cron     string    `json:"cron,omitempty" doc:"A cron line of 5 fields, 6 with seconds first, or 7 with years last; or @daily and the like."`
	Every    Duration  `json:"every,omitempty" doc:"An interval of real time in place of a cron line, counted from from on; at least a second."`
	From     time.Time `json:"from,omitzero" doc:"No instant is before it. With every, the default is when the schedule is made."`
	Until    time.Time `json:"until,omitzero" doc:"Every instant is before it."`
	Zone     string    `json:"zone,omitempty" doc:"A zone of the tz database; default UTC."`
	Except   []string  `json:"except,omitempty" maxItems:"100" doc:"Days as 2027-12-25, and cron lines, that are left out."`
	Skipped  string    `json:"skipped,omitempty" enum:"run,skip" doc:"What becomes of a local time that the clock skips: run (default) at the first instant after the gap, or skip."`
	Repeated string    `json:"repeated,omitempty" enum:"first,second,both" doc:"When a local time that the clock shows twice fires; default first."`
	Jitter   Duration  `json:"jitter,omitempty" doc:"Each occurrence starts later by a delay below it, which follows from the schedule and the instant."`
}

// Overlap says what a schedule does at an instant while its occurrence before has not ended.
type Overlap string

const (
	OverlapSkip    Overlap = "skip"    // the new one is not started
	OverlapQueue   Overlap = "queue"   // it starts after the one before, however that ends
	OverlapReplace Overlap = "replace" // the one before is cancelled, and the new one starts once it has ended
	OverlapAllow   Overlap = "allow"   // both run
)

// Overlaps returns the words of an Overlap, the default first.
func Overlaps() []string {
	return []string{string(OverlapSkip), string(OverlapQueue), string(OverlapReplace), string(OverlapAllow)}
}

// Missed says what becomes of instants that are more than a minute ago when a node comes to them.
type Missed string

const (
	MissedOne  Missed = "one"  // the latest one is made up for, once
	MissedSkip Missed = "skip" // none is
)

// Misses returns the words of a Missed, the default first.
func Misses() []string { return []string{string(MissedOne), string(MissedSkip)} }

// ScheduleSettings are what a person says of a schedule. Either Task or Plan is set.
type ScheduleSettings struct {
	Timetable
	Overlap Overlap        `json:"overlap,omitempty" enum:"skip,queue,replace,allow" doc:"What happens at an instant while the occurrence before has not ended; default skip."`
	Missed  Missed         `json:"missed,omitempty" enum:"one,skip" doc:"What becomes of instants that are more than a minute ago when a node comes to them; default one."`
	Task    *ScheduledTask `json:"task,omitempty" doc:"The task that it starts."`
	Plan    *ScheduledPlan `json:"plan,omitempty" doc:"The plan that it starts."`
}

// A ScheduledTask is the task of no plan that a schedule starts.
type ScheduledTask struct {
	Queue   string          `json:"queue" doc:"The name of its queue."`
	Params  json.RawMessage `json:"params,omitempty" doc:"An object without secrets."`
	Retry   RetryText       `json:"retry,omitzero"`
	Timeout Duration        `json:"timeout,omitempty" doc:"The limit of one attempt."`
	Subject string          `json:"subject,omitempty" doc:"What it is about: one line of at most 200 bytes."`
}

// A ScheduledPlan is the plan that a schedule starts.
type ScheduledPlan struct {
	File   File              `json:"file" doc:"The text of its plan file, and the folder that its relative paths start from. Lists leave out the text."`
	Params map[string]string `json:"params,omitempty" doc:"Values for its params, as a person gives them; no secrets."`
	Source string            `json:"source,omitempty" doc:"The absolute path of its file."`
}

// A Schedule starts a task or a plan at each instant of its timetable. All instants are by the store's
// clock.
type Schedule struct {
	ID   ScheduleID `json:"id"`
	Name string     `json:"name"`
	// Revision grows with each change. A store changes a schedule only for a caller that read its
	// present revision.
	Revision int64 `json:"revision"`
	ScheduleSettings

	Paused   *PausedSchedule `json:"paused,omitempty" doc:"Who paused it; left out of one that fires."`
	Applied  string          `json:"applied_from,omitempty" doc:"The folder of the file that made it, for schedule apply --prune."`
	Created  time.Time       `json:"created"`
	Modified time.Time       `json:"modified" doc:"When a person changed it last."`

	Cursor time.Time `json:"cursor" doc:"Every instant up to it was decided."`
	Next   time.Time `json:"next,omitzero" doc:"The next instant, with its jitter; left out if there is none, or while it is paused."`
	Look   time.Time `json:"look,omitzero" doc:"When a node looks at it again at the latest, because something of it has not ended."`

	Open      []Occurrence `json:"open,omitempty" doc:"What is decided and has not ended, oldest first."`
	Last      []Occurrence `json:"last,omitempty" doc:"The last 20 that ended or were skipped, oldest first."`
	Backfills []Span       `json:"backfills,omitempty" doc:"Past instants that are still to be made, one after the other."`

	Tally     ScheduleTally `json:"tally"`
	Succeeded time.Time     `json:"succeeded,omitzero" doc:"When an occurrence last ended with success."`
}

// PausedSchedule says who paused a schedule, and why.
type PausedSchedule struct {
	At  time.Time `json:"at"`
	By  string    `json:"by,omitempty"`
	Why string    `json:"why,omitempty"`
}

// A Span is a range of instants: all from From on and up to To.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// A ScheduleTally counts the occurrences of a schedule since it was made.
type ScheduleTally struct {
	Started   int `json:"started"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
}

// An Occurrence is what became of one instant of a schedule.
type Occurrence struct {
	At     time.Time       `json:"at" doc:"The instant of the timetable, without its jitter."`
	Kind   OccurrenceKind  `json:"kind,omitempty" enum:"run,backfill" doc:"Left out if the timetable made it."`
	State  OccurrenceState `json:"state" enum:"waiting,starting,started,succeeded,failed,cancelled,skipped,gone"`
	Reason string          `json:"reason,omitempty" doc:"Why it was skipped, or failed."`
	Task   TaskID          `json:"task,omitzero" doc:"The task that it is."`
	Plan   PlanID          `json:"plan,omitzero" doc:"The plan that it is."`
	Begun  time.Time       `json:"started,omitzero" doc:"When its task or plan was added."`
	Ended  time.Time       `json:"ended,omitzero"`
	// Decided is when an occurrence of a backfill was decided, until its task or plan is added. An older
	// one means that the instant had an occurrence before.
	Decided time.Time `json:"decided,omitzero" doc:"When a backfill decided it; left out once its task or plan was added."`
	// Stop says that overlap: replace cancels it.
	Stop bool `json:"stop,omitempty" doc:"Another occurrence replaces it."`
	// Target is what it starts, if the schedule has another target since it was decided.
	Target *ScheduleTarget `json:"target,omitempty" doc:"What it starts, if the schedule was changed since it was decided."`
}

// A ScheduleTarget is what an occurrence starts: a task or a plan.
type ScheduleTarget struct {
	Task *ScheduledTask `json:"task,omitempty"`
	Plan *ScheduledPlan `json:"plan,omitempty"`
}

// OccurrenceKind says why there is an occurrence.
type OccurrenceKind string

const (
	ByTimetable OccurrenceKind = ""
	ByRun       OccurrenceKind = "run"      // a person wanted one at that instant
	ByBackfill  OccurrenceKind = "backfill" // a person wanted the instants of a span
)

// OccurrenceState is how an occurrence stands.
type OccurrenceState string

const (
	OccurrenceWaiting   OccurrenceState = "waiting"  // it starts after the one before
	OccurrenceStarting  OccurrenceState = "starting" // it is decided, and its task or plan is about to be added
	OccurrenceStarted   OccurrenceState = "started"
	OccurrenceSucceeded OccurrenceState = "succeeded"
	OccurrenceFailed    OccurrenceState = "failed" // its task or plan failed, or could not be made
	OccurrenceCancelled OccurrenceState = "cancelled"
	OccurrenceSkipped   OccurrenceState = "skipped" // it was not started
	OccurrenceGone      OccurrenceState = "gone"    // its task or plan was deleted before anybody saw its end
)

// Due returns when a node is to look at the schedule: at its next instant, or earlier. It is zero if
// there is nothing to look for.
func (s *Schedule) Due() time.Time {
	if s.Next.IsZero() || !s.Look.IsZero() && s.Look.Before(s.Next) {
		return s.Look
	}
	return s.Next
}

// Edition changes when a person changes the schedule, and stays when a node notes what it started.
func (s *Schedule) Edition() int64 { return s.Modified.UnixMicro() }

// Target returns what the schedule starts now.
func (s *ScheduleSettings) Target() ScheduleTarget { return ScheduleTarget{s.Task, s.Plan} }

// Text returns the schedule as a store keeps it: a JSON document without Revision, and the text of
// the plan file.
func (s Schedule) Text() (doc, file string, err error) {
	s.Revision = 0
	if s.Plan != nil {
		p := *s.Plan
		file, p.File.Text = p.File.Text, ""
		s.Plan = &p
	}
	b, err := json.Marshal(s)
	return string(b), file, err
}

// ScheduleOf reads what Text wrote.
func ScheduleOf(doc string, revision int64, file string) (s Schedule, err error) {
	if err := json.Unmarshal([]byte(doc), &s); err != nil {
		return s, fmt.Errorf("the document of a schedule: %w", err)
	}
	s.Revision = revision
	if s.Plan != nil {
		s.Plan.File.Text = file
	}
	return s, nil
}
