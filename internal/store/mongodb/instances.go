package mongodb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sort"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Register implements store.Node.
func (s *Store) Register(ctx context.Context, i plan.Instance) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	doc := instanceDoc{
		ID: oid(i.ID.ID), Node: i.Node, Host: i.Host, PID: i.Process.PID, Process: i.Process.Identity, Lease: i.Lease, Threads: i.Threads,
		Plugins: i.Plugins, Active: idsOf(i.Active), Ignored: idsOf(i.Ignored), Plan: oid(i.Plan.ID), Version: i.Version, Sole: i.Sole,
		Runner: i.Runner, Pauses: pausesOf(i.Pauses), Beat: now,
	}
	taken, err := s.Insert(ctx, s.instances, doc)
	if err != nil {
		return fmt.Errorf("register instance %s: %w", i.ID, err)
	}
	if i.Sole && taken > 0 { // it registers again; one that is gone stays so
		there, err := wire.FindOne[instanceDoc](ctx, s.instances, d("_id", doc.ID), wire.Query{Fields: ones("gone")})
		if err != nil || there != nil && there.Gone {
			return err
		}
	}
	if i.Sole {
		if err := s.takeName(ctx, &doc); err != nil {
			return fmt.Errorf("register node %s: %w", i.Node, err)
		}
	}
	if !i.Runner { // the document of the node may be another program's
		if err := s.node(ctx, i.Node, d("$currentDate", d("timestamp", true), "$set", s.manner(&i))); err != nil {
			return err
		}
	}
	s.locked(func() { s.nodeOf[i.ID] = i.Node })
	if _, err = s.readLimit(ctx, i.Node); err != nil {
		return err
	}
	return s.readOthers(ctx)
}

// manner is what the DEN 1.1 document wants a node to say of itself. Its text calls spec_version what its example calls den_version.
func (s *Store) manner(i *plan.Instance) bson.D {
	types := bson.A{}
	for _, p := range i.Plugins {
		types = append(types, d("class", p, "version", i.Version))
	}
	return d("version", "sluice "+i.Version, "den_version", "1.1", "spec_version", "1.1", "queuetypes", types, "sluice", true)
}

// node writes to the document of a node, which it makes, with further fields, if there is none. Its id is drawn from the node's name,
// since servers on PostgreSQL see only after a second that two of one name wait for each other, and at once that an id is taken.
func (s *Store) node(ctx context.Context, n plan.NodeName, update bson.D, made ...bson.E) error {
	name := sha256.Sum256([]byte(n))
	made = append(made, bson.E{Key: "_id", Value: bson.ObjectID(name[:len(bson.NilObjectID)])})
	if err := s.Upsert(ctx, s.nodes, d("node", n), append(update, bson.E{Key: "$setOnInsert", Value: bson.D(made)})); err != nil {
		return fmt.Errorf("node %s: %w", n, err)
	}
	return nil
}

