package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/feed"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// pollEvery is how often the feed of changes is read, and so how often at most anything is drawn.
const pollEvery = 100 * time.Millisecond

// A watcher follows a plan and shows it. It is one goroutine's but for notes.
type watcher struct {
	awaits []plan.Task // tasks that wait for a person, once nothing else of the plan can go on
	st     store.Store
	p      plan.Plan
	feed   *feed.Feed     // nil: no changes are read
	unread []store.Change // read from the feed, and not yet shown
	model  *view.Model
	view   view.Watch
	logs   *outputs // what the view shows of them; nil: it keeps no account
	mark   string   // for what is cut off labels
	live   bool     // the view shows the running tasks, the remaining time, and the causes of waiting
	lines  bool     // the view is lines that stay: why nothing runs is shown once
	most   int      // if more tasks are to run these lines are for failures and retries alone; 0: there is one for each task
	before int      // tasks that had ended before the plan was followed again, and do not count for that
	drawn  drawn
	brief  bool                    // so many are, or were, to run: no changes are read any more
	goOn   func(*plan.Plan) string // says how to continue if no node runs the plan; nil: a node of this process does
	typed  func(...string) string  // returns a command of ours as a person types it; set with goOn
	ending <-chan struct{}         // closed before that one takes no more, and in the end goes; nil if there is none
	notes  chan note               // told from other goroutines
	said   []string
	told   map[string]time.Time // when a text was last said
	note   note
	until  time.Time // note is shown; the zero time is for ever
	busy   time.Time // when something of the plan was last seen to run
	idle   string    // why nothing runs
	asked  time.Time // when that was found out
	heard  time.Time // when something was last told

	stalled bool      // no node runs the plan
	awaited bool      // the plan only waits for an answer
	looked  time.Time // when that was found out

	counts bool      // the view has no line for a task: the plan's counts are all that is read
	begun  time.Time // the watch
	due    time.Time // when the counts are read next,
	tried  time.Time // and the tasks in which something went wrong
	known  bool      // those are known from before the plan was followed

	few map[plan.TaskID]bool // the tasks that are no items, if these are at most fewTasks; nil: nobody has asked

	seen map[plan.TaskID]feed.Stamp // whose lines were shown

	from     time.Time           // when the plan was followed, by the store's clock; zero if nothing before it counts
	fresh    bool                // nothing of the plan had been tried before it was followed
	reset    bool                // the rest had none: a retry forgets the attempts of the tasks that it runs again
	attempts map[plan.TaskID]int // of each task, how many are known to have ended, those that were not seen included
}

// A note is something that a person should know about a run as a whole. A lasting one is good until the next one.
type note struct {
	text    string
	lasting bool
}

const (
	mostRuns  = 100              // tasks that run are read for a view
	noteTime  = 10 * time.Second // a note is shown that does not last
	againTime = time.Minute      // before the same is said again where it stays to be read
	idleTime  = 3 * time.Second  // nothing runs before it is said why; and between two looks for nodes
	quietTime = time.Minute      // lines that stay tell nothing before they tell what runs
	someNames = 3                // of what runs, then
	fewTasks  = 20               // where more are to run no success has a line in a log
)

// watch follows the plan until done is closed, or, if done is nil, until the plan has ended. While
// done is open, the view shows read errors, and the runner of the plan decides what they mean.
func (w *watcher) watch(ctx context.Context, done <-chan struct{}) error {
	defer w.view.Close()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	w.begun = time.Now()
	w.busy, w.told = w.begun, map[string]time.Time{}
	w.prepare()
	for last := false; ; {
		err := w.step(ctx)
		if err != nil && done == nil {
			return err
		}
		told := errors.Is(err, plan.ErrNotFound) || errors.Is(err, plan.ErrStoreGone) // by the caller
		if err != nil && ctx.Err() == nil && !told {
			text := "the store does not answer: " + err.Error()
			if view.Lost(err) {
				text = err.Error() + "; what runs goes on"
			}
			w.tell(note{text: text})
			_ = w.show(ctx, nil) // what the view cannot show now, it shows the next time
		}
		if last && len(w.said) > 0 {
			_ = w.show(ctx, nil) // what the caller tells keeps back no note
		}
		if last || done == nil && w.p.State.Ended() || ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		case n := <-w.notes:
			w.tell(n)
		case <-done:
			last = true // what happened before it was closed is shown yet
			w.due, w.tried = time.Time{}, time.Time{}
			w.ending = done
			w.drain()
		}
	}
}

