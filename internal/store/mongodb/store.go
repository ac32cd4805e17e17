package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/seed-1177d267/sluice/internal/store"
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
	client *mongo.Client
	db     *mongo.Database
	hook   store.Hook
	clock  clock
	feed   feed

	sharded bool // the server is a mongos

	tasks, plans, queues, nodes, instances   *mongo.Collection
	work, joins, items, retries              *mongo.Collection
	logs, meta, runs, files, chunks, balance *mongo.Collection

	mu        sync.Mutex
	doing     map[bson.ObjectID]bool            // documents of work that a call is busy with
	given     map[bson.ObjectID]taskDoc         // tasks that were claimed by this handle, as far as their endings have to know them
	alone     map[bson.ObjectID]bool            // tasks that cannot even be ended
	rotation  int                               // which queue a turn serves first
	unasked   []bson.D                          // ranges of queues' ids in which the last search for work did not look
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
}

var _ store.Store = (*Store)(nil)

// selectionTimeout is how long a server is looked for where the URI does not say.
const selectionTimeout = 10 * time.Second

// Open connects to the server of the URI, whose path names the database, and makes what the schema needs, unless o.Existing and the
// database has neither that nor a queue of another program. It returns
// plan.ErrUnavailable if the server cannot be reached, and plan.ErrNewerSchema if a newer version wrote the database.
func Open(ctx context.Context, uri string, o Options) (*Store, error) {
	client, database, err := connect(uri, o.Monitor)
	if err != nil {
		return nil, err
	}
	s := newStore(client, database, o)
	looked := time.Now()
	if err := s.prepare(ctx, o.Existing); err != nil {
		_ = client.Disconnect(context.WithoutCancel(ctx)) // the first error says what is wrong
		if errors.Is(err, plan.ErrNoStore) {
			return nil, fmt.Errorf("no store at %s: %w", Redact(uri), err)
		}
		u, ok := errors.AsType[*unreachable](err)
		if _, waited := errors.AsType[topology.ServerSelectionError](err); ok && waited {
			u.within = time.Since(looked).Round(100 * time.Millisecond)
		}
		return nil, fmt.Errorf("open %s: %w", Redact(uri), err)
	}
	return s, nil
}

// connect returns a client for the URI, and the database that it names. Nothing has gone over the network then, but for the names that
// mongodb+srv has looked up.
func connect(uri string, m *event.CommandMonitor) (client *mongo.Client, database string, err error) {
	c := options.Client().ApplyURI(uri)
	if err := c.Validate(); err != nil {
		var dns *net.DNSError
		if errors.As(err, &dns) { // of mongodb+srv, whose hosts are looked up as it is read
			what, remedy := causeOf(err)
			err = &unreachable{what: at(dns.Name + " (" + what + ")"), remedy: remedy + ", or write mongodb:// for one that has no SRV record", err: err}
			return nil, "", fmt.Errorf("open %s: %w", Redact(uri), err)
		}
		return nil, "", fmt.Errorf("%s is not the URI of a MongoDB database: %w", Redact(uri), redacted(err))
	}
	database, err = Database(uri)
	if err != nil {
		return nil, "", fmt.Errorf("%s is not the URI of a MongoDB database: %w", Redact(uri), err)
	}
	if database == "" {
		return nil, "", fmt.Errorf("%s names no database; write mongodb://HOST:PORT/DATABASE", Redact(uri))
	}
	journaled := true
	c.SetAppName("sluice").SetRegistry(types).SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Local()).
		SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journaled}).SetMonitor(m)
	if c.ServerSelectionTimeout == nil {
		c.SetServerSelectionTimeout(selectionTimeout)
	}
	client, err = mongo.Connect(c)
	if err != nil {
		return nil, "", fmt.Errorf("connect to %s: %w: %w", Redact(uri), plan.ErrUnavailable, redacted(err))
	}
	return client, database, nil
}

func newStore(client *mongo.Client, database string, o Options) *Store {
	db := client.Database(database)
	return &Store{
		client: client, db: db, hook: o.Hook, doing: map[bson.ObjectID]bool{}, given: map[bson.ObjectID]taskDoc{}, limits: map[plan.NodeName]count{}, nodeOf: map[plan.InstanceID]plan.NodeName{},
		tasks: db.Collection("tasks"), plans: db.Collection("plans"), queues: db.Collection("queues"), nodes: db.Collection("nodes"),
		instances: db.Collection("instances"), work: db.Collection("work"), joins: db.Collection("joins"), items: db.Collection("items"),
		retries: db.Collection("retries"), logs: db.Collection("logs"), meta: db.Collection("meta"), runs: db.Collection("runs"),
		files: db.Collection("tasks.files"), chunks: db.Collection("tasks.chunks"), balance: db.Collection("balance"),
	}
}

