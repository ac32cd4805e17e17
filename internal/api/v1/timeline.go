package v1

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	mostRows  = 400  // of a time line where no number is asked for
	limitRows = 5000 // of a time line
	bins      = 200  // of the density of a row
	longest   = 24   // tasks of a row of many that are bars; failed ones are, too
	weighed   = 500  // tasks of a row that may become one
	mostLinks = 1000 // of a critical path
)

// Lasted is a time line that is asked for.
type Lasted struct {
	InPlan
	Rows int    `query:"rows" minimum:"0" maximum:"5000" doc:"About how many rows at most: a plan of more tasks is folded; 0: 400."`
	Open string `query:"open" doc:"The key of a row whose tasks have rows of their own, 200 of them."`
	From int    `query:"from" minimum:"0" doc:"With open: the first of them, counted from 0."`
}

func (d *drawings) timeline(ctx context.Context, in *Lasted) (*api.Timeline, error) {
	p, w, done, err := d.use(ctx, in.Plan)
	if err != nil {
		return nil, err
	}
	defer done()
	now, err := d.a.st.Now(ctx)
	if err != nil {
		return nil, err
	}
	rows := cmp.Or(in.Rows, mostRows)
	t, bars := w.timeline(&p, now, laid{most: min(rows, limitRows), open: in.Open, from: in.From})
	shown := slices.Clip(bars)
	for i := range t.Path {
		shown = append(shown, w.index[t.Path[i].ID])
	}
	if err := d.queued(ctx, t); err != nil {
		return nil, err
	}
	labels, err := d.label(ctx, w, shown)
	if err != nil {
		return nil, err
	}
	if labels != nil {
		t.ItemLabels = labels[:len(bars)]
		for i := range t.Path {
			t.Path[i].ItemLabel = labels[len(bars)+i]
		}
	}
	runs := map[int32]int{}
	for i, task := range bars {
		if w.state[task] == running {
			runs[task] = i
		}
	}
	if t.Progress, err = d.reached(ctx, &p, w, runs); err != nil {
		return nil, err
	}
	return t, nil
}

// A bar is the last attempt of one task.
type bar struct {
	task     int32
	from, to float64 // milliseconds after the plan's beginning
	runs     bool    // still
}

// timeline tells when tasks ran, up to now, and which task each bar is.
func (w *drawing) timeline(p *plan.Plan, now time.Time, l laid) (t *api.Timeline, tasks []int32) {
	ms := func(t time.Time) float64 { return math.Round(float64(t.Sub(p.Created).Microseconds())) / 1000 }
	t = &api.Timeline{
		Plan: p.ID, Begin: p.Created.UnixMilli(), Now: ms(now), End: ms(now), Ended: p.State.Ended(), Tasks: len(w.ids), States: stateWords,
		Rows: []string{}, Size: []int{}, Keys: []string{}, RowState: []int{}, Row: []int{}, From: []float64{}, To: []float64{}, State: []int{}, IDs: []string{}, Names: []string{}, Path: []api.PathLink{},
	}
	if !p.Retried.IsZero() {
		t.Retried = ms(p.Retried)
	}
	if t.Ended && !p.Ended.IsZero() {
		t.End = ms(p.Ended)
	}
	end := now
	if t.Ended && !p.Ended.IsZero() {
		end = p.Ended
	}
	for _, s := range rules.Idle(p.Created, p.Retried, end, w.runs) {
		t.Breaks = append(t.Breaks, [2]float64{ms(s.From), ms(s.To)})
	}
	f := w.folding(nil, l)
	byNode := make([][]bar, len(f.nodes))
	runs := w.runs // up to now, for the critical path
	if !t.Ended {
		runs = slices.Clone(runs)
	}
	spread := make([]bool, len(w.runs)) // the foreach tasks: their items have the bars
	for i := range w.runs {
		if of := w.runs[i].Of; of >= 0 {
			spread[of] = true
		}
	}
	for i := range w.runs {
		r := &w.runs[i]
		if r.Started.IsZero() || spread[i] {
			if !r.Ended.IsZero() {
				t.Started++
			}
			continue
		}
		t.Started++
		b := bar{task: int32(i), from: ms(r.Started), to: ms(r.Ended)}
		if r.Ended.IsZero() {
			if w.state[i] != running {
				continue // it waits to be tried again
			}
			b.to, b.runs = t.Now, true
			if !t.Ended && now.After(r.Started) {
				runs[i].Ended = now
			}
		}
		b.to = max(b.to, b.from) // another program's clock wrote it
		byNode[f.of[i]] = append(byNode[f.of[i]], b)
	}
	row, tasks := w.rows(t, &f, byNode)
	w.path(t, &f, runs, row, p.Created, ms)
	return t, tasks
}

