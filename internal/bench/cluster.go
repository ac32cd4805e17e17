package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// Nodes in processes of their own share one MongoDB database. The scenarios measure their common
// throughput, the round trips of each task and of idle nodes, and how soon others run the tasks of
// a dead node.
func clusterScenarios() []scenario {
	var all []scenario
	for _, nodes := range []int{1, 2, 4, 8} {
		for _, queues := range []int{1, 4, 16} {
			all = append(all, contest{
				nodes: nodes, queues: queues, threads: clusterThreads, tasks: 3000 + 1000*nodes, quick: 600, reps: 1, floor: 0.2,
			}.scenario("claim"))
		}
	}
	for _, nodes := range []int{1, 8} {
		all = append(all, contest{nodes: nodes, queues: 1, threads: 1, tasks: 200, quick: 40, reps: 1}.scenario("one"))
	}
	return append(all,
		contest{nodes: 4, queues: 4, threads: 16, limit: 8, tasks: 1500, quick: 200, reps: 1}.scenario("limited"),
		scenario{name: "cluster/idle", about: "what four nodes in processes of their own ask of the MongoDB server in a minute with nothing to do", run: clusterIdle},
		scenario{name: "cluster/rescue", about: "from a node's death to its tasks running on another one: MongoDB", run: clusterRescue},
	)
}

// clusterThreads is how many threads a node has where tasks go in batches.
const clusterThreads = 256

// clusterLease is that of nodes that are to lose nothing: no pause of the machine is as long.
const clusterLease = time.Minute

// A contest is nodes that claim from the same queues.
type contest struct {
	nodes, queues, threads int
	limit                  int // of each queue; 0: none
	tasks, quick, reps     int
	floor                  float64 // round trips a task; 0: none
}

