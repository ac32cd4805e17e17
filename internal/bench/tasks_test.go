package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/demo"
)

// The scenarios of this file run plans in a node inside this process.

// smallOutput is what a no-op task of a layered plan returns to its children.
var smallOutput = json.RawMessage(`{"value":"0123456789"}`)

// mostThreads is the number of threads for which there are floors. Other figures are for fewer
// threads.
const mostThreads = 256

// counting is a plugin that counts its tasks, and the copies of its output among the params that
// they get.
type counting struct {
	output    json.RawMessage
	seen, ran atomic.Int64
}

// Run implements plugins.Plugin.
func (c *counting) Run(_ context.Context, t *plugins.Task) plan.Result {
	c.ran.Add(1)
	if c.output != nil {
		c.seen.Add(int64(bytes.Count(t.Params, c.output)))
	}
	return plan.Result{Status: plan.Succeeded, Output: c.output}
}

// noop runs the graph on a new database. Each task returns the output.
func (m *measurement) noop(g *graph, threads int, output json.RawMessage) drive {
	p := &counting{output: output}
	d := m.runNew(g.spec("noop", "noop"), threads, named{"noop": p})
	// Each need is in the child's params twice, in needs and in args.
	if want := int64(2 * g.edges()); output != nil && p.seen.Load() != want {
		failf("children got %d copies of their parents' outputs, not %d", p.seen.Load(), want)
	}
	return d
}

// layers is a layered plan of eight layers at least, which are 1,000 wide if there are tasks enough.
func layers(n int) *graph { return layered(n, min(1000, n/8)) }

func noopScenarios() (all []scenario) {
	for _, l := range []struct {
		on           kind
		shape        string
		make         func(n int) *graph
		tasks, quick int
	}{
		{onSQLite, "flat", flat, 60_000, 2_000}, {onSQLite, "layered", layers, 40_000, 3_000},
		{onMongoDB, "flat", flat, 6_000, 600}, {onMongoDB, "layered", layers, 4_000, 2_000},
	} {
		for _, threads := range []int{8, 64, mostThreads} {
			all = append(all, scenario{fmt.Sprintf("noop/%s/%s/%d", l.on, l.shape, threads), l.on, func(m *measurement) {
				tasks := size(l.tasks, l.quick)
				if threads == 8 {
					tasks /= 4 // which are as good for a rate
				}
				g := l.make(tasks)
				var output json.RawMessage
				if g.edges() > 0 {
					output = smallOutput
				}
				m.repeat(func() {
					ours := m.noop(g, threads, output)
					raw, _ := m.bare(g, threads)
					m.pair("tasks", "tasks/s", ours.rate(), "bare driver", raw.rate())
					if threads == mostThreads {
						m.pair("submission", "tasks/s", perSecond(ours.tasks, ours.submitted), "bare inserts", perSecond(raw.tasks, raw.submitted))
					}
					m.note("%d tasks, %d needs, %.0f endings a turn", g.tasks(), g.edges(), ours.turn)
				})
			}})
		}
	}
	return all
}

// fan compares 1 → many → 1 with as many tasks that need nothing.
func fan(m *measurement) {
	width, kibibyte := size(20_000, 500), json.RawMessage(`"`+strings.Repeat("x", 1022)+`"`)
	m.repeat(func() {
		joined, loose := m.noop(fanOutIn(width), mostThreads, kibibyte), m.noop(flat(width+2), mostThreads, kibibyte)
		m.pair("joined", "µs/task", joined.each(), "flat, 1 KiB outputs", loose.each())
		m.note("1 → %d → 1; the join got all outputs; %.0f endings a turn", width, joined.turn)
	})
}

// chains is so many chains of so many tasks each.
func chains(n, length int) *graph {
	g := flat(n * length)
	for i := n; i < n*length; i++ {
		g.needs[i] = []int{i - n}
	}
	return g
}

// stepped submits and runs a plan of so many items and so many steps of each, and returns what that took
// for each task, with its submission.
func (m *measurement) stepped(items, steps int) float64 {
	s := plan.New("steps")
	list := make([]int, items)
	f := &plan.Foreach{List: must(json.Marshal(list))}
	for i := range steps {
		s.Add(plan.TaskSpec{Name: taskName(i), Plugin: "noop", Foreach: f})
		f = &plan.Foreach{Each: []string{taskName(i)}}
	}
	db := m.open()
	defer db.close()
	return m.ranIn(db, s, items*steps)
}

