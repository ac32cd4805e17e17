package sqlite

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// A writer that waits for the disk does not keep others from writing, and does not answer before.
func TestOthersWriteWhileOneWaitsForTheDisk(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	other := openAt(t, s.path, Options{})
	defer closeStore(t, other)
	flushing, flushed := make(chan struct{}), make(chan struct{})
	s.wal.flush = func(*os.File) error {
		close(flushing)
		<-flushed
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- s.SetMaxThreads(t.Context(), "n1", 1) }()
	<-flushing
	if err := other.SetMaxThreads(t.Context(), "n2", 2); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Errorf("it answered (%v) before what it wrote was on the disk", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(flushed)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestADiskThatFailsIsSaid(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	there := plan.Queue{Name: "there", Plugin: "demo", Unlimited: true}
	if _, err := s.EnsureQueue(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	for cause, says := range map[syscall.Errno]string{syscall.EIO: "sluice.db-wal: ", syscall.ENOSPC: "no room on its disk"} {
		s.wal.flush = func(*os.File) error { return cause }
		err := s.SetMaxThreads(t.Context(), "n1", 1)
		if !errors.Is(err, plan.ErrUnavailable) || errors.Is(err, plan.ErrFull) || !strings.Contains(err.Error(), says) {
			t.Errorf("with %v from the disk: %v, want %v, since it is committed, and to hear of %q", cause, err, plan.ErrUnavailable, says)
		}
		if _, err := s.EnsureQueue(t.Context(), there); err != nil {
			t.Errorf("what changes nothing waited for the disk: %v", err)
		}
	}
}

// A power failure leaves of the log what was flushed, and of what came after it any part: what was answered is there, and the file is whole.
func TestAPowerFailureLosesNothingThatWasAnswered(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	p := newPlan(t, s, "nightly", manyTasks(20)...)
	i := register(t, s, "n1")
	var lengths []int64 // of the log when each turn was answered
	x := protocol.Turn{Instance: i, Slots: 1, Start: true}
	for range 20 {
		did := turn(t, s, x)
		x.Ended = []protocol.Ending{{Claim: did.Claimed[0].Claim, Status: plan.Succeeded}}
		lengths = append(lengths, logged(t, s.path))
	}
	database, log := read(t, s.path), read(t, s.path+"-wal")
	for answered, length := range lengths { // the first turn ended none
		for _, torn := range []int64{0, 1, 24, pageSize / 2, pageSize + 23} {
			path := filepath.Join(t.TempDir(), "sluice.db")
			write(t, path, database)
			write(t, path+"-wal", log[:min(length+torn, int64(len(log)))])
			after := openAt(t, path, Options{})
			got, err := after.Plan(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if got.Counts.Succeeded < answered {
				t.Errorf("with the log of turn %d and %d bytes more: %d tasks succeeded, want %d", answered, torn, got.Counts.Succeeded, answered)
			}
			r := after.w.query("PRAGMA integrity_check")
			if !r.one() || r.text(0) != "ok" {
				t.Errorf("with the log of turn %d and %d bytes more: %s", answered, torn, r.text(0))
			}
			closeStore(t, after)
		}
	}
}

// logged returns how long the log of a database is up to its last commit: a file of this size may hold older frames behind it.
func logged(t *testing.T, path string) int64 {
	t.Helper()
	log := read(t, path+"-wal")
	salt, end := string(log[16:24]), int64(walHeader)
	for at := walHeader; at+frameHeader+pageSize <= len(log); at += frameHeader + pageSize {
		if string(log[at+8:at+16]) != salt {
			break
		}
		if binary.BigEndian.Uint32(log[at+4:]) != 0 { // the last frame of a commit
			end = int64(at + frameHeader + pageSize)
		}
	}
	return end
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