// rows fills in the rows in which a task ran, by the start of the first. It returns the row of each
// node (-1 for none) and the task of each bar.
func (w *drawing) rows(t *api.Timeline, f *grouped, byNode [][]bar) (row []int, tasks []int32) {
	row = make([]int, len(f.nodes))
	var order []int
	first := make([]float64, len(f.nodes))
	for n, bars := range byNode {
		row[n] = -1
		if len(bars) > 0 {
			order = append(order, n)
			first[n] = slices.MinFunc(bars, func(a, b bar) int { return cmp.Compare(a.from, b.from) }).from
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(first[a], first[b]) })
	state, _ := f.states(w)
	named := map[string]int{}
	for _, n := range order {
		named[f.nodes[n].name]++
	}
	var from []int
	pieces := false
	for r, n := range order {
		row[n] = r
		name, group := f.nodes[n].name, &f.nodes[n].group
		switch {
		case group.Count < group.Of: // a piece of the one that is open
			name = fmt.Sprintf("%s, %d to %d of %d", name, group.From+1, group.From+group.Count, group.Of)
		case named[name] > 1:
			name = fmt.Sprintf("%s, step %d", name, f.nodes[n].level+1)
		}
		pieces = pieces || group.From > 0
		from = append(from, group.From)
		t.Rows, t.Size = append(t.Rows, name), append(t.Size, max(group.Count, 1))
		t.Keys, t.RowState = append(t.Keys, group.Key), append(t.RowState, state[n])
		bars := byNode[n]
		if group.Of > 0 {
			t.Bins = bins
			t.Dense = append(t.Dense, append([]float64{float64(r)}, density(bars, t)...))
			bars = w.chosen(bars, t)
		}
		for _, b := range bars {
			to := b.to
			if b.runs {
				to = -1
			}
			t.Row, t.From, t.To, t.State = append(t.Row, r), append(t.From, b.from), append(t.To, to), append(t.State, int(w.state[b.task]))
			t.IDs, t.Names = append(t.IDs, w.ids[b.task].String()), append(t.Names, w.names[b.task])
			tasks = append(tasks, b.task)
		}
	}
	if pieces {
		t.RowFrom = from
	}
	return row, tasks
}

// unbroken returns an instant on an axis without breaks.
func unbroken(t *api.Timeline, at float64) float64 {
	on := at
	for _, b := range t.Breaks {
		on -= max(0, min(at, b[1])-b[0])
	}
	return on
}

// chosen returns the bars of a row of many tasks, by when they began: the longest ones, and of each bin
// in which failed ones began the longest of these.
func (w *drawing) chosen(bars []bar, t *api.Timeline) []bar {
	width := max(unbroken(t, t.End), 1) / bins
	failed := map[int]bar{}
	for _, b := range bars {
		if !slices.Contains(failing, stateWords[w.state[b.task]]) && w.state[b.task] != allowed {
			continue
		}
		bin := int(unbroken(t, b.from) / width)
		if was, ok := failed[bin]; !ok || b.to-b.from > was.to-was.from {
			failed[bin] = b
		}
	}
	chosen := longestApart(bars)
	for _, b := range failed {
		if !slices.Contains(chosen, b) {
			chosen = append(chosen, b)
		}
	}
	slices.SortFunc(chosen, func(a, b bar) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.task, b.task)) })
	return chosen
}

