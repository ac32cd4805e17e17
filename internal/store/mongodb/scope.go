package mongodb

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
)

// looksForAny is with which claim from a queue each time the store looks for any plan that has work there, if it knows many. That costs a look
// at all that waits in the queue. Else it looks for new ones, whose ids come after those that are known.
const looksForAny = 64

// fewKnown is up to how many plans a look for others leaves out by name. To leave out very many takes a server long.
const fewKnown = 2

// A scope is which plans a look for work in a queue is about.
type scope struct {
	all   bool          // any,
	but   idList        // but for these, which take turns already: zero for tasks of no plan
	after bson.ObjectID // or those that come after this one
}

// scopeOf returns which plans a claim looks for. If it knows few plans, these are all others. If not, these are newer plans, or any plans if it
// has to find those as well, or each 64th time.
func scopeOf(known *protocol.PlanShares, any bool) scope {
	var but idList
	for id, s := range known.Of {
		if !s.Away {
			but = append(but, oid(id.ID))
		}
	}
	if len(but) <= fewKnown {
		return scope{all: true, but: but}
	}
	return scope{all: any || known.Claims%looksForAny == 0, after: lastOf(known)}
}

// looking are the stages that find the plans that have work in a queue. They ask nothing that the index does not have: a plan whose queued
// tasks another program has given a node has none to claim, and leaves again.
func (s *scope) looking(queue bson.ObjectID) []any {
	where := onlyQueued(d("queue", queue))
	switch {
	case !s.all:
		where = append(where, bson.E{Key: "plan", Value: d("$gt", s.after)})
	case len(s.but) > 0:
		not := bson.A{}
		for _, id := range s.but {
			if id.IsZero() {
				not = append(not, nil)
			} else {
				not = append(not, id)
			}
		}
		where = append(where, bson.E{Key: "plan", Value: d("$nin", not)})
	}
	return []any{d("$match", where), d("$group", d("_id", d("queue", "$queue", "plan", "$plan")))}
}

// lastOf returns the last of the plans that take turns.
func lastOf(known *protocol.PlanShares) (last bson.ObjectID) {
	for id, s := range known.Of {
		if !s.Away && bytes.Compare(id.ID[:], last[:]) > 0 {
			last = oid(id.ID)
		}
	}
	return last
}
