//go:build !race

package sqlite

import "github.com/seed-1177d267/sluice/internal/store/storetest"

var sizes storetest.Sizes // the suite's own
