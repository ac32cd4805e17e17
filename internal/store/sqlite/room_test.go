package sqlite

import (
	"os"
	"testing"
)

// TestSmallCommitsFindRoomInTheLog has two handles commit in turn. Each makes room as if the test ran on ext4.
func TestSmallCommitsFindRoomInTheLog(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	other := openAt(t, s.path, Options{})
	defer closeStore(t, other)
	newPlan(t, s, "nightly", manyTasks(200)...)
	const commits = 400
	grew, size := 0, int64(0)
	for i := range commits {
		handle := []*Store{s, other}[i%2]
		if err := handle.SetMaxThreads(t.Context(), "n1", i+1); err != nil {
			t.Fatal(err)
		}
		handle.wal.inPlace = true
		info, err := os.Stat(s.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > size {
			grew++
		}
		size = info.Size()
	}
	end := logged(t, s.path)
	if room, most := size-end, int64(roomAhead+roomLeft*(frameHeader+pageSize)); room > most {
		t.Errorf("the log has %d bytes beyond its last commit, want %d at most", room, most)
	}
	if end < 3*roomAhead {
		t.Fatalf("the log has %d bytes, which is too short for this test", end)
	}
	if most := commits / 4; grew > most {
		t.Errorf("%d of %d commits made the log longer, want %d at most", grew, commits, most)
	}
}

// TestALogWithRoomIsReadToItsEnd copies a store whose log goes on with zeros, as a crash leaves it.
func TestALogWithRoomIsReadToItsEnd(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	last := 0
	for grown := false; !grown; last++ {
		if err := s.SetMaxThreads(t.Context(), "n1", last+1); err != nil {
			t.Fatal(err)
		}
		s.wal.inPlace = true
		info, err := os.Stat(s.path + "-wal")
		grown = err == nil && info.Size() > logged(t, s.path)+roomAhead/2
	}
	path := t.TempDir() + "/sluice.db"
	write(t, path, read(t, s.path))
	write(t, path+"-wal", read(t, s.path+"-wal"))
	after := openAt(t, path, Options{})
	defer closeStore(t, after)
	limits, err := after.MaxThreads(t.Context())
	if err != nil || limits["n1"] != last {
		t.Errorf("the copy has the limit %d, %v; want %d", limits["n1"], err, last)
	}
}