// prepare makes what the watcher remembers of tasks.
func (w *watcher) prepare() {
	if w.attempts != nil {
		return
	}
	w.attempts = map[plan.TaskID]int{}
	if w.seen = map[plan.TaskID]feed.Stamp{}; w.feed != nil {
		w.seen = w.feed.Seen
	}
}

// follow begins to read the changes of the plan from now on, if the view has lines for them.
func (w *watcher) follow(ctx context.Context) error {
	if !w.fresh {
		w.before = w.p.Counts.Done()
	}
	if !w.counts && !w.isLarge() {
		var err error
		if w.feed, err = feed.Follow(ctx, w.st, w.p.ID); err != nil {
			return err
		}
		if w.most > 0 {
			w.feed.Pages = 1 // and then a look at how large the plan is by now
		}
		if w.p, err = w.st.Plan(ctx, w.p.ID); err != nil { // it may have changed before the feed began
			return err
		}
	}
	w.model.SetCounts(w.p.Counts, time.Now())
	return nil
}

// catchUp adds the tasks that ended before the feed began. A foreach of no items ends as its plan
// is submitted.
func (w *watcher) catchUp(ctx context.Context) error {
	if w.p.Counts.Unfinished() == w.p.Counts.Total() {
		return nil
	}
	q := store.TaskQuery{Plan: w.p.ID, Statuses: slices.Concat(brokenStatuses, []plan.Status{plan.Succeeded, plan.Cancelled})}
	return store.EachTask(ctx, w.st, q, func(t *plan.Task) error {
		w.feed.Seen[t.ID] = feed.Stamp{At: t.Modified.UnixNano(), Status: t.Status, Attempt: t.Attempt}
		w.unread = append(w.unread, changeOf(t))
		return nil
	})
}

// tell takes in a note.
func (w *watcher) tell(n note) {
	now := time.Now()
	if at, ok := w.told[n.text]; !ok || now.Sub(at) >= againTime {
		w.said = append(w.said, n.text)
		w.told[n.text] = now
	}
	w.note, w.until = n, time.Time{}
	if !n.lasting {
		w.until = now.Add(noteTime)
	}
}

// drain takes in the notes that are waiting: the last of a node come just before its end.
func (w *watcher) drain() {
	for {
		select {
		case n := <-w.notes:
			w.tell(n)
		default:
			return
		}
	}
}

// step reads what is new and shows it.
func (w *watcher) step(ctx context.Context) error {
	if err := w.know(ctx); err != nil {
		return err
	}
	if w.brief = w.brief || w.counts || w.isLarge(); w.brief {
		return w.stepCounts(ctx)
	}
	changes, err := w.feed.Next(ctx)
	w.unread = append(w.unread, changes...)
	if err != nil {
		return err
	}
	if len(w.unread) > 0 || w.feed.Anew || w.live && w.due.IsZero() {
		if err := w.reread(ctx); err != nil {
			return err
		}
		if err := w.lookRunning(ctx, w.live); err != nil {
			return err
		}
		w.feed.Anew, w.due = false, time.Now()
	}
	began, err := w.began(ctx, w.unread)
	if err != nil {
		return err
	}
	if err := errors.Join(w.look(ctx), w.wonder(ctx)); err != nil {
		return err
	}
	values, err := w.values(ctx, w.unread)
	if err != nil {
		return err
	}
	var events []view.Event
	for _, c := range w.unread {
		if !c.Task.IsZero() {
			events = w.add(events, c, began, values)
		}
	}
	w.unread = w.unread[:0]
	return w.tellEvents(ctx, events)
}

// isLarge reports whether too many tasks are to run for a line for each.
func (w *watcher) isLarge() bool { return w.most > 0 && w.p.Counts.Total()-w.before > w.most }

// add adds the events of a task's change, and those of earlier attempts.
func (w *watcher) add(events []view.Event, c store.Change, began map[plan.TaskID]time.Time, names values) []view.Event {
	t := plan.Task{ID: c.Task, Name: c.Name}
	e := eventOf(&c)
	e.Took, e.Label = -1, names.label(&t, w.mark)
	start, known := began[c.Task]
	e.Again = c.Status == plan.Held && known && c.Attempt > 0 // else it waits for something else than its next attempt
	if !start.IsZero() && (e.Again || c.Status.Finished()) {
		e.Took = max(0, c.At.Sub(start))
	}
	return append(append(events, w.missed(&e)...), e)
}