// Close implements store.Store. A server that does not answer is not waited for: the driver would tell it of each session, and it forgets
// them by itself.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	err := s.client.Disconnect(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return err
}

const goodbye = 3 * time.Second

// Wakes implements store.Node: the server's change streams are not used, so nodes poll, and read the wake counter as they beat.
func (s *Store) Wakes(context.Context) <-chan struct{} { return nil }

// Database returns the database that a URI names, "" if it names none. Package net/url reads no URI of several hosts of which the last has
// no port, or another one is an IPv6 address.
func Database(uri string) (string, error) {
	_, rest, _ := strings.Cut(uri, "://")
	rest, _, _ = strings.Cut(rest, "?")
	hosts := strings.LastIndexByte(rest, '@') + 1
	for _, word := range strings.SplitN(rest[:max(hosts-1, 0)], ":", 2) {
		if _, err := url.PathUnescape(word); err != nil || strings.ContainsAny(word, "/@") {
			return "", errors.New("letters such as @ and / in a user's name or password are written as %40 and %2F") // without the word
		}
	}
	_, path, _ := strings.Cut(rest[hosts:], "/")
	return url.PathUnescape(strings.Trim(path, "/"))
}

// Redact returns a URI without the secrets in it, for printing: its password, and options that hold some. It also takes them out of what
// is not quite a URI: then of all that may be a user and a password nothing is left but the user.
func Redact(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		if strings.HasPrefix(uri, "sqlite:") {
			return uri // a path, in which these characters may stand
		}
		return secretOption.ReplaceAllString(secretOfUser.ReplaceAllString(uri, ":***@"), "$1***")
	}
	if at := strings.LastIndexByte(beforeOptions(rest), '@'); at >= 0 {
		if user, _, secret := strings.Cut(rest[:at], ":"); secret {
			rest = user + ":***" + rest[at:]
		}
	}
	return scheme + "://" + secretOption.ReplaceAllString(rest, "$1***")
}

// beforeOptions cuts off the options, unless a password that is not escaped may hold the question mark.
func beforeOptions(rest string) string {
	authority, options, _ := strings.Cut(rest, "?")
	if strings.Contains(authority, "@") || !strings.Contains(options, "@") {
		return authority
	}
	return rest
}

var (
	secretOption = regexp.MustCompile(`(?i)([\w]*(?:password|properties)=)[^&\s"'\x60]*`)
	secretOfUser = regexp.MustCompile(`:(?:[^/].*|/[^:]*[^:/])@`) // of what has no ://
	credentials  = regexp.MustCompile(`//.*@`)
)

// redacted returns an error whose text holds no credentials: the driver's own texts may quote the URI.
func redacted(err error) error {
	text := secretOption.ReplaceAllString(credentials.ReplaceAllString(err.Error(), "//***@"), "$1***")
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// write makes one or several write commands that count as one, with the hook before and after them.
func (s *Store) write(ctx context.Context, do func() error) error {
	if s.hook != nil {
		if err := s.hook(false); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return translate(err)
	}
	if s.hook != nil {
		return s.hook(true)
	}
	return nil
}

// command makes one write command, which changes all or nothing that it is about.
func (s *Store) command(ctx context.Context, do func() error) error {
	return s.write(ctx, func() error { return withoutClash(ctx, do) })
}

// insert inserts documents in one command; those whose keys are taken are left out, and it returns how many of them that were.
func (s *Store) insert(ctx context.Context, c *mongo.Collection, docs ...any) (taken int, err error) {
	if len(docs) == 0 {
		return 0, nil
	}
	err = s.write(ctx, func() error {
		for clashed := 1; ; clashed++ {
			err := withoutClash(ctx, func() error {
				_, err := c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
				return err
			})
			failed := writeErrors(err)
			if failed == nil {
				return err
			}
			var left []any
			for _, e := range failed {
				switch {
				case mongo.IsDuplicateKeyError(e):
					taken++
				case isClash(e) && clashed < clashes:
					left = append(left, docs[e.Index])
				default:
					return err
				}
			}
			if docs = left; len(left) == 0 {
				return nil
			}
			if err := afterClash(ctx, clashed); err != nil {
				return err
			}
		}
	})
	return taken, err
}

// updateOne changes one document and reports whether there was one to change.
func (s *Store) updateOne(ctx context.Context, c *mongo.Collection, filter, update any) (matched bool, err error) {
	err = s.command(ctx, func() error {
		res, err := c.UpdateOne(ctx, filter, update)
		if err == nil {
			matched = res.MatchedCount > 0
		}
		return err
	})
	return matched, err
}

// upsert changes a document, or makes it.
func (s *Store) upsert(ctx context.Context, c *mongo.Collection, filter, update any) error {
	return s.command(ctx, func() error { return upsertOne(ctx, c, filter, update) })
}

// upsertOne is upsert without the hook. If several processes make a document at once, the server
// tells all but one that its key is taken; these then change that document.
func upsertOne(ctx context.Context, c *mongo.Collection, filter, update any) (err error) {
	for range tries {
		if _, err = c.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(true)); !mongo.IsDuplicateKeyError(err) {
			break
		}
	}
	return err
}

