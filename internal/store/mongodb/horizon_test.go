package mongodb

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// TestClaimsBeforeAHorizon has a handle that reads only what is before a horizon meet what it does not know of.
func TestClaimsBeforeAHorizon(t *testing.T) {
	const ahead, all = 20, 60
	for _, ends := range []bool{false, true} { // with a preview
		s, db, no := openTest(t)
		s.reach = ahead
		turn := protocol.Turn{Instance: flatPlan(t, s, all), Slots: 1, Plugins: []string{"x"}, Start: true, Shares: &protocol.Shares{}}
		waiting, err := wire.Find[taskDoc](t.Context(), s.tasks, onlyQueued(nil), wire.Query{Sort: d("rank", -1, "_id", 1)})
		no(err)
		place := map[bson.ObjectID]int{}
		for i := range waiting {
			place[waiting[i].ID] = i
		}
		next := func(want int) {
			t.Helper()
			did, err := s.Turn(t.Context(), turn)
			if no(err); len(did.Claimed) != 1 || place[oid(did.Claimed[0].Task.ID)] != want {
				t.Fatalf("with endings %v: claimed the tasks %v, want the one at %d", ends, did.Claimed, want)
			}
			if ends {
				turn.Ended = endings(did.Claimed)
			}
		}
		key := ofPlan{waiting[0].Queue, waiting[0].Plan}
		at := 0
		for ; s.horizons[key].left == 0; at++ {
			next(at)
		}
		for had := s.horizons[key].left; s.horizons[key].left > had-3; at++ { // these are read before it
			next(at)
		}
		set := func(from, to int, change bson.D) {
			_, err := db.Collection("tasks").UpdateMany(t.Context(), d("_id", d("$in", idsOfTasks(waiting[from:to]))), d("$set", change))
			no(err)
		}
		set(all-1, all, d("rank", int64(1e12))) // behind the horizon
		next(all - 1)
		next(at)
		set(at+1, ahead+30, d("node", "another")) // others take what is before it
		next(ahead + 30)
		next(ahead + 31)
	}
}
