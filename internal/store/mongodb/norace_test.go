//go:build !race

package mongodb

import "github.com/seed-1177d267/sluice/internal/store/storetest"

// The suite's own sizes take many minutes over a network: make test-mongodb-whole.
var sizes = storetest.Sizes{FanIn: 4000, FanOut: 6000, Items: 4000, Tasks: 200, Deaths: 12, Halfway: 6, Walks: 2, Damaged: 2, Steps: 60, Late: 8}
