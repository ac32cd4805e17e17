package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store/storetest"
)

func TestSchedules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s, other := openAt(t, path, Options{}), openAt(t, path, Options{})
	storetest.Schedules(t, s, other)
	closeStore(t, other)
	closeStore(t, s)
}
