package mongodb

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// This file maps statuses and steps to what documents hold. No other file of the driver names a
// status.

// A narrowing narrows a filter, which may be nil, to tasks of some statuses, and by more keys and
// values, as d takes them. To one status and of nil, it is also what sets that status.
type narrowing = func(of bson.D, more ...any) bson.D

func only(statuses ...plan.Status) narrowing {
	value := any(d("$in", statuses))
	if len(statuses) == 1 {
		value = statuses[0]
	}
	return func(of bson.D, more ...any) bson.D {
		return append(append(of, bson.E{Key: "status", Value: value}), d(more...)...)
	}
}

var (
	onlyHeld           = only(plan.Held)
	onlyQueued         = only(plan.Queued)
	onlyClaimed        = only(plan.Claimed)
	onlyRunning        = only(plan.Running)
	onlyCancelled      = only(plan.Cancelled)
	onlyActive         = only(plan.Claimed, plan.Running) // a node has them
	onlyWaiting        = only(plan.Held, plan.Queued)
	onlyQueuedOrActive = only(plan.Queued, plan.Claimed, plan.Running)
	onlyUnfinished     = only(plan.Held, plan.Queued, plan.Claimed, plan.Running)
	onlyCutOff         = only(plan.Terminated, plan.Orphaned) // while they ran
	onlyStopped        = only(plan.Terminated, plan.Cancelled, plan.Orphaned)
)

// onlyFailed leaves the tasks that failed, by any code.
func onlyFailed(more ...any) bson.D {
	return d(append([]any{"status", d("$gt", plan.Succeeded)}, more...)...)
}

// onlyWrong leaves the tasks that went wrong, as plan.Status.Wrong says.
func onlyWrong(more ...any) bson.D {
	return d(append([]any{"$or", bson.A{onlyFailed(), onlyCutOff(nil)}}, more...)...)
}

// hasRun is rules.HasRun in a filter.
var hasRun = d("$or", bson.A{d("ran", true), d("status", d("$gte", plan.Running)), onlyCutOff(nil)})

// finished is the status of tasks that have finished, in a filter: what another program wrote counts too.
var finished = d("$nin", bson.A{plan.Held, plan.Queued, plan.Claimed, plan.Running})

// onlyOneOf is a filter by statuses that a reader names.
func onlyOneOf(statuses []plan.Status) bson.D {
	filter := d("status", d("$in", statuses))
	if slices.Contains(statuses, plan.Failed) {
		return d("$or", bson.A{filter, d("status", d("$gt", plan.Failed))})
	}
	return filter
}

// codes matches the codes of a status.
func codes(s plan.Status) any {
	if s == plan.Failed {
		return d("$gte", s)
	}
	return s
}

// withCodes replaces the words for statuses, in capitals, by their codes.
func withCodes(filter string) string {
	for s := plan.Orphaned; s <= plan.Failed; s++ {
		filter = strings.ReplaceAll(filter, strings.ToUpper(s.String()), strconv.Itoa(int(s)))
	}
	return filter
}

// gathering leaves the foreach tasks that wait for nothing but the end of their items.
func gathering(of bson.D, more ...any) bson.D {
	return onlyHeld(of, append([]any{"hold", holdItems, "expanded", true}, more...)...)
}

// ranAlso leaves, if ran is true, only tasks of which an attempt began.
func ranAlso(of bson.D, ran bool) bson.D {
	return addIf(of, ran, "ran", true)
}

// heldFor reports whether the task is held for that reason.
func (t *taskDoc) heldFor(hold string) bool { return t.Status == plan.Held && t.Hold == hold }

func (t *taskDoc) hold(hold string) { t.Status, t.Hold = plan.Held, hold }

// running is what the ending of a claimed task has to know of it.
func (t *taskDoc) running() taskDoc {
	return taskDoc{
		ID: t.ID, Name: t.Name, Status: plan.Running, Ran: t.Ran, Def: t.Def, Token: t.Token, Attempt: t.Attempt, Plan: t.Plan, Of: t.Of, Lenient: t.Lenient, Budget: t.Budget, Gen: t.Gen,
	}
}

// claimedNow is a queued task after a claim with the token that no node knows of.
func (t *taskDoc) claimedNow(token bson.ObjectID) taskDoc {
	c := t.running()
	c.Status, c.Token, c.Attempt, c.Ours, c.Started = plan.Claimed, token, t.Attempt+1, t.Ours, t.Started
	return c
}

// queues is the update that queues held tasks, and takes these fields away.
func queues(without string) bson.D {
	return d("$set", d("status", plan.Queued), "$unset", ones(without), "$currentDate", d("mtime", true))
}

// takes is the update that gives a task to an instance for an attempt that counts already.
func takes(set bson.D, start bool) bson.D {
	if start {
		return d("$set", append(set, bson.E{Key: "status", Value: plan.Running}), "$currentDate", d("mtime", true, "started", true))
	}
	return d("$set", append(set, bson.E{Key: "status", Value: plan.Claimed}), "$currentDate", d("mtime", true), "$unset", ones("started"))
}

