//go:build !race

package mongodb

import "github.com/seed-1177d267/sluice/internal/store/storetest"

// Sizes that are smaller than the suite's own would take many minutes over a network.
var sizes = storetest.Sizes{FanOut: 20_000, Items: 10_000, Tasks: 500, Deaths: 20, Walks: 3, Damaged: 2, Steps: 60, Late: 12}
