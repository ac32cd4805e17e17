package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// Nodes in processes of their own share one MongoDB database. The scenarios measure the nodes'
// common throughput, and the round trips of each task and of idle nodes. They also measure how soon
// others run the tasks of a dead node.
func clusterScenarios() []scenario {
	var all []scenario
	for _, nodes := range []int{1, 2, 4, 8} {
		for _, queues := range []int{1, 4, 16} {
			all = append(all, contest{nodes: nodes, queues: queues, threads: clusterThreads, tasks: 3000 + 1000*nodes, quick: 600}.scenario("claim"))
		}
	}
	for _, nodes := range []int{1, 8} {
		all = append(all, contest{nodes: nodes, queues: 1, threads: 1, tasks: 200, quick: 40}.scenario("one"))
	}
	return append(all,
		contest{nodes: 4, queues: 4, threads: 16, limit: 8, tasks: 1500, quick: 200}.scenario("limited"),
		scenario{"cluster/idle", "what four nodes in processes of their own ask of the MongoDB server in a minute with nothing to do", onMongoDB, clusterIdle},
		scenario{"cluster/rescue", "from a node's death to its tasks running on another one: MongoDB", onMongoDB, clusterRescue},
	)
}

// clusterThreads is how many threads a node has where tasks go in batches.
const clusterThreads = 256

// clusterLease is that of nodes that are to lose nothing: no pause of the machine is as long.
const clusterLease = time.Minute

// A contest is nodes that claim from the same queues. It is measured once.
type contest struct {
	nodes, queues, threads int
	limit                  int // of each queue; 0: none
	tasks, quick           int
}

func (l contest) scenario(group string) scenario {
	about := fmt.Sprintf("no-op tasks by nodes in processes of their own: %s, MongoDB", l.size())
	if l.limit > 0 {
		about += fmt.Sprintf(", each limited to %d tasks at once", l.limit)
	}
	return scenario{fmt.Sprintf("cluster/%s/%d/%d", group, l.nodes, l.queues), about, onMongoDB, l.run}
}

// size says how large the contest is.
func (l contest) size() string {
	return fmt.Sprintf("%s of %s, %s", counted(l.nodes, "node"), counted(l.threads, "thread"), counted(l.queues, "queue"))
}

// counted writes how many there are of something.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A race is one contest to its end.
type race struct {
	took    time.Duration
	trips   int            // round trips to the server for turns,
	asked   map[string]int // which these were,
	upkeep  int            // and all others
	samples int            // looks at the claimed and running tasks of limited queues,
	most    int            // and the most of one queue
}

func (l contest) run(ctx context.Context, t *trial) {
	tasks := t.size(l.tasks, l.quick)
	var last race
	samples, most := 0, 0
	t.again(1, func() {
		last = l.once(ctx, t, tasks)
		t.sample("rate", perSecond(tasks, last.took))
		t.sample("trips", float64(last.trips)/float64(tasks))
		samples, most = samples+last.samples, max(most, last.most)
		if l.limit > 0 {
			return // of which the peer knows none that holds for several nodes
		}
		bare := l.bare(ctx, t, tasks/10)
		t.sample("bare rate", perSecond(tasks/10, bare.took))
		t.sample("bare trips", float64(bare.trips)/float64(tasks/10))
	})
	note := fmt.Sprintf("%s; %d tasks, none of which ran twice", l.size(), tasks)
	if l.limit > 0 {
		note += fmt.Sprintf("; at most %d claimed and running of %d that each queue may have, in %d looks", most, l.limit, samples)
	}
	const peer = "findOneAndUpdate each"
	t.line("rate", "bare rate", result{What: "no-op tasks", Unit: "tasks/s", Peer: peer, Note: note})
	t.line("trips", "bare trips", result{What: "round trips a task", Peer: peer, Note: fmt.Sprintf(
		"%s; %.2f with beats, sweeps and looks at other nodes", share(last.asked, tasks), float64(last.trips+last.upkeep)/float64(tasks))})
}

// mostAsked is how many kinds of commands a note tells of.
const mostAsked = 3

// share tells which commands there were most of, for each of n.
func share(asked map[string]int, n int) string {
	kinds := slices.SortedFunc(maps.Keys(asked), func(a, b string) int { return asked[b] - asked[a] })
	var words []string
	for _, k := range kinds[:min(len(kinds), mostAsked)] {
		words = append(words, fmt.Sprintf("%s %.3f", k, float64(asked[k])/float64(n)))
	}
	return strings.Join(words, ", ")
}

