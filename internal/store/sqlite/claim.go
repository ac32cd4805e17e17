package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// offer is a queue from which a turn may claim.
type offer struct {
	*queueRow
	shares map[plan.PlanID]protocol.Share // who takes turns in it; nil: see look
	look   func() bool                    // sees who does, and reports whether somebody does
	lanes  map[plan.PlanID]*lane          // of these, as far as the turn has looked at them
	only   int64                          // of the shared lane, tasks of this plan; 0: all
	of     *planRow                       // the only plan whose tasks the turn claims; nil: of any
	room   int                            // how many of its tasks the node may still have, and the rate lets start
	in     []*plan.Group                  // that its queue is in,
	groups []*claimGroup                  // as the claim takes from them
	taken  []candidate
	dry    bool // there is no more to take
}

// A lane is what is queued of one plan, or of none, in a queue whose plans take turns. A queue in
// order of age has one lane, which all share.
type lane struct {
	n     int64 // of the plan; 0: the shared lane, and that of no plan
	taken []candidate
}

// Claim implements engine.Instance. It takes of each queue that has work and a free thread its share,
// and starts with another queue each time. Tasks that this transaction queued are among those that it
// takes. It returns none of them: handOver reads them for the answer.
func (t *tx) Claim(_ context.Context, turn *protocol.Turn, s rules.Step) ([]protocol.ClaimedTask, error) {
	if turn.Slots <= 0 || len(turn.Plugins) == 0 {
		return nil, nil
	}
	asked := t.query(beforeClaim, string(t.by.node))
	if !asked.one() {
		return nil, t.err
	}
	open, weights, left := int(asked.int(0))+t.opened(), asked.bool(1), turn.Slots
	if !asked.null(2) {
		left = min(left, t.room(int(asked.int(2))))
	}
	if left <= 0 || open == 0 {
		return nil, t.err
	}
	offers := t.offers(turn, open, weights || rules.Uneven(turn, open))
	if len(offers) == 0 {
		return nil, t.err
	}
	t.s.rotor = offers[0].n
	t.takeShares(offers, turn, left, weights)
	t.takeAll(turn.Start, s, offers)
	return nil, t.err
}

// beforeClaim counts the queues that have work and a free thread. It asks whether a queue is in a group, or has a weight: else all queues
// have the same share. It also asks how many tasks the instances of a node may have together; NULL: any number.
const beforeClaim = `SELECT (SELECT count(*) FROM queues INDEXED BY queues_open WHERE queued > 0 AND (unlimited = 1 OR active < threads)),
	EXISTS (SELECT 1 FROM queues INDEXED BY queues_weighted WHERE instr(settings, '"group":') + instr(settings, '"weight":') > 0),
	(SELECT max_threads FROM nodes WHERE name = ?)`

// takeShares takes tasks of each offer by its weight and its groups. Without weights no queue is in a
// group, whose part the other queues could use up.
func (t *tx) takeShares(offers []*offer, turn *protocol.Turn, left int, weights bool) {
	queues := make([]rules.Sharer, len(offers))
	offered := map[plan.QueueID]bool{}
	for i, o := range offers {
		queues[i] = rules.Sharer{Queue: o.ID, Weight: o.Weight, Groups: o.in, Room: min(o.free(left), o.room), Running: turn.Running[o.ID]}
		offered[o.ID] = true
	}
	for id, n := range turn.Running {
		if offered[id] || !weights {
			continue
		}
		if r := t.query("SELECT "+queueColumns+" FROM queues WHERE id = ?", id.ID[:]); r.one() {
			q := r.queue()
			queues = append(queues, rules.Sharer{Queue: id, Weight: q.Weight, Groups: t.inGroup(q.Group), Running: n})
		}
	}
	sharing := rules.NewSharing(turn.Shares, queues, turn.Threads(), t.groupsLet())
	for left > 0 && t.err == nil {
		dealt := make([]int, len(offers))
		some := 0
		for i := sharing.Next(); i >= 0; i = sharing.Next() {
			dealt[i]++
			if some++; some == left {
				break
			}
		}
		if some == 0 {
			return
		}
		for i, n := range dealt {
			if n > 0 {
				got := t.take(offers[i], n)
				if left -= got; got < n {
					sharing.Back(i, n-got)
				}
			}
		}
	}
}