// tellEvents shows the events. Changes of one write have no order of their own. So tasks that ran
// come first, items before their foreach task, and their consequences after them.
func (w *watcher) tellEvents(ctx context.Context, events []view.Event) error {
	slices.SortStableFunc(events, func(x, y view.Event) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(order(&x), order(&y)))
	})
	tasks := api.Each(events, func(e *view.Event) plan.Task {
		return plan.Task{ID: e.Task, Status: e.Status, Reason: e.Reason, Detail: e.Detail}
	})
	err := tellSkips(ctx, w.st, tasks)
	for i := range tasks {
		events[i].Detail = tasks[i].Detail
	}
	return errors.Join(err, w.show(ctx, events)) // what is known is shown in any case: it is not read again
}

// reread reads how the plan stands now. Where that fails it stays as it was, with the id that the next look asks for.
func (w *watcher) reread(ctx context.Context) error {
	p, err := w.st.Plan(ctx, w.p.ID)
	if err == nil {
		w.p = p
		w.model.SetCounts(p.Counts, time.Now())
	}
	return err
}

// missed returns the ends of attempts before a change that nobody saw: stores may leave out states
// in between. It leaves out attempts from before the watch.
func (w *watcher) missed(e *view.Event) (past []view.Event) {
	before, known := w.attempts[e.Task]
	over := e.Attempt // the last one that has ended
	if e.Status.Active() {
		over = max(0, over-1)
	}
	if !known && !w.fresh && !w.reset && !(w.brief && w.known) { // else what had gone wrong before is known
		before = over
	}
	w.attempts[e.Task] = over
	last, detail := over, e.Detail // an attempt that has not ended keeps why the one before it failed
	if e.Status == plan.Held || e.Status.Finished() {
		last, detail = over-1, "" // the change itself tells of that one, or it made the items of a foreach task
	}
	for n := before + 1; n <= last; n++ {
		c := *e
		c.Status, c.Attempt, c.Reason, c.Detail, c.At = plan.Held, n, plan.ReasonNone, "", e.At.Add(-time.Nanosecond)
		if n == last {
			c.Detail = detail
		}
		c.Took, c.Again, c.Past = -1, false, true
		past = append(past, c)
	}
	return past
}

// order is the place of an event among those of one write.
func order(e *view.Event) int {
	switch {
	case !e.Of.IsZero():
		return 0
	case e.Took >= 0:
		return 1
	}
	return 2
}

// remind tells what runs if lines have told nothing for a while. The log of a run that is silent
// for long looks like one that hangs.
func (w *watcher) remind(ctx context.Context, now time.Time, events []view.Event) error {
	if len(events)+len(w.said) > 0 || w.heard.IsZero() {
		w.heard = now
	}
	if !w.lines || now.Sub(w.heard) < quietTime {
		return nil
	}
	if err := w.lookRunning(ctx, true); err != nil {
		return err
	}
	w.heard = now
	v := w.model.Frame(now)
	var names []string
	for _, r := range v.Running[:min(someNames, len(v.Running))] {
		names = append(names, fmt.Sprintf("%s (%s)", r.Name, duration.Text(r.For)))
	}
	if more := len(v.Running) + v.More - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) > 0 {
		w.said = append(w.said, "running: "+strings.Join(names, ", "))
	}
	return nil
}

func (w *watcher) show(ctx context.Context, events []view.Event) error {
	failed := w.remind(ctx, time.Now(), events)
	m := view.Moment{Now: time.Now(), Plan: &w.p, Events: events, Said: w.said, Note: w.note.text, Brief: w.brief}
	if !w.until.IsZero() && m.Now.After(w.until) {
		w.note, m.Note = note{}, ""
	}
	if m.Note == "" {
		m.Note = w.idle
	}
	w.said = nil
	return errors.Join(failed, w.draw(ctx, &m), w.view.Show(&m))
}

