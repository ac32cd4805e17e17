package model_test

import (
	"os"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
)

var driver = storetest.Driver{
	Open: func(_ testing.TB, o storetest.Options) store.Store {
		return model.New(model.Options{Now: o.Now, Hook: o.Hook})
	},
	Reopen: func(_ testing.TB, s store.Store, o storetest.Options) store.Store {
		return s.(*model.Store).Reopen(model.Options{Hook: o.Hook})
	},
	Left:  func(_ testing.TB, s store.Store) map[string]int { return s.(*model.Store).Left() },
	Only:  only,
	Sizes: sizes,
}

func TestBalances(t *testing.T) {
	s := model.New(model.Options{})
	storetest.Balances(t, s, s.Reopen(model.Options{}))
}

func TestSchedules(t *testing.T) {
	s := model.New(model.Options{})
	storetest.Schedules(t, s, s.Reopen(model.Options{}))
}

func TestStore(t *testing.T) {
	if os.Getenv("SLUICE_TEST_WHOLE") != "" {
		driver.Sizes = storetest.Sizes{}
	}
	storetest.Run(t, driver)
}

func TestResults(t *testing.T) { storetest.Results(t, storetest.ResultsDriver{Driver: driver}) }

func TestPacks(t *testing.T) { storetest.Packs(t, storetest.ResultsDriver{Driver: driver}) }

func TestDocuments(t *testing.T) { storetest.Documents(t, driver) }