// once has nodes run a plan on a new database.
func (l contest) once(ctx context.Context, t *trial, tasks int) (r race) {
	db := t.open(ctx)
	defer db.close(ctx)
	id := submitTo(ctx, db, l.queues, l.limit, tasks)
	c := startCrew(ctx, memberWord, l.members(db.uri, 0))
	defer c.stop()
	c.ready()
	settle()
	c.tell()
	for !db.over(ctx, id) {
		if l.limit > 0 {
			r.samples, r.most = r.samples+1, max(r.most, db.mostActive(ctx))
		}
	}
	ended := time.Now()
	c.tell()
	said := reports[memberReport](c)
	if l.limit > 0 && r.most > l.limit {
		failf("a queue had %d tasks claimed and running; it may have %d", r.most, l.limit)
	}
	r.sum(said, ended)
	check(eachOnce(said, tasks))
	succeeded(ctx, db, id, tasks)
	return r
}

// bare has as many bare loops do as much.
func (l contest) bare(ctx context.Context, t *trial, tasks int) (r race) {
	raw := t.newBareMongoDB(ctx)
	defer raw.close(ctx)
	raw.queues = l.queues
	raw.fill(ctx, flat(tasks))
	c := startCrew(ctx, memberWord, l.members(raw.uri, l.queues))
	defer c.stop()
	c.ready()
	settle()
	c.tell() // they end by themselves
	said := reports[memberReport](c)
	r.sum(said, slices.MaxFunc(said, func(a, b memberReport) int { return a.Ended.Compare(b.Ended) }).Ended)
	check(eachOnce(said, tasks))
	return r
}

func (l contest) members(uri string, bare int) []member {
	all := make([]member, l.nodes)
	for i := range all {
		all[i] = member{URI: uri, Name: nodeName(i), Threads: l.threads, Lease: clusterLease, Bare: bare}
	}
	return all
}

func nodeName(i int) plan.NodeName { return plan.NodeName(fmt.Sprintf("node%d", i+1)) }

// sum adds up what the nodes report. The time begins when the first of them could claim.
func (r *race) sum(reports []memberReport, ended time.Time) {
	first := slices.MinFunc(reports, func(a, b memberReport) int { return a.Began.Compare(b.Began) })
	r.took, r.asked, r.trips, r.upkeep = ended.Sub(first.Began), map[string]int{}, 0, 0
	for _, one := range reports {
		r.upkeep += one.Upkeep
		for what, n := range one.Commands {
			r.asked[what] += n
			r.trips += n
		}
	}
}

// eachOnce checks that so many tasks ran, none of them twice.
func eachOnce(reports []memberReport, tasks int) error {
	runs := map[string]int{}
	for _, r := range reports {
		for _, one := range r.Runs {
			if runs[one.Task]++; runs[one.Task] > 1 {
				return fmt.Errorf("task %s ran twice", one.Task)
			}
		}
	}
	if len(runs) != tasks {
		return fmt.Errorf("%d tasks ran, not %d", len(runs), tasks)
	}
	return nil
}

// makeQueues makes queues of no-op tasks, with a limit each if that is not 0, and returns their names.
func makeQueues(ctx context.Context, db *database, queues, limit int) []string {
	names := make([]string, queues)
	for i := range names {
		names[i] = fmt.Sprintf("queue%d", i+1)
		_ = must(db.CreateQueue(ctx, plan.Queue{Name: names[i], Plugin: "noop", Threads: limit, Unlimited: limit == 0}))
	}
	return names
}

// submitTo makes queues, and a plan of tasks that are dealt out among them, for whatever nodes come.
func submitTo(ctx context.Context, db *database, queues, limit, tasks int) plan.PlanID {
	names := makeQueues(ctx, db, queues, limit)
	spec := flat(tasks).spec("cluster", "noop")
	for i := range spec.Tasks {
		spec.Tasks[i].Queue = names[i%queues]
	}
	return must(submit.Submit(ctx, db, spec, false)).ID
}

// Nodes without work.
const (
	idleNodes  = 4
	idleQueues = 4
)

func clusterIdle(ctx context.Context, t *trial) {
	db := t.open(ctx)
	defer db.close(ctx)
	makeQueues(ctx, db, idleQueues, 0)
	c := startCrew(ctx, memberWord, contest{nodes: idleNodes, threads: clusterThreads}.members(db.uri, 0))
	defer c.stop()
	c.ready()
	within := t.lasts(time.Minute, 3*time.Second)
	c.tell()
	pause(ctx, within)
	c.tell()
	said := reports[memberReport](c)
	var all race
	all.sum(said, time.Now())
	nodeSeconds := idleNodes * int(within/time.Second)
	var used time.Duration
	for _, r := range said {
		used += r.Processor
	}
	t.add(result{What: "round trips a second, each node", Value: float64(all.trips+all.upkeep) / float64(nodeSeconds), Note: fmt.Sprintf(
		"%d nodes, %d queues, %v; %.1f of them beats, sweeps and looks at other nodes", idleNodes, idleQueues, within, float64(all.upkeep)/float64(nodeSeconds))})
	if used > 0 {
		t.add(result{What: "processor time a second, each node", Value: milliseconds(used) / float64(nodeSeconds), Unit: "ms"})
	}
}