func (l contest) scenario(group string) scenario {
	about := fmt.Sprintf("no-op tasks by nodes in processes of their own: %s, MongoDB", l.size())
	if l.limit > 0 {
		about += fmt.Sprintf(", each limited to %d tasks at once", l.limit)
	}
	return scenario{name: fmt.Sprintf("cluster/%s/%d/%d", group, l.nodes, l.queues), about: about, run: l.run}
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

func (l contest) run(ctx context.Context, b *bench, add func(result)) error {
	if why := b.missing(onMongoDB); why != "" {
		add(result{What: "no-op tasks", Skipped: why})
		return nil
	}
	tasks := b.size(l.tasks, l.quick)
	var rates, trips, bareRates, bareTrips []float64
	var last race
	samples, most := 0, 0
	for range b.repetitions(l.reps) {
		var err error
		if last, err = l.once(ctx, b, tasks); err != nil {
			return err
		}
		rates, trips = append(rates, perSecond(tasks, last.took)), append(trips, float64(last.trips)/float64(tasks))
		samples, most = samples+last.samples, max(most, last.most)
		if l.limit > 0 {
			continue // the peer has no limit over several nodes
		}
		bare, err := l.bare(ctx, b, tasks/10)
		if err != nil {
			return fmt.Errorf("bare loops: %w", err)
		}
		bareRates, bareTrips = append(bareRates, perSecond(tasks/10, bare.took)), append(bareTrips, float64(bare.trips)/float64(tasks/10))
	}
	rate := result{
		What: "no-op tasks", Value: median(rates), Unit: "tasks/s",
		Note: fmt.Sprintf("%s; %d tasks, none of which ran twice", l.size(), tasks),
	}
	if l.limit > 0 {
		rate.Note += fmt.Sprintf("; at most %d claimed and running of %d that each queue may have, in %d looks", most, l.limit, samples)
	}
	trip := result{What: "round trips a task", Value: median(trips), Note: fmt.Sprintf(
		"%s; %.2f with beats, sweeps and looks at other nodes", share(last.asked, tasks), float64(last.trips+last.upkeep)/float64(tasks))}
	if l.floor > 0 {
		trip.Floor = atMost(l.floor)
	}
	if len(bareRates) > 0 {
		rate.Peer, rate.PeerVal = "findOneAndUpdate each", median(bareRates)
		trip.Peer, trip.PeerVal = rate.Peer, median(bareTrips)
	}
	add(rate)
	add(trip)
	return nil
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
func (l contest) once(ctx context.Context, b *bench, tasks int) (r race, err error) {
	db, err := b.open(ctx, onMongoDB)
	if err != nil {
		return r, err
	}
	defer closing(ctx, db, &err)
	id, err := submitTo(ctx, db, l.queues, l.limit, tasks)
	if err != nil {
		return r, err
	}
	look, err := newLookout(db.uri)
	if err != nil {
		return r, err
	}
	defer closing(ctx, look, &err)
	c, err := startCluster(ctx, l.members(db.uri, 0))
	defer func() { err = errors.Join(err, c.stop()) }()
	if err != nil {
		return r, err
	}
	settle()
	if err := c.begin(); err != nil {
		return r, err
	}
	for over := false; !over; {
		if over, err = look.over(ctx, id); err != nil {
			return r, err
		}
		if l.limit > 0 {
			n, err := look.mostActive(ctx)
			if err != nil {
				return r, err
			}
			r.samples, r.most = r.samples+1, max(r.most, n)
		}
	}
	ended := time.Now()
	reports, err := c.end(false)
	if err != nil {
		return r, err
	}
	if l.limit > 0 && r.most > l.limit {
		return r, fmt.Errorf("a queue had %d tasks claimed and running; it may have %d", r.most, l.limit)
	}
	r.sum(reports, ended)
	return r, errors.Join(eachOnce(reports, tasks), succeeded(ctx, db, id, tasks))
}

// bare has as many bare loops do as much.
func (l contest) bare(ctx context.Context, b *bench, tasks int) (r race, err error) {
	raw, err := b.newBareMongoDB(ctx)
	if err != nil {
		return r, err
	}
	defer closing(ctx, raw, &err)
	raw.queues = l.queues
	if err := raw.fill(ctx, flat(tasks)); err != nil {
		return r, err
	}
	c, err := startCluster(ctx, l.members(raw.uri, l.queues))
	defer func() { err = errors.Join(err, c.stop()) }()
	if err != nil {
		return r, err
	}
	settle()
	if err := c.begin(); err != nil {
		return r, err
	}
	reports, err := c.end(true)
	if err != nil {
		return r, err
	}
	last := slices.MaxFunc(reports, func(a, b memberReport) int { return a.Ended.Compare(b.Ended) })
	r.sum(reports, last.Ended)
	return r, eachOnce(reports, tasks)
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
func makeQueues(ctx context.Context, db *database, queues, limit int) ([]string, error) {
	names := make([]string, queues)
	for i := range names {
		names[i] = fmt.Sprintf("queue%d", i+1)
		if _, err := db.CreateQueue(ctx, plan.Queue{Name: names[i], Plugin: "noop", Threads: limit, Unlimited: limit == 0}); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// submitTo makes queues, and a plan of tasks that are dealt out among them, for whatever nodes come.
func submitTo(ctx context.Context, db *database, queues, limit, tasks int) (plan.PlanID, error) {
	names, err := makeQueues(ctx, db, queues, limit)
	if err != nil {
		return plan.PlanID{}, err
	}
	spec := flat(tasks).spec("cluster", "noop")
	for i := range spec.Tasks {
		spec.Tasks[i].Queue = names[i%queues]
	}
	p, err := submit.Submit(ctx, db, spec, false)
	return p.ID, err
}

// Nodes without work.
const (
	idleNodes  = 4
	idleQueues = 4
)

func clusterIdle(ctx context.Context, b *bench, add func(result)) (err error) {
	if why := b.missing(onMongoDB); why != "" {
		add(result{What: "round trips a second", Skipped: why})
		return nil
	}
	db, err := b.open(ctx, onMongoDB)
	if err != nil {
		return err
	}
	defer closing(ctx, db, &err)
	if _, err := makeQueues(ctx, db, idleQueues, 0); err != nil {
		return err
	}
	l := contest{nodes: idleNodes, threads: clusterThreads}
	c, err := startCluster(ctx, l.members(db.uri, 0))
	defer func() { err = errors.Join(err, c.stop()) }()
	if err != nil {
		return err
	}
	within := time.Minute
	if b.quick {
		within = 3 * time.Second
	}
	if err := c.begin(); err != nil {
		return err
	}
	if err := pause(ctx, within); err != nil {
		return err
	}
	reports, err := c.end(false)
	if err != nil {
		return err
	}
	var all race
	all.sum(reports, time.Now())
	nodeSeconds := idleNodes * int(within/time.Second)
	var used time.Duration
	for _, r := range reports {
		used += r.Processor
	}
	add(result{What: "round trips a second, each node", Value: float64(all.trips+all.upkeep) / float64(nodeSeconds), Note: fmt.Sprintf(
		"%d nodes, %d queues, %v; %.1f of them beats, sweeps and looks at other nodes", idleNodes, idleQueues, within, float64(all.upkeep)/float64(nodeSeconds))})
	if used > 0 {
		add(result{What: "processor time a second, each node", Value: milliseconds(used) / float64(nodeSeconds), Unit: "ms"})
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
