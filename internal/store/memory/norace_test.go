//go:build !race

package memory_test

import "github.com/seed-1177d267/sluice/internal/store/storetest"

var sizes storetest.Sizes // the suite's own
