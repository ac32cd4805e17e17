package mongodb

import (
	"encoding/json"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// An update is what one step writes into the document of a task.
type update struct{ set, unset, inc, dates bson.D }

// An ending is a step, mostly the end of a task that nobody has claimed, with what a store knows beside it.
type ending struct {
	doc      *taskDoc
	step     rules.Step
	bytes    int  // of an output that is put together from those of items: it is not in the step
	gathered bool // there is such an output
	items    int  // how many items there are, of a foreach task that ends before them
}

// update returns the update by which tasks that have the status was take the step: every field that follows from it. The children of a task
// that ends are still to be looked at if open is true. node is what a task that nobody has says instead of its node.
func (e *ending) update(was plan.Status, open bool, node nodeName) *update {
	s := &e.step
	u := &update{set: make(bson.D, 0, 12), unset: make(bson.D, 0, 16), dates: d("mtime", true)}
	u.put("status", true, s.Status)
	claimed := was.Active() || was == plan.Orphaned // so another program left it
	if claimed || s.Reset {
		u.clear("token", "slot", "nodeslot", "qnslot")
	} else {
		u.clear("adding", "gate", "making")
	}
	switch {
	case s.Reset:
		u.set = append(u.set, d("node", node, "open", open, "stdout", nil, "stderr", nil)...)
		u.clear("gate", "attempt", "rescues", "complete", "last", "instance", "cancel", "notbefore", "started", "ended", "empty", "noticed", "claimed")
	case s.Finishes():
		u.put("complete", true, true)
		u.put("open", open, true)
		u.clear("hold", "notbefore", "cancel")
		if claimed && s.Status == plan.Cancelled {
			u.put("node", true, node)
			u.clear("instance")
		}
		u.dates = append(u.dates, bson.E{Key: "ended", Value: true})
	case claimed: // what an attempt that another program ran has printed is not the next one's, should that print nothing
		u.set = append(u.set, d("node", node, "stdout", nil, "stderr", nil)...)
		u.clear("instance", "complete", "cancel")
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
	return (&ending{step: s}).update(plan.Held, open, "")
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
	out := append(d("$set", u.set, "$unset", u.unset, "$currentDate", u.dates), more...)
	if len(u.inc) > 0 {
		out = append(out, bson.E{Key: "$inc", Value: u.inc})
	}
	return out
}

// Whether a task that is cancelled may have others waiting for it, or is known to have none.
const (
	stillOpen = true
	released  = false
)
