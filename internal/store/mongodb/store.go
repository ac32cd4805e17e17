package mongodb

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Options say how a store is opened.
type Options struct {
	Hook     store.Hook            // called around each write command; default none
	Monitor  *event.CommandMonitor // told of each command that goes to the server; default none
	Existing bool                  // make no store: where there is none, Open makes nothing and returns plan.ErrNoStore
}

// A Store is one handle on a database.
type Store struct {
	wire.Conn
	feed feed

	tasks, plans, queues, nodes, instances   *mongo.Collection
	work, joins, items, retries              *mongo.Collection
	logs, meta, runs, files, chunks, balance *mongo.Collection
	schedules, groups, rolls                 *mongo.Collection

	mu        sync.Mutex
	doing     map[bson.ObjectID]bool            // documents of work that a call is busy with
	given     map[bson.ObjectID]taskDoc         // tasks that were claimed by this handle, as far as their endings have to know them
	alone     map[bson.ObjectID]bool            // tasks that cannot even be ended
	rotation  int                               // which queue a turn serves first
	unasked   []bson.D                          // ranges of queues' ids in which the last search for work did not look
	weights   bool                              // the last claim of many queues found weights
	oddPlans  map[bson.ObjectID]bson.A          // by queue: what other programs put into the field plan of tasks that wait
	limits    map[plan.NodeName]count           // of nodes whose instances use this handle
	nodeOf    map[plan.InstanceID]plan.NodeName // of these instances
	others    bool                              // nodes of other programs are registered
	woken     time.Time                         // when the wake counter was last moved by this handle
	ample     bool                              // the last claim found more in each queue than it took
	owed      bool                              // it is to be moved again
	due       time.Time                         // when the next delay is over that this handle knows of; zero: it knows of none
	claimedAt time.Time                         // when that was
	outrun    time.Time                         // when others were last faster than a claim of this handle
	rests     time.Time                         // until when this handle claims no slots
	resumed   time.Time                         // when a round last went on with what was nobody's
	strange   map[string]bool                   // queues of which this handle has told that no node serves them
	looked    time.Time                         // when it last looked for these
	apart     int                               // how many claims are to read each plan by itself
	horizons  horizons                          // of plans in queues
	reach     int                               // farAhead; else a test's
	served    map[bson.ObjectID][]queueDoc      // by instance: the queues of its last turn
	guesses   map[bson.ObjectID]guess           // by instance: of its next turn
	erred     time.Time                         // when a guess was last wrong
	trusts    time.Duration                     // stillTrue; else a test's
}

var _ store.Store = (*Store)(nil)

func newStore(client *mongo.Client, database string, o Options) *Store {
	db := client.Database(database)
	return &Store{
		Conn: wire.Conn{Client: client, DB: db, Hook: o.Hook}, doing: map[bson.ObjectID]bool{}, given: map[bson.ObjectID]taskDoc{}, limits: map[plan.NodeName]count{}, nodeOf: map[plan.InstanceID]plan.NodeName{}, trusts: stillTrue, reach: farAhead, horizons: horizons{},
		tasks: db.Collection("tasks"), plans: db.Collection("plans"), queues: db.Collection("queues"), nodes: db.Collection("nodes"),
		instances: db.Collection("instances"), work: db.Collection("work"), joins: db.Collection("joins"), items: db.Collection("items"),
		retries: db.Collection("retries"), logs: db.Collection("logs"), meta: db.Collection("meta"), runs: db.Collection("runs"),
		files: db.Collection("tasks.files"), chunks: db.Collection("tasks.chunks"), balance: db.Collection("balance"), schedules: db.Collection("schedules"), groups: db.Collection("groups"), rolls: db.Collection("rolls"),
	}
}

// locked calls do while nobody else uses what the handle remembers.
func (s *Store) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// Wakes implements store.Node: the server's change streams are not used, so nodes poll, and read the wake counter as they beat.
func (s *Store) Wakes(context.Context) <-chan struct{} { return nil }