// activeOn counts what the instances of a node have claimed, among all that is claimed.
const activeOn = "SELECT count(*) FROM tasks INDEXED BY tasks_mine CROSS JOIN instances ON instances.n = instance WHERE " + isMine + " AND node = ?"

// room returns how many tasks the instances of the caller's node may still claim together, of so many.
func (t *tx) room(limit int) (room int) {
	room = limit
	if active := t.fresh(activeOn, string(t.by.node)); active.one() {
		room -= int(active.int(0))
	}
	return room
}

// take takes up to some more tasks of an offer, and returns how many.
func (t *tx) take(o *offer, some int) int {
	if o.shares == nil {
		o.look()
	}
	had := len(o.taken)
	most := min(o.free(had+some), o.room, had+min(some, o.groupRoom()))
	for len(o.taken) < most {
		turns := map[plan.PlanID]int{}
		dealt := rules.Deal(o.shares, most-len(o.taken), rules.MostDealt, comparePlans)
		if len(dealt) == 0 {
			break
		}
		for _, id := range dealt {
			turns[id]++
		}
		for _, id := range dealt {
			if n := turns[id]; n > 0 {
				turns[id] = 0
				t.takeOf(o, id, n)
			}
		}
	}
	o.takeOfGroups(len(o.taken) - had)
	o.dry = len(o.taken) < had+some
	return len(o.taken) - had
}

// takeOf takes up to n more tasks of a plan. A plan that has fewer takes no more turns.
func (t *tx) takeOf(o *offer, id plan.PlanID, n int) {
	l := o.lanes[id]
	if l == nil {
		l = &lane{}
		if p, err := t.planByID(id); !id.IsZero() && (err != nil || p.stopped()) {
			rules.LeaveTurns(o.shares, id)
			return
		} else if !id.IsZero() {
			l.n = p.n
			rules.JoinTurns(o.shares, id, p.Weight())
		}
		o.lanes[id] = l
	}
	all := t.first(o, l, len(l.taken)+n)
	news := all[len(l.taken):]
	l.taken, o.taken = all, append(o.taken, news...)
	rules.PassTurn(o.shares, id, len(news))
	if len(news) < n {
		rules.LeaveTurns(o.shares, id)
	}
}

func comparePlans(a, b plan.PlanID) int { return bytes.Compare(a.ID[:], b.ID[:]) }

// The selected columns, and their table: only tasks of which this transaction queued some have to be compared.
const (
	ofLane     = "SELECT n, lane" // in a queue whose plans take turns, the lane is the plan
	ofPlan     = "SELECT n, plan"
	compared   = ", prio, id"
	queuedUp   = " FROM tasks " + inReady + " AND queue = ? AND lane = ? ORDER BY prio, id LIMIT ? + 0"
	queuedDown = " FROM tasks " + inReady + " AND queue = ? AND lane = ? ORDER BY prio DESC, id DESC LIMIT ? + 0"
	going      = "NOT EXISTS (SELECT 1 FROM plans AS p WHERE p.n = w.plan AND (p.closing <> '' OR p.retry <> 0)) AND (w.plan <> 0 OR NOT EXISTS (" + retryOfNone + "))"
	// While a plan is stopped, and not all of what is queued of it is cancelled, the shared lane is looked through, but not to its end:
	// each turn cancels some, so that the next one sees further.
	openUp = ` FROM (SELECT n, prio, id, plan FROM tasks ` + inReady + ` AND queue = ? AND lane = ?
		ORDER BY prio, id LIMIT ?3 + 1000) AS w WHERE ` + going + ` ORDER BY prio, id LIMIT ?3 + 0`
	openDown = ` FROM (SELECT n, prio, id, plan FROM tasks ` + inReady + ` AND queue = ? AND lane = ?
		ORDER BY prio DESC, id DESC LIMIT ?3 + 1000) AS w WHERE ` + going + `
		ORDER BY prio DESC, id DESC LIMIT ?3 + 0`
	// For a node that claims of one plan only.
	onlyUp   = " FROM tasks " + inReady + " AND queue = ? AND lane = ? AND plan = ?4 ORDER BY prio, id LIMIT ?3 + 0"
	onlyDown = " FROM tasks " + inReady + " AND queue = ? AND lane = ? AND plan = ?4 ORDER BY prio DESC, id DESC LIMIT ?3 + 0"
)

