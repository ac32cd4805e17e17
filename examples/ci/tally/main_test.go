package main

import (
	"slices"
	"strings"
	"testing"
)

func TestTheMostFrequentWordComesFirst(t *testing.T) {
	got, err := tally(strings.NewReader("to be or not to be to"))
	want := []count{{"to", 3}, {"be", 2}, {"or", 1}, {"not", 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("tally = %v, %v, want %v", got, err, want)
	}
}
