// Package mongotest gives tests databases on the MongoDB server that SLUICE_TEST_MONGODB names. The script beside it stands one up.
package mongotest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Server is the URI of the server; "": there is none.
var Server = os.Getenv("SLUICE_TEST_MONGODB")

var databases atomic.Int64

// Database returns the URI of a database that nobody used before, and that goes when the test ends. Without a server the test is skipped.
func Database(t testing.TB) (uri string, db *mongo.Database) {
	t.Helper()
	if Server == "" {
		t.Skip("SLUICE_TEST_MONGODB names no server: this did not run")
	}
	u, err := url.Parse(Server)
	if err != nil {
		t.Fatalf("SLUICE_TEST_MONGODB: %v", err)
	}
	u.Path = fmt.Sprintf("/sluice_test_%d_%d", os.Getpid(), databases.Add(1))
	client, err := mongo.Connect(options.Client().ApplyURI(u.String()))
	if err != nil {
		t.Fatal(err)
	}
	db = client.Database(u.Path[1:])
	t.Cleanup(func() {
		if err := db.Drop(context.Background()); err != nil {
			t.Errorf("drop the database: %v", err)
		}
		if err := client.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return u.String(), db
}