// ranIn submits and runs a plan that has so many tasks at its end, and returns the microseconds for each of these.
func (m *measurement) ranIn(db *database, s *plan.Spec, tasks int) float64 {
	settle()
	start := time.Now()
	p, _ := m.submitted(db, s)
	node := must(den.New(db, den.Config{Plugins: named{"noop": &counting{output: smallOutput}}.registry(), Name: "bench", Threads: mostThreads, Plan: p.ID}))
	check(node.Run(m.Context()))
	took := time.Since(start)
	m.succeeded(db, p.ID, tasks)
	return float64(took.Microseconds()) / float64(tasks)
}

// steps compares three steps of each item with chains of three tasks that are written out, and two steps of
// many items with those of few.
func steps(m *measurement) {
	items, few, many := size(10_000, 300), size(1000, 100), size(100_000, 1000)
	if m.on == onMongoDB {
		items, few, many = size(1000, 100), size(200, 50), size(2000, 200)
	}
	m.repeat(func() {
		db := m.open()
		written := m.ranIn(db, chains(items, 3).spec("chains", "noop"), 3*items)
		db.close()
		m.pair("three-steps", "µs/task", m.stepped(items, 3), "chains written out", written)
		m.pair("two-steps", "µs/task", m.stepped(many, 2), fmt.Sprintf("of %d items", few), m.stepped(few, 2))
		m.note("each, with the submission; %d and %d items, %d threads", items, many, mostThreads)
	})
}

// hop measures a chain: from the end of a parent to the start of its child.
func hop(m *measurement) {
	g := chain(size(2000, 200))
	if m.on == onMongoDB {
		g = chain(size(400, 50))
	}
	m.repeat(func() {
		var h hops
		m.runNew(g.spec("chain", "hop"), execJobs, named{"hop": &h})
		_, turns := m.bare(g, execJobs)
		m.pair("hop-p50", "ms", milliseconds(median(h.all)), "bare driver's turn", milliseconds(median(turns)))
		m.pair("hop-p99", "ms", milliseconds(quantile(h.all, 0.99)), "bare driver's turn", milliseconds(quantile(turns, 0.99)))
		m.note("%d hops", len(h.all))
	})
}

// hops is a plugin for the tasks of one chain: it notes the time from the end of each to the start of the next.
type hops struct {
	mu   sync.Mutex
	last time.Time
	all  []time.Duration
}

// Run implements plugins.Plugin.
func (h *hops) Run(context.Context, *plugins.Task) plan.Result {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.last.IsZero() {
		h.all = append(h.all, now.Sub(h.last))
	}
	h.last = time.Now()
	return plan.Result{Status: plan.Succeeded}
}

// largeTasks is the size of the plan that has to be as cheap a task as a small one.
const largeTasks = 100_000

// largeCost compares the cost of a task in plans of one shape and several sizes.
func largeCost(shape func(n int) *graph) func(*measurement) {
	return func(m *measurement) {
		small := shape(size(1000, 200))
		m.repeat(func() {
			var costs []float64
			for range size(3, 1) { // it is soon over
				costs = append(costs, m.noop(small, mostThreads, nil).each())
			}
			for _, n := range []int{size(10_000, 500), size(largeTasks, 2000)} {
				m.pair(fmt.Sprintf("%d-tasks", n), "µs/task", m.noop(shape(n), mostThreads, nil).each(), fmt.Sprintf("%d tasks", small.tasks()), median(costs))
			}
			m.note("%d threads", mostThreads)
		})
	}
}

// makespanThreads is how many tasks run at once, here and in the ideal schedule.
const makespanThreads = 10

func makespanScenarios() []scenario {
	all := []scenario{{"makespan/zk-plan", onSQLite, func(m *measurement) {
		g := stress(size(100, 20), 10)
		makespan(m, g.spec("stress", "stress"), g, named{"stress": plugins.Func(func(ctx context.Context, _ *plugins.Task) (any, error) {
			return nil, sleep(ctx, stressLasts)
		})})
	}}}
	for _, w := range []struct{ name, file string }{
		{"fork-join", "helloworld-forkjoin-10-chameleon"}, {"montage", "montage-chameleon-2mass-01d-001"}, {"epigenomics", "epigenomics-chameleon-hep-2seq-100k-001"},
	} {
		all = append(all, scenario{"makespan/" + w.name, onSQLite, func(m *measurement) {
			recorded := must(os.ReadFile(filepath.Join("..", "planfile", "testdata", "workloads", w.file+".json.gz")))
			_, g := imported(recorded, 1)
			spec, g := imported(recorded, size(2*time.Second, 200*time.Millisecond).Seconds()/g.listSchedule(makespanThreads).Seconds())
			makespan(m, spec, g, named{demo.Name: demo.Plugin})
		}})
	}
	return all
}

