package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
)

func TestDealGivesEachItsTurn(t *testing.T) {
	type is = map[string]protocol.Share
	for _, c := range []struct {
		name   string
		shares is
		n      int
		among  int
		want   string
	}{
		{"nobody has work", is{}, 3, 9, ""},
		{"nobody is here", is{"a": {Weight: 10, Away: true}}, 3, 9, ""},
		{"nothing is wanted", is{"a": {Weight: 10}}, 0, 9, ""},
		{"one alone has all", is{"a": {Weight: 1, Passed: 1e9}}, 3, 9, "aaa"},
		{"equals take turns in their order", is{"b": {Weight: 10}, "a": {Weight: 10}, "c": {Weight: 10}}, 7, 9, "abcabca"},
		{"each gets one before anybody gets a second", is{"a": {Weight: 10}, "b": {Weight: 10, Passed: 0.1}, "c": {Weight: 10, Passed: 0.1}}, 4, 9, "aabc"},
		{"twice the weight gets twice as many", is{"a": {Weight: 20}, "b": {Weight: 10}}, 6, 9, "abaaba"},
		{"1, 2 and 4", is{"a": {Weight: 1}, "b": {Weight: 2}, "c": {Weight: 4}}, 14, 9, "abccbccabccbcc"},
		{"who is away gets none", is{"a": {Weight: 10, Away: true}, "b": {Weight: 10}}, 2, 9, "bb"},
		{"who has passed least is first", is{"a": {Weight: 1, Passed: 2}, "b": {Weight: 1, Passed: 1}}, 3, 9, "bab"},
		{"among two of three", is{"a": {Weight: 10, Passed: 1}, "b": {Weight: 10}, "c": {Weight: 20}}, 7, 2, "bccbccb"},
		{"the third of equals waits", is{"a": {Weight: 10}, "b": {Weight: 10}, "c": {Weight: 10}}, 5, 2, "ababa"},
		{"among none", is{"a": {Weight: 10}}, 3, 0, ""},
	} {
		if got := strings.Join(Deal(c.shares, c.n, c.among, strings.Compare), ""); got != c.want {
			t.Errorf("%s: dealt %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNobodyCollectsTurns(t *testing.T) {
	shares := map[string]protocol.Share{}
	JoinTurns(shares, "old", 10)
	deal := func(n int) (dealt string) {
		for range n { // one at a time, as a busy node claims
			k := Deal(shares, 1, 9, strings.Compare)[0]
			PassTurn(shares, k, 1)
			dealt += k[:1]
		}
		return dealt
	}
	deal(1000)
	JoinTurns(shares, "new", 10)
	if got := deal(6); got != "nonono" {
		t.Errorf("beside one that has had a thousand starts, a new one gets %q, want turns", got)
	}
	LeaveTurns(shares, "new")
	deal(100)
	if len(shares) != 1 {
		t.Errorf("the others have caught up with who left, and %v is known still", shares)
	}
	JoinTurns(shares, "new", 10)
	if got := deal(4); strings.Count(got, "n") != 2 {
		t.Errorf("one that came back gets %q, want turns", got)
	}
}

// A plan whose tasks come one after the other has no work between two of them.
func TestNobodyGetsMoreByComingAndGoing(t *testing.T) {
	shares := map[string]protocol.Share{}
	for i := range 4 {
		JoinTurns(shares, fmt.Sprint("backlog ", i), 10)
	}
	chain := 0
	for range 500 {
		JoinTurns(shares, "chain", 10)
		k := Deal(shares, 1, 9, strings.Compare)[0]
		PassTurn(shares, k, 1)
		if k == "chain" {
			chain++
			LeaveTurns(shares, "chain")
		}
	}
	if chain != 100 {
		t.Errorf("the chain got %d of 500 starts beside four others, want 100", chain)
	}
}

func TestWeightsHoldFromTheNextStart(t *testing.T) {
	shares := map[string]protocol.Share{}
	JoinTurns(shares, "a", 10)
	JoinTurns(shares, "b", 10)
	count := func(n int) (a int) {
		for range n {
			k := Deal(shares, 1, 9, strings.Compare)[0]
			PassTurn(shares, k, 1)
			if k == "a" {
				a++
			}
		}
		return a
	}
	if got := count(100); got != 50 {
		t.Errorf("a got %d of 100, want 50", got)
	}
	JoinTurns(shares, "a", 90)
	if got := count(100); got < 89 || got > 91 {
		t.Errorf("with nine times the weight a got %d of 100, want 90", got)
	}
}