const openQueues = "SELECT " + queueColumns + ` FROM queues INDEXED BY queues_open WHERE queued > 0 AND (unlimited = 1 OR active < threads) AND n > ?
	ORDER BY n`

// first returns the first tasks in a lane of an offer, in the order of the queue.
func (t *tx) first(o *offer, l *lane, limit int) (found []candidate) {
	news := t.newcomers(o.n, l.n, o.only)
	if o.Queued > t.newIn(o.n) {
		found = t.written(o, l, limit, len(news) > 0)
	}
	if len(news) == 0 {
		return found
	}
	compare := func(a, b candidate) int {
		if o.Sort == plan.SortLIFO {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.prio, b.prio), bytes.Compare(a.id[:], b.id[:]))
	}
	if len(found) >= limit { // mostly what is new comes after all of what is older
		last := found[limit-1]
		news = slices.DeleteFunc(news, func(c candidate) bool { return compare(c, last) > 0 })
	}
	if len(news) > 0 {
		found = append(found, news...)
		slices.SortFunc(found, compare)
	}
	return found[:min(limit, len(found))]
}

// written is first for what earlier transactions queued. Tasks that are to be compared with others say how.
func (t *tx) written(o *offer, l *lane, limit int, compare bool) (found []candidate) {
	t.flushUnstarted()
	columns, down := pick(o.Sort == plan.SortDefault, ofLane, ofPlan)+pick(compare, compared, ""), o.Sort == plan.SortLIFO
	var r *rows
	switch {
	case o.only != 0:
		r = t.query(columns+pick(down, onlyDown, onlyUp), o.n, l.n, limit, o.only)
	case o.Sort != plan.SortDefault && t.closing():
		r = t.query(columns+pick(down, openDown, openUp), o.n, l.n, limit)
	default:
		r = t.query(columns+pick(down, queuedDown, queuedUp), o.n, l.n, limit)
	}
	for r.next() {
		c := candidate{n: r.int(0), plan: r.int(1)}
		if compare {
			c.prio, c.id = r.int(2), r.id(3)
		}
		found = append(found, c)
	}
	return found
}

const anyRetry = "SELECT 1 FROM plans INDEXED BY plans_retry WHERE retry <> 0 LIMIT 1"

// closing reports whether any plan is closed and has not ended, or is being retried, or tasks of no plan are.
func (t *tx) closing() bool {
	t.flushClosings()
	for _, p := range t.plans {
		if p.stopped() && !p.State.Ended() {
			return true
		}
	}
	return t.query("SELECT 1 FROM plans INDEXED BY plans_closed WHERE closing <> '' AND ended = 0 LIMIT 1").one() || t.query(anyRetry).one() || t.noted(nil) != 0
}

