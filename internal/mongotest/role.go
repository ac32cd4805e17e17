package mongotest

import (
	"context"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

// Role watches a client as a server with access control would. The test fails for each command that
// asks for more than the role may do. may has actions by collection, in MongoDB's words. MongoDB's
// manual lists the actions of each command under Privilege Actions.
func Role(t testing.TB, name string, may map[string][]string) *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		for collection, actions := range asks(e) {
			for _, a := range actions {
				if !slices.Contains(may[collection], a) {
					t.Errorf("%s may not %s %s, and is to: %.300s", name, a, collection, e.Command)
				}
			}
		}
	}}
}

// asks returns what a command asks for, by collection; that of a command that nobody has told of here is its name.
func asks(e *event.CommandStartedEvent) map[string][]string {
	collection, _ := e.Command.Lookup(e.CommandName).StringValueOK()
	of := map[string][]string{}
	switch e.CommandName {
	case "hello", "isMaster", "ping", "endSessions", "killCursors": // which everybody may, of what is their own
	case "find", "count", "distinct":
		of[collection] = []string{"find"}
	case "getMore":
		collection, _ = e.Command.Lookup("collection").StringValueOK()
		of[collection] = []string{"find"}
	case "aggregate":
		of[collection] = []string{"find"}
		for _, other := range joined(e.Command) {
			of[other] = []string{"find"}
		}
	case "insert":
		of[collection] = []string{"insert"}
	case "delete":
		of[collection] = []string{"remove"}
	case "update":
		of[collection] = []string{"update"}
		updates, _ := e.Command.Lookup("updates").ArrayOK()
		values, _ := updates.Values()
		for _, u := range values {
			if makes, _ := u.Document().Lookup("upsert").BooleanOK(); makes {
				of[collection] = []string{"insert", "update"}
			}
		}
	case "findAndModify":
		of[collection] = []string{"find", "update"}
		if removes, _ := e.Command.Lookup("remove").BooleanOK(); removes {
			of[collection] = []string{"find", "remove"}
		}
		if makes, _ := e.Command.Lookup("upsert").BooleanOK(); makes {
			of[collection] = append(of[collection], "insert")
		}
	case "listIndexes":
		of[collection] = []string{"listIndexes"}
	case "createIndexes":
		of[collection] = []string{"createIndex"}
	default:
		of[collection] = []string{e.CommandName}
	}
	return of
}

// joined returns the other collections that an aggregate reads.
func joined(command bson.Raw) (names []string) {
	pipeline, _ := command.Lookup("pipeline").ArrayOK()
	stages, _ := pipeline.Values()
	for _, s := range stages {
		for _, at := range [][]string{{"$unionWith"}, {"$unionWith", "coll"}, {"$lookup", "from"}} {
			if name, ok := s.Document().Lookup(at...).StringValueOK(); ok {
				names = append(names, name)
			}
		}
	}
	return names
}
