package mongodb

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store"
)

// TestAWriteThatIsVisibleLateIsToldToEachFollower has a task appear with an mtime that lies behind what two followers of one handle got.
func TestAWriteThatIsVisibleLateIsToldToEachFollower(t *testing.T) {
	t.Parallel() // it waits
	s, db, no := openTest(t)
	follow := func(c store.Cursor) (names []string, next store.Cursor) {
		t.Helper()
		changes, next, err := s.Changes(t.Context(), c, 100)
		no(err)
		for _, c := range changes {
			names = append(names, c.Name)
		}
		return names, next
	}
	insert := func(name string, at time.Time) {
		t.Helper()
		_, err := db.Collection("tasks").InsertOne(t.Context(), d("_id", bson.NewObjectID(), "name", name, "status", -2, "node", nil, "mtime", at))
		no(err)
	}
	first, err := s.Latest(t.Context())
	no(err)
	second, err := s.Latest(t.Context())
	no(err)
	now, err := s.now(t.Context())
	no(err)
	insert("early", now.Add(time.Second)) // of a server whose clock is ahead, say
	for _, c := range []*store.Cursor{&first, &second} {
		var got []string
		if got, *c = follow(*c); len(got) != 1 || got[0] != "early" {
			t.Fatalf("got %q, want early", got)
		}
	}
	insert("late", now.Add(time.Second/2))
	time.Sleep(lateness + 1200*time.Millisecond) // until all writes of that time have to be there
	for name, c := range map[string]store.Cursor{"first": first, "second": second} {
		got, next := follow(c)
		if len(got) != 1 || got[0] != "late" {
			t.Errorf("the %s follower got %q, want late", name, got)
		}
		if got, _ := follow(next); len(got) != 0 {
			t.Errorf("the %s follower got %q once more", name, got)
		}
	}
}

func TestAFollowerThatIsGoneIsForgotten(t *testing.T) {
	var f feed
	one := []entry{{store.Change{At: time.Now()}, bson.NewObjectID()}}
	if len(f.news(1, one, 9)) != 1 || len(f.news(1, one, 9)) != 0 || len(f.news(2, one, 9)) != 1 {
		t.Error("a change is not news once to each follower")
	}
	f.followers[1].asked = time.Now().Add(-2 * forgotten)
	f.forget(2, time.Now())
	if len(f.followers) != 1 || len(f.followers[2].seen) != 0 {
		t.Errorf("remembered is %v", f.followers)
	}
}