// offers returns the queues that a turn may claim from, of so many that are open, and who takes turns in each: all of them, or as many as
// it wants tasks.
func (t *tx) offers(turn *protocol.Turn, open int, all bool) []*offer {
	var only *planRow
	if !turn.Plan.IsZero() {
		p, err := t.planByID(turn.Plan)
		if err != nil || p.stopped() || p.Counts.Queued == 0 {
			return nil
		}
		only = p
	}
	var offers []*offer
	seen := map[int64]bool{}
	starts := []int64{t.s.rotor, 0} // from behind where the last turn began, and from the start
	for _, from := range starts[2-min(open, 2):] {
		news := t.openedBehind(from)
		r := t.query(openQueues, from)
		for row := r.next(); (row || len(news) > 0) && (all || len(offers) < turn.Slots); {
			var q *queueRow
			if !row || len(news) > 0 && news[0].n < r.int(0) {
				q, news = news[0], news[1:]
			} else {
				if q = t.queues[r.int(0)]; q == nil && slices.Contains(turn.Plugins, r.text(queuePlugin)) {
					q = r.queue()
				}
				row = r.next()
			}
			if q == nil || seen[q.n] || !q.open() || !slices.Contains(turn.Plugins, q.Plugin) || !turn.Serves(&q.Queue, t.by.node) {
				continue
			}
			seen[q.n] = true
			t.queues[q.n] = q
			o := &offer{queueRow: q, lanes: map[plan.PlanID]*lane{}, of: only}
			o.look = func() bool { return t.share(o, turn, only) }
			if (all || o.look()) && t.roomIn(o) { // of all, those that are dealt a start look
				offers = append(offers, o)
			}
		}
		r.close()
	}
	return offers
}

// share sees who takes turns in an offer, which may be of one plan only. It reports whether somebody does.
func (t *tx) share(o *offer, turn *protocol.Turn, only *planRow) bool {
	switch {
	case only != nil:
		l := &lane{n: only.n}
		if o.Sort != plan.SortDefault {
			l.n, o.only = 0, only.n
		}
		o.lanes[only.ID], o.shares = l, map[plan.PlanID]protocol.Share{only.ID: {Weight: 1}}
		return len(t.newcomers(o.n, l.n, o.only)) > 0 || len(t.first(o, l, 1)) > 0
	case o.Sort != plan.SortDefault:
		o.lanes[plan.PlanID{}], o.shares = &lane{}, map[plan.PlanID]protocol.Share{{}: {Weight: 1}}
	default:
		known := turn.Shares.Plans(o.ID)
		t.lookFor(o.n, known, min(turn.Slots, rules.MostDealt)+lookMore)
		o.shares = known.Of
	}
	return rules.AnyTurns(o.shares)
}

// lookMore is for how many plans with work each claim from a queue looks, besides those that it serves.
const lookMore = 4

const nextLane = "SELECT lane FROM tasks " + inReady + " AND queue = ? AND lane > ? ORDER BY lane LIMIT 1"

// lookFor has plans that have work in a queue join those that are known to. It looks at up to so many, behind where the last look ended.
func (t *tx) lookFor(queue int64, known *protocol.PlanShares, most int) {
	for at, ready := range t.ready {
		if at.queue == queue && len(ready) > 0 {
			t.join(known, at.lane)
		}
	}
	from := int64(-1)
	if !known.Looked.IsZero() {
		if p, err := t.planByID(known.Looked); err == nil {
			from = p.n
		}
	}
	again := from >= 0 // from the start
	for lane := from; most > 0; most-- {
		r := t.query(nextLane, queue, lane)
		switch {
		case r.one():
			lane = r.int(0)
			known.Looked = t.join(known, lane)
		case !again:
			known.Looked = plan.PlanID{}
			return
		default:
			lane, again = -1, false
		}
	}
}

// join has the plan of a lane take turns, unless nothing of it is claimed now, and returns which it is.
func (t *tx) join(known *protocol.PlanShares, lane int64) (id plan.PlanID) {
	if lane == 0 {
		if t.noted(nil) == 0 {
			rules.JoinTurns(known.Of, id, plan.DefaultPriority)
		}
		return id
	}
	p := t.planIn(lane)
	if p == nil { // damage
		return id
	}
	if !p.stopped() {
		rules.JoinTurns(known.Of, p.ID, p.Weight())
	}
	return p.ID
}

// activeIn counts what the instances of a node have claimed of a queue, among all that is claimed.
const activeIn = activeOn + " AND queue = ?"

