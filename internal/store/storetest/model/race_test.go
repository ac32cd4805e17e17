//go:build race

package model_test

import "github.com/seed-1177d267/sluice/internal/store/storetest"

// The race detector is for meetings of goroutines, and these need no large store.
var sizes = storetest.Sizes{FanIn: 500, FanOut: 2000, Items: 2000, Tasks: 300, Walks: 3, Steps: 60}

// only are the groups in which goroutines or handles meet.
var only = []string{"turns", "instances", "take", "changes", "concurrent", "crash", "late"}
