//go:build race

package sqlite

import "github.com/seed-1177d267/sluice/internal/store/storetest"

// SQLite is translated to Go, and runs twenty times slower if the race detector sees its every
// access (make race leaves that out). The detector is for meetings of goroutines, and these need no
// large store.
var sizes = storetest.Sizes{FanIn: 500, FanOut: 2000, Items: 2000, Tasks: 300, Walks: 3, Damaged: 2, Steps: 60, Late: 12, Deaths: 24}

// only are the groups in which goroutines or handles meet.
var only = []string{"turns", "instances", "take", "changes", "concurrent", "crash", "late"}