// makespan runs a plan of sleeping tasks and compares how long that takes with the ideal schedule of its graph.
func makespan(m *measurement, spec *plan.Spec, g *graph, with named) {
	m.repeat(func() {
		d := m.runNew(spec, makespanThreads, with)
		m.pair("makespan", "ms", milliseconds(d.took), "greedy list schedule", milliseconds(g.listSchedule(makespanThreads)))
		m.note("%d tasks, %d needs, %d threads", g.tasks(), g.edges(), makespanThreads)
	})
}

// imported reads a recorded workflow as sluice plan import does, and its graph.
func imported(recorded []byte, scale float64) (*plan.Spec, *graph) {
	file := must(planfile.ImportWfFormat(bytes.NewReader(recorded), scale))
	spec := must(planfile.Parse("imported.yaml", file, planfile.Options{}))
	return spec, graphOf(spec)
}

// sleep waits, and returns an error if ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// idle counts how often a node with nothing to do asks its store in a minute. zk-plan's back-off
// allows one poll at its start and one after each wait.
func idle(m *measurement) {
	within := size(time.Minute, 3*time.Second)
	var poll backoff.Poll
	polls := 1
	for at := poll.Next(); at <= within; at += poll.Next() {
		polls++
	}
	m.repeat(func() {
		db := m.open()
		defer db.close()
		through := &meter{Node: db}
		node := must(den.New(through, den.Config{Plugins: named{"noop": &counting{}}.registry(), Name: "idle", Threads: execJobs}))
		limited, cancel := context.WithTimeout(m.Context(), within)
		defer cancel()
		check(node.Run(limited))
		m.pair("turns", "polls", float64(through.turns), "the back-off allows", float64(polls))
		m.pair("sweeps", "polls", float64(through.sweeps), "the back-off allows", float64(polls))
		m.pair("beats", "beats", float64(len(through.beats)), "one a second, and the first", within.Seconds()+1)
		m.note("in %v", within)
	})
}

// reportEvery is how often each task says how far it is.
const reportEvery = 100 * time.Millisecond

// reporting measures the cost of progress reports: the node keeps the last ones, and sends them with
// its next heartbeat.
func reporting(m *measurement) {
	n, lasts := size(1000, 100), size(5*time.Second, time.Second)
	m.repeat(func() {
		silent, _ := m.reportingOnce(n, lasts, false)
		loud, beat := m.reportingOnce(n, lasts, true)
		m.pair("processor", "ms/s", 1000*loud.Seconds()/lasts.Seconds(), "tasks that tick and say nothing", 1000*silent.Seconds()/lasts.Seconds())
		m.pair("beat", "ms", milliseconds(beat), "", 0)
		m.note("%d tasks, each every %v for %v; the beats are with what the tasks said", n, reportEvery, lasts)
	})
}

// reportingOnce returns the processor time of this process while n tasks ran for the time, and how long a beat took meanwhile.
func (m *measurement) reportingOnce(n int, lasts time.Duration, tells bool) (used, beat time.Duration) {
	db := m.open()
	defer db.close()
	all, over := make(chan struct{}), make(chan struct{})
	var running atomic.Int64
	ticks := plugins.Func(func(ctx context.Context, t *plugins.Task) (any, error) {
		if running.Add(1) == int64(n) {
			close(all)
		}
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-over:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-tick.C:
			}
			if tells {
				if err := t.Progress(float64(i%1000)/1000, fmt.Sprintf("copied %d of 1000", i%1000)); err != nil {
					return nil, err
				}
			}
		}
	})
	through, ended := &meter{Node: db}, make(chan error, 1)
	go func() {
		ended <- try(func() { m.runPlan(db, through, flat(n).spec("progress", "ticks"), n, named{"ticks": ticks}) })
	}()
	select {
	case <-all:
	case err := <-ended:
		failf("the plan ended before all of its tasks ran: %w", err)
	}
	before, first := processorTime(), len(through.beaten())
	time.Sleep(lasts)
	used = processorTime() - before
	if beats := through.beaten()[first:]; len(beats) > 0 {
		beat = median(beats)
	}
	// A beat comes each second, so that a short time may have none.
	for deadline := time.Now().Add(time.Minute); tells && through.told() == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	close(over)
	check(<-ended)
	if told := through.told() > 0; told != tells {
		failf("%d reports came to the store: this was not the work to measure", through.told())
	}
	return used, beat
}