// Beat implements store.Node.
func (s *Store) Beat(ctx context.Context, b protocol.Beat) (told protocol.Beaten, err error) {
	defer about(&err, "heartbeat")
	var i instanceDoc
	update := d("$inc", d("beats", int64(1)), "$currentDate", d("beat", true))
	set := d()
	set = addIf(set, b.Plugins != nil, "plugins", b.Plugins)
	set = addIf(set, b.Pauses != nil, "pauses", pausesOf(b.Pauses))
	set = addIf(set, b.Progress != nil, "progress", saidOf(b.Progress))
	update = addIf(update, len(set) > 0, "$set", set)
	err = s.Command(ctx, func() error {
		without := options.FindOneAndUpdate().SetProjection(d("progress", 0, "pauses", 0))
		return s.instances.FindOneAndUpdate(ctx, d("_id", oid(b.Instance.ID), "gone", nil), update, without).Decode(&i)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return told, fmt.Errorf("instance %s: %w", b.Instance, plan.ErrInstanceGone)
	}
	if err != nil {
		return told, err
	}
	if b.Plugins != nil {
		i.Plugins = b.Plugins // it was read as it was before
	}
	n, err := s.news(ctx, &i)
	if err != nil {
		return told, err
	}
	told.Wake, told.Cancel, told.Due = n.wake, n.cancel, n.due
	if told.MaxThreads = -1; n.limit.set {
		told.MaxThreads = n.limit.n
	}
	if !i.Runner {
		if err := s.nodeBeat(ctx, &i, queueBeats(&i, &n, b.Running), b.Plugins != nil); err != nil {
			return told, err
		}
	}
	if err := s.wakeOthers(ctx, false); err != nil {
		return told, err
	}
	told.Over, err = s.isOver(ctx, b.Plan)
	return told, err
}

// news is what a beat hears.
type news struct {
	limit  count // of the node
	wake   int64
	cancel []plan.TaskID  // that a person cancelled
	queues []queueDoc     // of which the node's document is to tell
	due    *time.Duration // as of protocol.Beaten
}

// mostQueueBeats is of how many queues a node's document tells: it is written each second.
const mostQueueBeats = 1000

// news reads the answer to a heartbeat in one command. An instance with a plan of its own serves
// nobody else's queue, and a runner has no document to report them in.
func (s *Store) news(ctx context.Context, i *instanceDoc) (n news, err error) {
	type part struct {
		Limit, Queue bson.Raw
		Other        bool
		Wake         int64
		Cancel       bson.ObjectID
		Due          *time.Time
		Now          time.Time
	}
	pipeline := bson.A{
		d("$match", d("node", i.Node)), d("$limit", 1), d("$project", ones("maxthreads")), d("$project", d("_id", 0, "limit", "$$ROOT")),
		wire.Union(s.nodes, bson.A{d("$match", d("sluice", nil)), d("$limit", 1), d("$project", d("_id", 0, "other", d("$literal", true)))}),
		wire.Union(s.meta, bson.A{d("$match", d("_id", "wake")), d("$project", d("_id", 0, "wake", "$n"))}),
		wire.Union(s.tasks, bson.A{d("$match", append(claimsOf(i), d("cancel", true)...)), d("$project", d("_id", 0, "cancel", "$_id"))}),
		wire.Union(s.schedules, bson.A{d("$match", d("due", d("$gt", time.Time{}))), d("$sort", d("due", 1)), d("$limit", 1), d("$project", d("_id", 0, "due", 1, "now", "$$NOW"))}),
	}
	if !i.Runner && i.Plan.IsZero() && len(i.Plugins) > 0 {
		pipeline = append(pipeline, wire.Union(s.queues, bson.A{
			d("$match", d("plugin", d("$in", i.Plugins))), d("$limit", mostQueueBeats),
			d("$project", ones("plugin threads unlimited")), d("$project", d("_id", 0, "queue", "$$ROOT")),
		}))
	}
	parts, err := wire.Aggregate[part](ctx, s.nodes, pipeline)
	if err != nil {
		return n, err
	}
	others := false
	for _, p := range parts {
		switch {
		case p.Limit != nil:
			doc := decoded[nodeDoc](p.Limit, &err)
			n.limit = doc.limit()
		case p.Queue != nil:
			n.queues = append(n.queues, decoded[queueDoc](p.Queue, &err))
		case p.Due != nil:
			in := p.Due.Sub(p.Now)
			n.due = &in
		case p.Other:
			others = true
		case !p.Cancel.IsZero():
			n.cancel = append(n.cancel, taskID(p.Cancel))
		default:
			n.wake = p.Wake
		}
	}
	if err != nil {
		return n, wire.Translate(err)
	}
	s.locked(func() { s.limits[i.Node], s.others = n.limit, others })
	return n, nil
}

// queueBeats is the report of DEN 1.1 on the queues that a node serves. The node itself reports its
// running tasks. threads is the most that the node may run of a queue: the least of the limits of
// the queue, the node's document and its process. Others may use part of them.
func queueBeats(i *instanceDoc, n *news, running protocol.Tally) bson.A {
	sort.Slice(n.queues, func(a, b int) bool { return bytes.Compare(n.queues[a].ID[:], n.queues[b].ID[:]) < 0 })
	most := i.Threads
	if n.limit.set {
		most = min(most, n.limit.n)
	}
	beats := bson.A{}
	for k := range n.queues {
		q := &n.queues[k]
		if q.ID.IsZero() {
			continue // its id is no ObjectID: nobody could name it
		}
		threads := most
		if !q.Unlimited {
			threads = min(most, max(0, q.Threads.n))
		}
		runs := running[plan.QueueID{ID: plan.ID(q.ID)}]
		beats = append(beats, d("class", string(q.Plugin), "queue", q.ID, "threads", threads, "idle", max(0, threads-runs), "processing", runs))
	}
	return beats
}

// nodeBeat writes down that the instance's node was heard of, and what plugins it has if others than before.
func (s *Store) nodeBeat(ctx context.Context, i *instanceDoc, queues bson.A, others bool) error {
	// A process may have removed the document, because the last instance before this one was gone,
	// after this one had made it.
	manner := s.manner(&plan.Instance{Plugins: i.Plugins, Version: i.Version})
	set := d("heartbeat.pid", i.PID, "heartbeat.queues", queues)
	if others {
		set, manner = append(set, manner...), nil
	}
	return s.node(ctx, i.Node, d("$currentDate", d("timestamp", true, "heartbeat.datetime", true), "$set", set), manner...)
}

// SetMaxThreads implements store.Admin.
func (s *Store) SetMaxThreads(ctx context.Context, n plan.NodeName, most int) error {
	value := any(most)
	if most < 0 {
		value = nil
	}
	// A node that nobody has seen yet has a time all the same, as Disbatch wants it.
	return s.node(ctx, n, d("$set", d("maxthreads", value)), bson.E{Key: "timestamp", Value: time.Unix(0, 0)})
}

// MaxThreads implements store.Reader.
func (s *Store) MaxThreads(ctx context.Context) (map[plan.NodeName]int, error) {
	docs, err := wire.Find[nodeDoc](ctx, s.nodes, d("maxthreads", d("$ne", nil)), wire.Query{Fields: ones("node maxthreads")})
	limits := map[plan.NodeName]int{}
	for _, n := range docs {
		if limit := n.limit(); limit.set {
			limits[n.Name] = limit.n
		}
	}
	return limits, err
}

// Instances implements store.Node and store.Reader.
func (s *Store) Instances(ctx context.Context) ([]plan.Instance, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	docs, err := wire.Find[instanceDoc](ctx, s.instances, d("gone", nil), wire.Query{Fields: d("progress", 0)})
	if err != nil {
		return nil, err
	}
	out := make([]plan.Instance, 0, len(docs))
	for _, i := range docs {
		if i.ID.IsZero() || i.Node == "" || i.Lease <= 0 || i.Beat.IsZero() {
			continue // another program's
		}
		out = append(out, plan.Instance{
			ID: plan.InstanceID{ID: plan.ID(i.ID)}, Node: i.Node, Host: i.Host, Process: plan.Process{PID: i.PID, Identity: i.Process}, Lease: i.Lease,
			Threads: i.Threads, Plugins: i.Plugins, Active: i.Active.domain(), Ignored: i.Ignored.domain(), Plan: planID(i.Plan), Version: i.Version, Sole: i.Sole,
			Runner: i.Runner, Pauses: i.pauses(), Beats: i.Beats, Age: max(0, now.Sub(i.Beat)),
		})
	}
	sort.Slice(out, func(a, b int) bool { return out[a].ID.String() < out[b].ID.String() })
	return out, nil
}

// Leave implements store.Node. An instance that has left does not register again.
func (s *Store) Leave(ctx context.Context, id plan.InstanceID) error {
	_, err := s.Rescue(ctx, id, -1)
	if err == nil {
		_, err = s.Remove(ctx, s.instances, d("_id", oid(id.ID), "gone", true))
	}
	return err
}

// Rescue implements store.Node.
func (s *Store) Rescue(ctx context.Context, id plan.InstanceID, beats int64) (n int, err error) {
	defer about(&err, "rescue of instance %s", id)
	i, err := wire.FindOne[instanceDoc](ctx, s.instances, d("_id", oid(id.ID)), wire.Query{Fields: d("progress", 0)})
	if err != nil || i == nil || i.Gone {
		return 0, err
	}
	filter := d("_id", i.ID, "gone", nil)
	filter = addIf(filter, beats >= 0, "beats", beats)
	gone, err := s.UpdateOne(ctx, s.instances, filter, d("$set", d("gone", true), "$unset", ones("progress"), "$currentDate", d("beat", true)))
	if err != nil {
		return 0, err
	}
	if !gone {
		there, err := wire.FindOne[instanceDoc](ctx, s.instances, d("_id", i.ID, "gone", nil), wire.Query{})
		if err != nil || there == nil {
			return 0, err
		}
		return 0, fmt.Errorf("it beat again: %w", plan.ErrConflict)
	}
	if i.Sole { // names that nobody uses any more are not kept
		_, err = s.Remove(ctx, s.meta, d("_id", nameKey(i.Node), "owner", i.ID))
	}
	if err == nil {
		err = s.inRound(ctx, 0, func(r *round) (err error) { n, err = r.loseAll(ctx, i); return err })
	}
	return n, err
}

// own makes a registered instance the owner of the key if it has no owner, and reports whether the
// instance is the owner. An owner was registered before. So an owner that is not registered has
// gone, and one conditional write changes the owner.
func (s *Store) own(ctx context.Context, key string, me bson.ObjectID) (bool, error) {
	of := d("_id", key)
	for range wire.Clashes {
		has, err := wire.FindOne[ownerDoc](ctx, s.meta, of, wire.Query{})
		if err != nil {
			return false, err
		}
		if has == nil {
			if taken, err := s.Insert(ctx, s.meta, d("_id", key, "owner", me)); err != nil || taken == 0 {
				return err == nil, err
			}
			continue
		}
		if has.Owner == me {
			return true, nil
		}
		if there, err := s.registered(ctx, has.Owner); err != nil || there {
			return false, err
		}
		if won, err := s.UpdateOne(ctx, s.meta, d("_id", key, "owner", has.Owner), d("$set", d("owner", me))); err != nil || won {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("%s changed hands %d times: %w", key, wire.Clashes, plan.ErrUnavailable)
}

// registered reports whether an instance is, and is not gone.
func (s *Store) registered(ctx context.Context, instance bson.ObjectID) (bool, error) {
	found, err := wire.FindOne[struct{}](ctx, s.instances, d("_id", instance, "gone", nil), wire.Query{Fields: ones("_id")})
	return found != nil, err
}

// takeName gives an instance that has just registered the name of its node, or takes it out again and returns plan.ErrNameTaken.
func (s *Store) takeName(ctx context.Context, i *instanceDoc) error {
	if has, err := s.own(ctx, nameKey(i.Node), i.ID); err != nil || has {
		return err
	}
	if _, err := s.Remove(ctx, s.instances, d("_id", i.ID, "gone", nil)); err != nil {
		return err
	}
	return plan.ErrNameTaken
}