// opened returns how many more queues are open than the index of open queues has: this transaction writes what it
// changed of queues at its end.
func (t *tx) opened() (more int) {
	for _, q := range t.queues {
		if q.open() {
			more++
		}
		if q.wasOpen() {
			more--
		}
	}
	return more
}

// openedBehind returns the queues behind one that are open, and that the index of open queues does not have, in
// the order of their numbers.
func (t *tx) openedBehind(n int64) (news []*queueRow) {
	for _, q := range t.queues {
		if q.n > n && q.open() && !q.wasOpen() {
			news = append(news, q)
		}
	}
	slices.SortFunc(news, func(a, b *queueRow) int { return cmp.Compare(a.n, b.n) })
	return news
}

// roomIn sees how many of an offer's tasks the instances of the caller's node may still claim
// together, and the rate of its queue lets start. It reports whether it is any.
func (t *tx) roomIn(o *offer) bool {
	if o.room = math.MaxInt; o.NodeThreads > 0 {
		o.room = o.NodeThreads
		if active := t.fresh(activeIn, string(t.by.node), o.n); active.one() {
			o.room -= int(active.int(0))
		}
	}
	if o.room > 0 {
		t.inGroups(o)
	}
	if o.room > 0 && o.Rate.Starts > 0 {
		if counts := rules.RateSpent(o.Rate, o.Spent, t.at); counts.Before(o.Spent) {
			t.spend(o, counts)
		}
		o.room = rules.RateRoom(o.Rate, o.Spent, t.at, o.room)
		t.rests(o)
	}
	if o.groupRoom() <= 0 {
		o.room = 0
		t.rests(o)
	}
	return o.room > 0
}

// spend writes how far the rate of an offer's queue is used up.
func (t *tx) spend(o *offer, spent time.Time) {
	o.Spent = spent
	t.exec("UPDATE queues SET spent = ? WHERE n = ?", micro(spent), o.n)
}

// rests notes when the rates of an offer's queue, in which tasks wait, and of its groups let the next one start.
func (t *tx) rests(o *offer) {
	wait := rules.RateWait(o.Rate, o.Spent, t.at)
	for _, g := range o.groups {
		wait = max(wait, rules.RateWait(g.Rate, g.Spent, t.at))
	}
	if wait > 0 && (t.rest == 0 || wait < t.rest) && t.waits(o) {
		t.rest = wait
	}
}

// waits reports whether a task waits in an offer's queue that the turn could claim if it were not for rates.
func (t *tx) waits(o *offer) bool {
	if o.free(1) == 0 || o.of == nil {
		return o.free(1) > 0
	}
	if o.shares == nil {
		o.look()
	}
	return len(t.first(o, o.lanes[o.of.ID], 1)) > 0
}

// takeAll claims what was taken.
func (t *tx) takeAll(start bool, s rules.Step, offers []*offer) {
	token := t.s.newToken()
	started := int64(0)
	if start {
		started = t.now
	}
	for _, o := range offers {
		if len(o.taken) == 0 {
			continue
		}
		ns := each(o.taken, func(c *candidate) int64 { return c.n })
		t.claims = append(t.claims, claims{o.queueRow, token, ns})
		t.moveTaken(o, s.Status)
		taken, written := t.takeNew(o.n, ns)
		for at, fresh := range taken {
			t.execEach(`UPDATE tasks SET gate = 0, flags = flags | ?, not_before = 0, status = ?, attempt = attempt + 1, token = ?, instance = ?,
				started = ?, modified = ? WHERE n`, fresh, at.flag(), int64(s.Status), token, t.by.n, started, t.now)
		}
		t.execEach(`UPDATE tasks SET status = ?, attempt = attempt + 1, token = ?, instance = ?, started = ?, modified = ?
			WHERE n`, written, int64(s.Status), token, t.by.n, started, t.now)
		t.taken += len(ns)
		if o.Rate.Starts > 0 {
			t.spend(o, rules.RateSpend(o.Rate, o.Spent, t.at, len(ns)))
		}
	}
	t.spendGroups()
	for _, o := range offers {
		t.rests(o)
	}
}