// longestApart chooses the longest bars that do not lie over each other.
func longestApart(bars []bar) (chosen []bar) {
	slices.SortFunc(bars, func(a, b bar) int {
		return cmp.Or(cmp.Compare(b.to-b.from, a.to-a.from), cmp.Compare(a.from, b.from), cmp.Compare(a.task, b.task))
	})
	for _, b := range bars[:min(len(bars), weighed)] {
		if !slices.ContainsFunc(chosen, func(c bar) bool { return b.from < c.to && c.from < b.to || b.from == c.from }) {
			if chosen = append(chosen, b); len(chosen) == longest {
				break
			}
		}
	}
	return chosen
}

// density returns the first bin in which anything ran, then how many did, on average, in each bin up to the last such.
func density(bars []bar, t *api.Timeline) []float64 {
	width := max(unbroken(t, t.End), 1) / bins
	var within, rise [bins + 1]float64 // what is partly in a bin; and how many more are in all of it than in the one before
	for _, b := range bars {
		from, to := min(unbroken(t, b.from)/width, bins), min(unbroken(t, b.to)/width, bins)
		i, j := int(from), int(to)
		if i == j {
			within[i] += to - from
			continue
		}
		within[i] += float64(i+1) - from
		within[j] += to - float64(j)
		rise[i+1]++
		rise[j]--
	}
	first, last := -1, 0
	whole := 0.0
	for i := range bins {
		whole += rise[i]
		within[i] = math.Round((within[i]+whole)*100) / 100
		if within[i] > 0 {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return []float64{0}
	}
	return append([]float64{float64(first)}, within[first:last+1]...)
}

// path fills in the critical path of what ran. That of a plan that runs ends with what has run longest.
func (w *drawing) path(t *api.Timeline, f *grouped, runs []rules.Ran, row []int, begin time.Time, ms func(time.Time) float64) {
	links := rules.CriticalPath(begin, runs)
	if t.PathLeft = max(0, len(links)-mostLinks); t.PathLeft > 0 {
		lengths := api.Each(links, func(l *rules.Link) time.Duration { return l.Wait + l.Run })
		slices.Sort(lengths)
		least, room := lengths[t.PathLeft], mostLinks
		links = slices.DeleteFunc(links, func(l rules.Link) bool {
			keep := l.Wait+l.Run >= least && room > 0
			if keep {
				room--
			}
			return !keep
		})
	}
	for _, l := range links {
		to := ms(runs[l.Task].Ended)
		run := float64(l.Run.Microseconds()) / 1000
		from := math.Round((to-run)*1000) / 1000
		wait := unbroken(t, from) - unbroken(t, from-float64(l.Wait.Microseconds())/1000)
		t.Path = append(t.Path, api.PathLink{
			ID: w.ids[l.Task], Name: w.names[l.Task], Row: row[f.of[l.Task]], State: int(w.state[l.Task]), From: from, To: to,
			Wait: math.Round(wait*1000) / 1000,
		})
	}
}

// leastWait is how long a task waited of which the queue is told, in milliseconds.
const leastWait = 1000

// queued says in which queues the tasks of the path waited.
func (d *drawings) queued(ctx context.Context, t *api.Timeline) error {
	at := map[plan.TaskID]*api.PathLink{}
	for i := range t.Path {
		if t.Path[i].Wait >= leastWait {
			at[t.Path[i].ID] = &t.Path[i]
		}
	}
	if len(at) == 0 {
		return nil
	}
	found, err := d.a.st.Queues(ctx)
	if err != nil {
		return err
	}
	queues := make(map[plan.QueueID]*plan.Queue, len(found))
	for i := range found {
		queues[found[i].ID] = &found[i]
	}
	tasks, err := d.a.st.Tasks(ctx, store.TaskQuery{IDs: slices.Collect(maps.Keys(at)), Limit: len(at)})
	if err != nil {
		return err
	}
	for i := range tasks {
		q := queues[tasks[i].Queue]
		if q == nil || tasks[i].Attempt > 1 || !tasks[i].NotBefore.IsZero() {
			continue
		}
		l := at[tasks[i].ID]
		if l.Queue = q.Name; !q.Unlimited {
			l.Threads = &q.Threads
		}
	}
	return nil
}
