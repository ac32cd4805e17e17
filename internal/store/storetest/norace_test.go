//go:build !race

package storetest_test

const histories = 60