// failures are the updates, to be tried in turn, that fail a task which cannot be claimed, run or
// ended as it is stored. There may be no room in its document for more than the last of them.
func failures(why string) []bson.D {
	step := rules.InputFailed(plan.Held, errors.New(why)) // the same of any other status
	u := unstarted(step, stillOpen)
	u.clear("token", "slot", "nodeslot", "qnslot")
	return []bson.D{u.bson(), d("$set", d("status", step.Status), "$unset", ones("token slot nodeslot qnslot hold"))}
}

// namelessFails is the update that fails tasks that nobody can name.
func namelessFails(why string) bson.D {
	set := d("status", plan.Failed, "reason", plan.ReasonInput, "detail", why, "complete", true)
	return d("$set", set, "$currentDate", d("mtime", true, "ended", true))
}

// An update is what one step writes into the document of a task.
type update struct{ set, unset, inc, dates bson.D }

// A stepDoc is a step, with what a store knows beside it.
type stepDoc struct {
	doc      *taskDoc
	step     rules.Step
	bytes    int  // of an output that is put together from those of items: it is not in the step
	gathered bool // there is such an output
	items    int  // how many items there are, of a foreach task that ends before them
	claimed  bool // a node had the task
}

// update returns the update by which tasks take the step: every field that follows from it. The children of a task that ends are still to be
// looked at if open is true. node is what a task that nobody has says instead of its node.
func (e *stepDoc) update(open bool, node nodeName) *update {
	s := &e.step
	u := &update{set: make(bson.D, 0, 12), unset: make(bson.D, 0, 16), dates: d("mtime", true)}
	u.put("status", true, s.Status)
	if e.claimed || s.Reset {
		u.clear("token", "slot", "nodeslot", "qnslot")
	} else {
		u.clear("adding", "gate", "making")
	}
	switch {
	case s.Reset:
		u.set = append(u.set, d("node", node, "open", open, "stdout", nil, "stderr", nil)...)
		u.clear("gate", "over", "attempt", "rescues", "complete", "last", "instance", "cancel", "notbefore", "started", "ended", "empty", "noticed", "claimed")
		u.put("ran", s.Ran, true)
	case s.Finishes():
		u.put("complete", true, true)
		u.put("open", open, true)
		u.clear("hold", "notbefore", "cancel")
		if e.claimed && s.LosesNode() {
			u.put("node", true, node)
			u.clear("instance")
		}
		u.dates = append(u.dates, bson.E{Key: "ended", Value: true})
	case e.claimed: // what an attempt that another program ran has printed is not the next one's, should that print nothing
		u.set = append(u.set, d("node", node, "stdout", nil, "stderr", nil)...)
		u.clear("instance", "complete", "cancel")
		if s.Ran {
			u.put("ran", true, true)
		}
	}
	if s.Empty {
		u.put("empty", true, true)
	}
	u.add("attempt", s.Attempts)
	u.add("rescues", s.Rescues)
	if !s.Keep {
		u.put("reason", s.Reason != "", s.Reason)
		u.put("detail", s.Detail != "", validText(s.Detail))
	}
	if x := s.Exit; x != nil {
		u.put("exit", true, exitDoc{x.Code, x.Signal})
	} else if s.Attempted {
		u.clear("exit")
	}
	u.output(s.Output, e.bytes, e.gathered)
	return u
}

// unstarted is the update that ends tasks which nobody has.
func unstarted(s rules.Step, open bool) *update {
	return (&stepDoc{step: s}).update(open, "")
}

// put sets a field, or takes it away if there is no value for it.
func (u *update) put(key string, is bool, value any) {
	if is {
		u.set = append(u.set, bson.E{Key: key, Value: value})
	} else {
		u.clear(key)
	}
}

func (u *update) clear(keys ...string) {
	for _, key := range keys {
		u.unset = append(u.unset, bson.E{Key: key, Value: 1})
	}
}

func (u *update) add(key string, n int) {
	if n != 0 {
		u.inc = append(u.inc, bson.E{Key: key, Value: n})
	}
}

// output sets the output of a task; gathered: it is put together from those of its items, and has so many bytes.
func (u *update) output(output json.RawMessage, bytes int, gathered bool) {
	bytes = max(bytes, len(output))
	u.put("output", len(output) > 0 && len(output) <= smallOutput, text(output))
	u.put("large", len(output) > smallOutput, text(output))
	u.put("bytes", bytes > 0, bytes)
	u.put("gathered", gathered, true)
}

// bson returns the update as the server takes it, with more operators.
func (u *update) bson(more ...bson.E) bson.D {
	out := append(d("$currentDate", u.dates), more...)
	for _, part := range []bson.E{{Key: "$set", Value: u.set}, {Key: "$unset", Value: u.unset}, {Key: "$inc", Value: u.inc}} {
		if len(part.Value.(bson.D)) > 0 {
			out = append(out, part)
		}
	}
	return out
}

// Whether a task that ended may have others waiting for it, or is known to have none.
const (
	stillOpen = true
	released  = false
)