// moveTaken is move for what was taken of an offer. A queued task stands for no items, so that its plan
// counts it by nothing but its status.
func (t *tx) moveTaken(o *offer, to plan.Status) {
	was, is := rules.Counted{Status: readyStatus}, rules.Counted{Status: to}
	for _, c := range o.taken {
		rules.CountInQueue(&o.Queue, was.Status, -1)
		rules.CountInQueue(&o.Queue, is.Status, 1)
		if p := t.plan(c.plan); p != nil {
			rules.Count(&p.Counts, was, -1)
			rules.Count(&p.Counts, is, 1)
		}
		t.changed = append(t.changed, c.n)
	}
}

// handOver returns what the transaction claimed as its node gets it: higher ranks first, then older
// tasks, whatever the order of their queues is.
func (t *tx) handOver() (claimed []protocol.ClaimedTask) {
	for _, c := range t.claims {
		if read := t.readClaims(c); claimed == nil {
			claimed = read // mostly that is all
		} else {
			claimed = append(claimed, read...)
		}
	}
	before := func(i, j int) bool {
		a, b := &claimed[i], &claimed[j]
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), bytes.Compare(a.Task.ID[:], b.Task.ID[:])) < 0
	}
	if !sort.SliceIsSorted(claimed, before) { // mostly it is, and claims are large
		sort.Slice(claimed, before)
	}
	return claimed
}

// readClaims returns what a node needs of claimed tasks, in any order.
func (t *tx) readClaims(of claims) []protocol.ClaimedTask {
	claimed := make([]protocol.ClaimedTask, 0, len(of.ns))
	var parents [][]int64 // of each of those with inputs,
	var with []int        // which these are
	t.queryEach(`SELECT t.n, t.id, t.plan, t.flags, t.attempt, t.rank, t.rule, t.rescues, t.idx, t.name, t.reason, b.def, b.params, b.needs, g.bytes, g.largest
		FROM tasks AS t CROSS JOIN bodies AS b ON b.n = t.n LEFT JOIN gates AS g ON g.n = t.n WHERE t.n`, of.ns, func(r *rows) {
		id, flags := plan.TaskID{ID: r.id(1)}, r.int(3)
		claimed = append(claimed, protocol.ClaimedTask{
			Claim: protocol.Claim{Task: id, Attempt: int(r.int(4)), Token: packToken(r.int(0), of.token)},
			Name:  r.text(9), Queue: of.ID, QueueName: of.Name, Plugin: of.Plugin, Settings: of.QueueSettings,
			Params: r.bytes(12), ByReference: flags&flagByRef != 0, Reason: plan.Reason(r.text(10)), Rescues: int(r.int(7)), Index: int(r.int(8)),
		})
		c := &claimed[len(claimed)-1]
		var err error
		if c.Definition, err = unpackDefinition(r.bytes(11), r.int(5), plan.When(r.text(6)), flags); err != nil {
			t.fail(fmt.Errorf("definition of task %s: %w", id, err))
		}
		if !r.null(14) {
			if c.ByReference = !rules.Copied(int(r.int(14)), int(r.int(15))); !c.ByReference {
				parents, with = append(parents, r.parents(13)), append(with, len(claimed)-1)
			}
		}
		if p := t.plan(r.int(2)); p != nil {
			c.Plan, c.PlanName = p.ID, p.Title()
		}
	})
	found := t.outputs(distinct(slices.Concat(parents...)))
	var in []plan.Input
	for i, ns := range parents {
		c := &claimed[with[i]]
		in = among(found, ns, in[:0])
		params, err := rules.Deliver(c.Params, in)
		if err != nil { // letRun has looked at that
			t.fail(fmt.Errorf("params of task %s: %w", c.Task, err))
		}
		c.Params = params
	}
	return claimed
}
