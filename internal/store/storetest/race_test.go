//go:build race

package storetest_test

// The drivers' own tests are for the race detector.
const histories = 5
