package sqlite

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
)

func TestResults(t *testing.T) {
	r := &recorder{texts: map[string]bool{}}
	d := storetest.ResultsDriver{
		Driver: storetest.Driver{
			Open: func(t testing.TB, o storetest.Options) store.Store {
				return &recorded{openTest(t, Options{Now: o.Now, Hook: o.Hook}), r}
			},
			Reopen: func(t testing.TB, s store.Store, o storetest.Options) store.Store {
				return &recorded{openAt(t, s.(*recorded).path, Options{Now: o.Now, Hook: o.Hook}), r}
			},
			Keep: defaultKeep,
		},
		Rows: func(t testing.TB, s store.Store) (rows int) {
			err := s.(*recorded).read(t.Context(), func(c *conn) error {
				r := c.query("SELECT (SELECT count(*) FROM results) + (SELECT count(*) FROM chunks)")
				r.one()
				rows = int(r.int(0))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return rows
		},
	}
	storetest.Results(t, d)
	storetest.Packs(t, d)
	t.Run("no statement of a writer reads a table as a whole", func(t *testing.T) { checkStatements(t, r.texts) })
}