// updateMany changes documents and returns how many there were.
func (s *Store) updateMany(ctx context.Context, c *mongo.Collection, filter, update any) (matched int, err error) {
	err = s.command(ctx, func() error {
		res, err := c.UpdateMany(ctx, filter, update)
		if err == nil {
			matched = int(res.MatchedCount)
		}
		return err
	})
	return matched, err
}

// remove deletes documents and returns how many there were.
func (s *Store) remove(ctx context.Context, c *mongo.Collection, filter any) (n int, err error) {
	err = s.command(ctx, func() error {
		res, err := c.DeleteMany(ctx, filter)
		if err == nil {
			n = int(res.DeletedCount)
		}
		return err
	})
	return n, err
}

// query says what find is to return; zero fields say nothing.
type query struct {
	fields bson.D
	sort   bson.D
	skip   int
	limit  int
	batch  int // of each: documents in one answer; 0: addAtOnce
	hint   string
}

func (q *query) options() *options.FindOptionsBuilder {
	o := options.Find()
	if q.fields != nil {
		o.SetProjection(q.fields)
	}
	if q.sort != nil {
		o.SetSort(q.sort)
	}
	if q.hint != "" {
		o.SetHint(q.hint)
	}
	if q.skip > 0 {
		o.SetSkip(int64(q.skip))
	}
	if q.limit > 0 {
		return o.SetLimit(int64(q.limit)).SetBatchSize(int32(min(q.limit, math.MaxInt32)))
	}
	return o.SetBatchSize(100_000)
}

// find returns the documents that match. It takes them in one answer as far as they fit into one.
func find[T any](ctx context.Context, c *mongo.Collection, filter any, q query) ([]T, error) {
	cursor, err := c.Find(ctx, filter, q.options())
	if err != nil {
		return nil, translate(err)
	}
	found, err := all[T](ctx, cursor)
	if err != nil {
		return nil, translate(err)
	}
	return found, nil
}

// wholeBytes is about how many bytes of whole tasks are read, or written, at a time: of one answer, which has at most 16 MiB, nearly all. With
// what is made of them a round has several times as much in memory.
const wholeBytes = 15 << 20

// findSome is find that stops at wholeBytes, and reports whether it did: then there may be more.
func findSome[T any](ctx context.Context, c *mongo.Collection, filter any, q query) (found []T, more bool, err error) {
	cursor, err := c.Find(ctx, filter, q.options())
	if err != nil {
		return nil, false, translate(err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	for size := 0; cursor.Next(ctx); {
		var v T
		if err := decode(cursor.Current, &v); err != nil {
			return nil, false, translate(err)
		}
		found = append(found, v)
		if size += len(cursor.Current); size >= wholeBytes {
			return found, true, nil
		}
	}
	return found, false, translate(cursor.Err())
}

// each calls do with each document that matches, until that returns an error, and keeps only those of one answer.
func each[T any](ctx context.Context, c *mongo.Collection, filter any, q query, do func(*T) error) error {
	cursor, err := c.Find(ctx, filter, q.options().SetBatchSize(int32(cmp.Or(q.batch, addAtOnce))))
	if err != nil {
		return translate(err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	for cursor.Next(ctx) {
		var v T
		if err := decode(cursor.Current, &v); err != nil {
			return translate(err)
		}
		if err := do(&v); err != nil {
			return err
		}
	}
	return translate(cursor.Err())
}

// findOne returns the document that matches, nil if there is none.
func findOne[T any](ctx context.Context, c *mongo.Collection, filter any, q query) (*T, error) {
	q.limit = 1
	found, err := find[T](ctx, c, filter, q)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}
