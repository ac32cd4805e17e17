//go:build !race

package model_test

import "github.com/seed-1177d267/sluice/internal/store/storetest"

// All but walks is the suite's own size; SLUICE_TEST_WHOLE=1 asks for all of these as well.
var sizes = storetest.Sizes{Walks: 100, Steps: 100}

// only are the groups that run: all.
var only []string
