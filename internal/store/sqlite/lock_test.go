package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

func newTestTurnstile(t *testing.T, path string) *turnstile {
	t.Helper()
	s, err := newTurnstile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestWhoWaitsForTheTurnIsNotOvertaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	busy, waiting := newTestTurnstile(t, path), newTestTurnstile(t, path)
	if ok, err := busy.try(); !ok || err != nil {
		t.Fatalf("the first turn: %v, %v", ok, err)
	}
	if ok, err := waiting.try(); ok || err != nil {
		t.Fatalf("a second turn at the same time: %v, %v", ok, err)
	}
	has := make(chan error)
	go func() { has <- waiting.wait() }()
	for { // until it is the next one
		ok, err := tryLock(busy.next)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if err := unlock(busy.next); err != nil {
			t.Fatal(err)
		}
	}
	busy.unlock()
	if ok, err := busy.try(); ok || err != nil {
		t.Errorf("who had the turn took it again (%v, %v) from one that waited", ok, err)
	}
	if err := <-has; err != nil {
		t.Fatal(err)
	}
	waiting.unlock()
	if ok, err := busy.try(); !ok || err != nil {
		t.Errorf("a turn that nobody has: %v, %v", ok, err)
	}
}

func TestAWaitForTheTurnEndsWithItsContext(t *testing.T) {
	s := openTest(t, Options{})
	other := newTestTurnstile(t, s.path)
	if ok, err := other.try(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.SetMaxThreads(ctx, "n1", 1) }()
	for { // until it waits
		ok, err := tryLock(other.next)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if err := unlock(other.next); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	other.unlock()
	if err := s.SetMaxThreads(t.Context(), "n1", 2); err != nil {
		t.Errorf("the next write: %v", err)
	}
	closeStore(t, s)
}

func TestAHandleWakesOthersAndNotItself(t *testing.T) {
	here := openTest(t, Options{})
	there := openAt(t, here.path, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	own, others := here.Wakes(ctx), there.Wakes(ctx)
	beat := func() int64 {
		t.Helper()
		told, err := there.Beat(t.Context(), protocol.Beat{Instance: register(t, there, "n1")})
		if err != nil {
			t.Fatal(err)
		}
		return told.Wake
	}
	before := beat()
	newPlan(t, here, "nightly", task{name: "a"}, task{name: "b"})
	if _, ok := <-others; !ok {
		t.Fatal("the channel is closed")
	}
	if after := beat(); after == before {
		t.Errorf("a beat is told of wake %d as before", after)
	}
	// A turn that takes all that it queues is nobody's business. It comes before a notice that is, so that it would be seen.
	i := register(t, there, "n2")
	claims := turn(t, there, protocol.Turn{Instance: i, Slots: 5}).Claimed
	if len(claims) != 2 {
		t.Fatalf("claimed %d tasks, want 2", len(claims))
	}
	turn(t, there, protocol.Turn{Instance: i, Ended: []protocol.Ending{{Claim: claims[0].Claim, Status: plan.Queued}}})
	if _, ok := <-own; !ok {
		t.Fatal("the channel is closed")
	}
	select {
	case <-others:
		t.Error("a handle was woken by its own notice")
	default:
	}
	cancel()
	for range own { // until it is closed
	}
	for range others {
	}
	closeStore(t, there)
	closeStore(t, here)
}