// look tells when the plan comes to wait only for an answer. It also tells when the last node that ran the
// plan is gone, which by the tasks' states alone looks like work.
func (w *watcher) look(ctx context.Context) error {
	now := time.Now()
	if w.goOn == nil || w.p.State.Ended() || now.Sub(w.looked) < idleTime {
		return nil
	}
	w.looked = now
	nodes, err := w.st.Instances(ctx)
	if err == nil && !w.brief { // one that was deleted at its end is not told of by every store's feed
		err = w.reread(ctx)
	}
	if err != nil {
		return err
	}
	asked, only, err := awaiting(ctx, w.st, &w.p)
	if err != nil {
		return err
	}
	was, told := w.stalled, w.awaited
	w.stalled, w.awaited = explain.Stalled(nodes, &w.p) && !only, only
	switch {
	case only && !told:
		w.tell(note{waitsFor(asked, &w.p, w.typed), true})
	case w.stalled && !was:
		outside, err := explain.Outside(ctx, w.st, nodes, &w.p)
		if err != nil {
			return err
		}
		w.tell(note{fmt.Sprintf("no node runs %s any more%s; %s", w.p.Title(), stillRuns(outside), w.goOn(&w.p)), true})
	case was && !w.stalled, told && !only:
		w.note = note{}
	}
	return nil
}

// wonder finds out why nothing of the plan has run for a while.
func (w *watcher) wonder(ctx context.Context) error {
	now, c := time.Now(), &w.p.Counts
	works := func() bool {
		if works := c.Running+c.Claimed > 0 || c.Unfinished() == 0; !works && (w.live || w.lines) {
			return false
		}
		w.busy, w.idle = now, ""
		return true
	}
	if works() || now.Sub(w.busy) < idleTime || now.Sub(w.asked) < time.Second {
		return nil
	}
	w.asked = now
	if err := w.reread(ctx); err != nil || works() { // the feed may not tell yet what others run
		return err
	}
	was := w.idle
	w.idle = ""
	for _, s := range []plan.Status{plan.Queued, plan.Held} {
		waits, err := w.st.Tasks(ctx, store.TaskQuery{Plan: w.p.ID, Statuses: []plan.Status{s}, Limit: 1})
		if err != nil {
			return err
		}
		if len(waits) == 0 {
			continue
		}
		links, err := explain.Task(ctx, w.st, waits[0].ID)
		if err != nil {
			return err
		}
		last := &links[len(links)-1]
		if last.Task.Status.Active() || last.Task.Status.Finished() {
			return nil // which it has come to since
		}
		values, err := itemKeys(ctx, w.st, []plan.Task{last.Task})
		if err != nil {
			return err
		}
		select {
		case <-w.ending: // asked after the store was: that the node takes no more, or is gone, is no cause
			return nil
		default:
		}
		text := fmt.Sprintf("nothing runs: %s is %s: %s", values.label(&last.Task, w.mark), states.OfTask(&last.Task), last.Why)
		if was == "" && !w.live {
			w.said = append(w.said, text)
		}
		w.idle = text
		return nil
	}
	return nil
}

// values returns the values of the items that the view names. These are items that failed or are
// tried again, and, in a view with a line for each end, all others, which are many.
func (w *watcher) values(ctx context.Context, changes []store.Change) (values, error) {
	lines := w.logs != nil
	var named []plan.Task
	for _, c := range changes {
		if lines && c.Status.Finished() || view.Broken(c.Status) || (c.Status == plan.Held || c.Status == plan.Queued) && c.Attempt > 0 || c.Attempt > 1 {
			named = append(named, plan.Task{ID: c.Task, Of: c.Of})
		}
	}
	return itemKeys(ctx, w.st, named)
}

// began returns when the attempts began that the changes end. The time is zero if another attempt has
// begun since. A foreach task that has made its items is held as well, and has ended no attempt.
func (w *watcher) began(ctx context.Context, changes []store.Change) (map[plan.TaskID]time.Time, error) {
	attempt := map[plan.TaskID]int{}
	var ids []plan.TaskID
	for _, c := range changes {
		if (c.Status == plan.Held || c.Status.Finished()) && c.Attempt > 0 && !c.Task.IsZero() {
			attempt[c.Task] = c.Attempt
			ids = append(ids, c.Task)
		}
	}
	tasks, err := store.TasksByID(ctx, w.st, store.TaskQuery{}, ids)
	began := make(map[plan.TaskID]time.Time, len(ids))
	for i := range tasks {
		switch t := &tasks[i]; {
		case (t.Expanding || t.Expanded) && !t.Status.Finished():
		case t.Attempt == attempt[t.ID]:
			began[t.ID] = t.Started
		default:
			began[t.ID] = time.Time{}
		}
	}
	return began, err
}
