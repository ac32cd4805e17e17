package mongodb

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
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
	now, err := s.Now(t.Context())
	no(err)
	insert("early", now.Add(time.Second)) // of a server whose clock is ahead, say
	for _, c := range []*store.Cursor{&first, &second} {
		var got []string
		if got, *c = follow(*c); len(got) != 1 || got[0] != "early" {
			t.Fatalf("got %q, want early", got)
		}
	}
	insert("late", now.Add(time.Second/2))
	polltest.Until(t, time.Minute, "all writes of that time have to be there", func() bool {
		at, err := s.Now(t.Context())
		no(err)
		return at.After(now.Add(lateness + time.Second))
	})
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

func TestAPlaceInTheFutureIsNone(t *testing.T) {
	s, _, no := openTest(t)
	now, err := s.Now(t.Context())
	no(err)
	for after, want := range map[time.Duration]error{0: nil, ahead / 2: nil, 2 * ahead: plan.ErrCursor} {
		if _, _, err := s.Changes(t.Context(), newPlace(now.Add(after)).cursor(), 10); !errors.Is(err, want) {
			t.Errorf("%v from now: %v, want %v", after, err, want)
		}
	}
}

func TestAFollowerThatIsGoneIsForgotten(t *testing.T) {
	var f feed
	one := []store.Change{{At: time.Now(), Task: taskID(bson.NewObjectID())}}
	if len(f.news(1, one, 9)) != 1 || len(f.news(1, one, 9)) != 0 || len(f.news(2, one, 9)) != 1 {
		t.Error("a change is not news once to each follower")
	}
	f.followers[1].asked = time.Now().Add(-2 * forgotten)
	f.forget(2, time.Now())
	if len(f.followers) != 1 || len(f.followers[2].seen) != 0 {
		t.Errorf("remembered is %v", f.followers)
	}
}

// A write whose time is before that of the present, and that is visible only afterwards, is told all the same; what was there is not.
func TestWhatIsVisibleAfterThePresentIsNotMissed(t *testing.T) {
	t.Parallel() // it waits
	s, db, no := openTest(t)
	create := func(name string) plan.Plan {
		p, err := s.CreatePlan(t.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: name})
		no(err)
		return p
	}
	create("there")
	cursor, err := s.Latest(t.Context())
	no(err)
	late := create("late")
	_, err = db.Collection("plans").UpdateOne(t.Context(), d("_id", oid(late.ID.ID)), d("$set", d("mtime", time.Now().Add(-time.Second))))
	no(err)
	var changes []store.Change
	polltest.Until(t, time.Minute, "it is told", func() bool {
		changes, cursor, err = s.Changes(t.Context(), cursor, 100)
		no(err)
		return len(changes) > 0
	})
	if len(changes) != 1 || changes[0].Name != "late" {
		t.Errorf("told of %+v, want of late alone", changes)
	}
}

// The end of a plan is told together with those ends of its tasks that are visible after a later change.
func TestTheEndOfAPlanBringsWhatIsVisibleLate(t *testing.T) {
	s, db, no := openTest(t)
	p, err := s.CreatePlan(t.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "followed"})
	no(err)
	cursor, err := s.Latest(t.Context())
	no(err)
	look := func() (told []store.Change) {
		told, cursor, err = s.Changes(t.Context(), cursor, 100)
		no(err)
		return told
	}
	now, err := s.Now(t.Context())
	no(err)
	task := func(at time.Time) bson.ObjectID {
		id := bson.NewObjectID()
		_, err := db.Collection("tasks").InsertOne(t.Context(), d("_id", id, "plan", oid(p.ID.ID), "name", id.Hex(), "status", plan.Succeeded, "mtime", at))
		no(err)
		return id
	}
	early := task(now.Add(time.Second))
	if told := look(); len(told) != 1 || told[0].Task != taskID(early) {
		t.Fatalf("told of %+v, want of the first task", told)
	}
	late := task(now.Add(500 * time.Millisecond))
	if told := look(); len(told) != 0 {
		t.Fatalf("told of %+v, before the second look", told)
	}
	_, err = db.Collection("plans").UpdateOne(t.Context(), d("_id", oid(p.ID.ID)), d("$set", d("mtime", now.Add(2*time.Second), "state", plan.PlanSucceeded)))
	no(err)
	told := look()
	if len(told) != 2 || told[0].Task != taskID(late) || told[1].Plan != p.ID || !told[1].State.Ended() {
		t.Errorf("told of %+v, want of the second task and of the end", told)
	}
	if told := look(); len(told) != 0 {
		t.Errorf("told again of %+v", told)
	}
}
