package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// smallDisk returns a folder on a disk of its own, of that size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no small disk can be mounted here (only root can), so NOTHING of full disks is tested: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A log of the usual size is larger than this disk.
func TestALargePlanRunsOnASmallDisk(t *testing.T) {
	s := openAt(t, filepath.Join(smallDisk(t, "16m"), "sluice.db"), Options{})
	defer closeStore(t, s)
	p := newPlan(t, s, "nightly", manyTasks(1000)...)
	x := protocol.Turn{Instance: register(t, s, "n1"), Slots: 1, Start: true}
	for ended := 0; ended < 1000; ended += len(x.Ended) {
		did := turn(t, s, x)
		x.Ended = x.Ended[:0]
		for _, c := range did.Claimed {
			x.Ended = append(x.Ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: json.RawMessage(`"` + strings.Repeat("x", 100) + `"`)})
		}
	}
	turn(t, s, x)
	if got, err := s.Plan(t.Context(), p); err != nil || got.State != plan.PlanSucceeded {
		t.Errorf("the plan is %v, %v", got.State, err)
	}
}

// A reader keeps the log from beginning anew until the disk is full. The file has room for all that the
// log holds, so that the next writer can make room without anybody's help.
func TestAFullDiskDoesNotStopTheStoreForEver(t *testing.T) {
	s := openAt(t, filepath.Join(smallDisk(t, "8m"), "sluice.db"), Options{})
	defer closeStore(t, s)
	newPlan(t, s, "nightly", manyTasks(10)...)
	set := func(i int) error { return s.SetMaxThreads(t.Context(), "n1", 1+i%100) }
	if err := set(0); err != nil {
		t.Fatal(err)
	}
	s.w.script("PRAGMA wal_checkpoint(TRUNCATE)")
	reader, err := dial(s.dsn(), pragmas...)
	if err != nil {
		t.Fatal(err)
	}
	reader.script("BEGIN; SELECT count(*) FROM tasks")
	full := 0
	for err == nil && full < 10_000 {
		full++
		err = set(full)
	}
	if !errors.Is(err, plan.ErrFull) {
		t.Fatalf("after %d writes: %v; want a full disk", full, err)
	}
	reader.script("COMMIT")
	if err := errors.Join(reader.clear(), reader.close()); err != nil {
		t.Fatal(err)
	}
	if err = set(1); err != nil && !errors.Is(err, plan.ErrFull) { // which is reported, but the log is shorter now
		t.Fatal(err)
	}
	for i := range full {
		if err := set(i); err != nil {
			t.Fatalf("write %d after the reader has gone: %v", i, err)
		}
	}
}

func TestTheLogFitsItsDisk(t *testing.T) {
	for room, want := range map[int64]logSize{
		0:        {leastLog / copyShare, leastLog, 3 * leastLog},
		32 << 20: {128, 512, 1536},
		1 << 40:  usualLog,
	} {
		if got := logSizeFor(room); got != want {
			t.Errorf("with room for %d bytes the sizes are %v, want %v", room, got, want)
		}
	}
	s := openTest(t, Options{})
	defer closeStore(t, s)
	if _, known := roomBeside(s.path); !known {
		t.Error("nobody knows the room on a disk of Linux")
	}
	if _, err := os.Stat(s.path + "-wal"); err != nil {
		t.Error(fmt.Errorf("the log has another name: %w", err))
	}
}
