// Package mongotest gives tests databases on the MongoDB server that SLUICE_TEST_MONGODB names. The script beside it stands one up.
package mongotest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Server is the URI of the server; "": there is none.
var Server = os.Getenv("SLUICE_TEST_MONGODB")

// used holds the databases that later tests of this process may use again. To make one with all its
// indexes costs the server as much as hundreds of writes.
var used struct {
	sync.Mutex
	again bool // the process calls Run, which drops them in the end
	made  int
	free  []database
}

type database struct {
	uri string
	*mongo.Database
}

// Run runs the tests of a package, lets them use databases again, and drops those in the end.
func Run(m *testing.M) int {
	used.again = true
	code := m.Run()
	for _, db := range used.free {
		if err := db.drop(); err != nil {
			fmt.Fprintln(os.Stderr, "mongotest:", err)
			code = max(code, 1)
		}
	}
	return code
}

// Database returns the URI of a database that is empty when the test begins, and that nobody else
// uses until it ends. A store may have made its collections and indexes there before. Without a
// server the test is skipped.
func Database(t testing.TB) (uri string, db *mongo.Database) {
	t.Helper()
	needServer(t)
	used.Lock()
	if n := len(used.free); n > 0 {
		defer used.Unlock()
		got := used.free[n-1]
		used.free = used.free[:n-1]
		t.Cleanup(func() { got.giveBack(t) })
		return got.uri, got.Database
	}
	used.Unlock()
	got := newDatabase(t)
	t.Cleanup(func() { got.giveBack(t) })
	return got.uri, got.Database
}

// Fresh is Database for tests that care what is made there: nobody used this one before, and it goes
// when the test ends. No test may drop the database of Database in place of this. After a database
// was dropped and made again by the same name, DocumentDB has connections that still see the old one:
// what was inserted by one of them was not found by another.
func Fresh(t testing.TB) (uri string, db *mongo.Database) {
	t.Helper()
	needServer(t)
	got := newDatabase(t)
	t.Cleanup(func() {
		if err := got.drop(); err != nil {
			t.Error(err)
		}
	})
	return got.uri, got.Database
}

func needServer(t testing.TB) {
	t.Helper()
	if Server == "" {
		t.Skip("SLUICE_TEST_MONGODB names no server: this did not run")
	}
}

func newDatabase(t testing.TB) database {
	t.Helper()
	u, err := url.Parse(Server)
	if err != nil {
		t.Fatalf("SLUICE_TEST_MONGODB: %v", err)
	}
	used.Lock()
	used.made++
	u.Path = fmt.Sprintf("/sluice_test_%d_%d", os.Getpid(), used.made)
	used.Unlock()
	client, err := mongo.Connect(options.Client().ApplyURI(u.String()))
	if err != nil {
		t.Fatal(err)
	}
	return database{u.String(), client.Database(u.Path[1:])}
}

// Pass makes every instant that a store keeps in the database older, as if so much time had passed.
// Entries of logs keep theirs.
func Pass(t testing.TB, db *mongo.Database, by time.Duration) {
	t.Helper()
	for collection, fields := range map[string][]string{
		"tasks":     {"ctime", "mtime", "notbefore", "started", "ended", "noticed", "claimed"},
		"plans":     {"ctime", "mtime", "retried", "ended", "until", "deadline"},
		"instances": {"beat"},
		"queues":    {"spent"},
		"groups":    {"spent", "changed"},
		"retries":   {"at", "retried", "ended", "deadline"},
		"runs":      {"at"},
		"nodes":     {"timestamp"},
		"meta":      {"at"}, // of the audit
	} {
		for _, f := range fields {
			there := bson.D{{Key: f, Value: bson.D{{Key: "$exists", Value: true}}}}
			older := bson.D{{Key: "$subtract", Value: bson.A{"$" + f, by.Milliseconds()}}}
			set := mongo.Pipeline{bson.D{{Key: "$set", Value: bson.D{{Key: f, Value: older}}}}}
			if _, err := db.Collection(collection).UpdateMany(t.Context(), there, set); err != nil {
				t.Fatalf("let time pass: %v", err)
			}
		}
	}
}

func (db database) drop() error {
	if err := db.Drop(context.Background()); err != nil {
		return fmt.Errorf("drop the database: %w", err)
	}
	return db.Client().Disconnect(context.Background())
}

// giveBack empties the database for the next test. It drops one of a test that failed, whose
// goroutines may still write, and one with so many documents that dropping it costs less.
func (db database) giveBack(t testing.TB) {
	const many = 2000
	most := int64(many)
	if used.again && !t.Failed() {
		var err error
		if most, err = db.empty(); err != nil {
			t.Errorf("empty the database: %v", err)
		}
	}
	if most >= many {
		if err := db.drop(); err != nil {
			t.Error(err)
		}
		return
	}
	used.Lock()
	defer used.Unlock()
	used.free = append(used.free, db)
}

// empty deletes all but the document that says for which schema the store made its indexes. It
// returns how many documents the largest collection had.
func (db database) empty() (most int64, err error) {
	ctx := context.Background()
	names, err := db.ListCollectionNames(ctx, bson.D{})
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		all := bson.D{}
		if name == "meta" {
			all = bson.D{{Key: "_id", Value: bson.D{{Key: "$ne", Value: "schema"}}}}
		}
		res, err := db.Collection(name).DeleteMany(ctx, all)
		if err != nil {
			return 0, err
		}
		most = max(most, res.DeletedCount)
	}
	return most, nil
}
