package sqlite

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
)

func TestDocuments(t *testing.T) {
	storetest.Documents(t, storetest.Driver{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			return openTest(t, Options{Now: o.Now, Hook: o.Hook})
		},
	})
}
