//go:build race

package storetest_test

// What the race detector is to see is in the drivers' own tests.
const histories = 5
