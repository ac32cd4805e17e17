package mongodb

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/store/storetest"
)

func TestSchedules(t *testing.T) {
	uri, _ := database(t)
	storetest.Schedules(t, openAt(t, uri), openAt(t, uri))
}
