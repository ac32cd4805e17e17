package memory_test

import (
	"os"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/memory"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
)

var driver = storetest.Driver{
	Open: func(_ testing.TB, o storetest.Options) store.Store {
		return memory.New(memory.Options{Now: o.Now, Hook: o.Hook})
	},
	Reopen: func(_ testing.TB, s store.Store, o storetest.Options) store.Store {
		return s.(*memory.Store).Reopen(memory.Options{Hook: o.Hook})
	},
	Left:  func(_ testing.TB, s store.Store) map[string]int { return s.(*memory.Store).Left() },
	Only:  only,
	Sizes: sizes,
}

func TestBalances(t *testing.T) {
	s := memory.New(memory.Options{})
	storetest.Balances(t, s, s.Reopen(memory.Options{}))
}

func TestStore(t *testing.T) {
	if os.Getenv("SLUICE_TEST_WHOLE") != "" {
		driver.Sizes = storetest.Sizes{}
	}
	storetest.Run(t, driver)
}

func TestResults(t *testing.T) { storetest.Results(t, storetest.ResultsDriver{Driver: driver}) }

func TestDocuments(t *testing.T) { storetest.Documents(t, driver) }
