package rules

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// sharer is a queue with a letter as its name.
func sharer(name byte, weight, room, running int, groups ...*plan.Group) Sharer {
	return Sharer{Queue: plan.QueueID{ID: plan.ID{name}}, Weight: weight, Room: room, Running: running, Groups: groups}
}

func dealt(queues []Sharer, d *Sharing, n int) (text string) {
	for range n {
		i := d.Next()
		if i < 0 {
			return text + "."
		}
		text += string(queues[i].Queue.ID[0])
	}
	return text
}

func TestSharingGivesEachQueueItsTurns(t *testing.T) {
	group := func(name string, weight int) *plan.Group {
		return &plan.Group{Name: name, GroupSettings: plan.GroupSettings{Weight: weight}}
	}
	one, two, four := group("one", 1), group("two", 2), group("four", 4)
	inner := group("inner", 0)
	const lots = 1000
	for _, c := range []struct {
		name    string
		queues  []Sharer
		threads int
		n       int
		want    string
	}{
		{"nobody", nil, 9, 3, "."},
		{"nobody with work", []Sharer{sharer('a', 1, 0, 0)}, 9, 3, "."},
		{"one alone has all threads", []Sharer{sharer('a', 1, lots, 0)}, 4, 4, "aaaa"},
		{"equals", []Sharer{sharer('b', 0, lots, 0), sharer('a', 1, lots, 0)}, lots, 5, "ababa"},
		{"1, 2 and 4", []Sharer{sharer('a', 1, lots, 0), sharer('b', 2, lots, 0), sharer('c', 4, lots, 0)}, lots, 14, "abccbccabccbcc"},
		{"the room of one is used up", []Sharer{sharer('a', 1, 1, 0), sharer('b', 1, 3, 0)}, lots, 6, "abbb."},
		{"a group is as much as a queue", []Sharer{sharer('a', 1, lots, 0, one), sharer('b', 1, lots, 0, one), sharer('c', 1, lots, 0)}, lots, 8, "acbcacbc"},
		{"groups by their weights", []Sharer{sharer('a', 1, lots, 0, two), sharer('b', 9, lots, 0, four)}, lots, 6, "babbab"},
		{"a group in a group", []Sharer{sharer('a', 1, lots, 0, inner, two), sharer('b', 1, lots, 0, two), sharer('c', 1, lots, 0, one)}, lots, 6, "cabcab"},
		{"who has its part of the threads running waits", []Sharer{sharer('a', 1, lots, 2), sharer('b', 1, lots, 0)}, 4, 2, "bb"},
		{"as long as others have work", []Sharer{sharer('a', 1, lots, 2), sharer('b', 1, 1, 0)}, 4, 2, "ba"},
		{"the part is rounded up", []Sharer{sharer('a', 1, lots, 1), sharer('b', 4, lots, 0), sharer('c', 4, lots, 0)}, 4, 3, "bcb"},
		{"a group has its part, whichever queue runs", []Sharer{sharer('a', 1, 0, 3, one), sharer('b', 1, lots, 0, one), sharer('c', 1, lots, 0)}, 6, 3, "ccc"},
	} {
		if got := dealt(c.queues, NewSharing(&protocol.Shares{}, c.queues, c.threads, nil), c.n); got != c.want {
			t.Errorf("%s: dealt %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAGroupIsDealtWhatItsRateLetsStart(t *testing.T) {
	top := &plan.Group{Name: "top", GroupSettings: plan.GroupSettings{Weight: 9}}
	three, one := &plan.Group{Name: "three", GroupSettings: plan.GroupSettings{Weight: 3}}, &plan.Group{Name: "one"}
	const lots = 1000
	two := []Sharer{sharer('a', 3, lots, 0, top), sharer('b', 1, lots, 0, top)}
	free := append(slices.Clone(two), sharer('c', 1, lots, 0))
	subgroups := []Sharer{sharer('a', 1, lots, 0, three, top), sharer('b', 1, lots, 0, one, top)}
	for _, c := range []struct {
		name   string
		queues []Sharer
		lets   map[string]int
		want   []string // of each claim of 16 free threads
	}{
		{"one start goes to the queues in turn", two, map[string]int{"top": 1}, []string{"a.", "b.", "a.", "a.", "a.", "b."}},
		{"more at once", two, map[string]int{"top": 6}, []string{"abaaab.", "aaabaa."}},
		{"nothing", two, map[string]int{"top": 0}, []string{".", "."}},
		{"other queues have the rest", free, map[string]int{"top": 2}, []string{"acbccccccccccccc", "aacccccccccccccc"}},
		{"a parent counts for its groups", subgroups, map[string]int{"top": 1}, []string{"b.", "a.", "a.", "a.", "b."}},
		{"a group of a parent has less", subgroups, map[string]int{"top": 4, "three": 1}, []string{"babb.", "abbb."}},
		{"a parent has less than its groups", subgroups, map[string]int{"top": 2, "three": 1, "one": 9}, []string{"ba."}},
		{"the rate of another group", two, map[string]int{"three": 1}, []string{"abaaabaaabaaabaa"}},
	} {
		var s protocol.Shares
		for i, want := range c.want {
			if got := dealt(c.queues, NewSharing(&s, c.queues, 16, c.lets), 16); got != want {
				t.Errorf("%s: claim %d is dealt %q, want %q", c.name, i, got, want)
			}
		}
	}

	var s protocol.Shares
	d := NewSharing(&s, two, 16, map[string]int{"top": 2})
	if got := dealt(two, d, 9); got != "ab." {
		t.Errorf("dealt %q", got)
	}
	d.Back(0, 1)
	if got := dealt(two, d, 9); got != "b." {
		t.Errorf("after a had nothing, %q was dealt", got)
	}
	d.Back(1, 2) // others had used up the rate
	if got := dealt(two, NewSharing(&s, two, 16, map[string]int{"top": 4}), 9); got != "abaa." {
		t.Errorf("the next claim deals %q: who did not start lost its turn", got)
	}
}

func TestUneven(t *testing.T) {
	for _, c := range []struct {
		a, b, slots, queues int
		want                bool
	}{
		{3, 0, 1, 1, false}, // it is alone
		{1, 0, 3, 2, true},
		{2, 2, 2, 2, false},
		{3, 2, 2, 2, true},
		{2, 2, 2, 3, true},
		{1, 1, 3, 9, false}, // more queues than threads
		{2, 1, 2, 9, true},
		{0, 0, 4, 2, false},
	} {
		turn := &protocol.Turn{Slots: c.slots, Running: protocol.Tally{}}
		for i, n := range []int{c.a, c.b} {
			if n > 0 {
				turn.Running[plan.QueueID{ID: plan.ID{byte(i)}}] = n
			}
		}
		if got := Uneven(turn, c.queues); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestWhatAQueueGivesBackIsDealtToOthers(t *testing.T) {
	queues := []Sharer{sharer('a', 1, 100, 0), sharer('b', 1, 100, 0), sharer('c', 1, 100, 0)}
	var s protocol.Shares
	d := NewSharing(&s, queues, 100, nil)
	if got := dealt(queues, d, 6); got != "abcabc" {
		t.Errorf("dealt %q", got)
	}
	d.Back(0, 2)
	if got := dealt(queues, d, 4); got != "bcbc" {
		t.Errorf("after a had nothing, %q was dealt", got)
	}
	d.Back(1, 1)
	d.Back(2, 2)
	if got := dealt(queues, d, 4); got != "." {
		t.Errorf("after all had less, %q was dealt", got)
	}
	// The next claim goes on where this one ended: c has started 2, b 3 and a none.
	if got := dealt(queues, NewSharing(&s, queues, 100, nil), 7); got != "aaacabc" {
		t.Errorf("the next claim deals %q", got)
	}
}

func TestAClaimIsDealtToSomeQueues(t *testing.T) {
	var queues []Sharer
	for i := range 40 {
		queues = append(queues, sharer(byte('A'+i), 1, 5, 0))
	}
	var s protocol.Shares
	seen := map[int]int{}
	deal := func(n int) (of int) {
		claim, d := map[int]bool{}, NewSharing(&s, queues, 1000, nil)
		for range n {
			i := d.Next()
			claim[i] = true
			seen[i]++
		}
		return len(claim)
	}
	if got := deal(32); got != MostDealt {
		t.Errorf("32 starts are of %d queues, want %d", got, MostDealt)
	}
	deal(32)
	deal(16)
	for i, n := range seen {
		if n != 2 {
			t.Errorf("after 80 starts queue %d had %d, want 2", i, n)
		}
	}
	if got := deal(200); got != 40 {
		t.Errorf("with room for 5 in each, 200 starts are of %d queues, want all", got)
	}
}

// claimOf returns a claim of tasks of the queues with these letters, in this order.
func claimOf(queues string) (claimed []protocol.ClaimedTask) {
	for i := range len(queues) {
		claimed = append(claimed, protocol.ClaimedTask{
			Claim: protocol.Claim{Task: plan.TaskID{ID: plan.ID{queues[i], byte(i)}}}, Queue: plan.QueueID{ID: plan.ID{queues[i]}},
		})
	}
	return claimed
}

func TestStartOrder(t *testing.T) {
	for _, c := range []struct{ name, claimed, want string }{
		{"nothing", "", ""},
		{"one queue", "aaa", "aaa"},
		{"equals", "aaabbb", "ababab"},
		{"each in proportion", "abbcccc", "cbcacbc"},
		{"a single task goes in the middle", "aaaaaab", "aaabaaa"},
	} {
		claimed, got, last := claimOf(c.claimed), "", map[byte]byte{}
		StartOrder(claimed)
		for _, one := range claimed {
			q, i := one.Task.ID[0], one.Task.ID[1]
			if got += string(q); i < last[q] {
				t.Errorf("%s: the tasks of queue %c are not in their order", c.name, q)
			}
			last[q] = i
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestSharesHoldOverAnyThousandStarts has nodes claim and start tasks that take no time. A node makes its next
// turn when all have ended but the last that it started. The first queue has work but for some time.
func TestSharesHoldOverAnyThousandStarts(t *testing.T) {
	light := &plan.Group{Name: "light", GroupSettings: plan.GroupSettings{Weight: 3}}
	heavy := &plan.Group{Name: "heavy", GroupSettings: plan.GroupSettings{Weight: 4}}
	const lots, window, all = 1e9, 1000, 6000
	for _, c := range []struct {
		name     string
		queues   []Sharer
		parts    []int // of 7
		from, to int   // the first queue has no work after so many starts, and until so many
	}{
		{"queues", []Sharer{sharer('a', 1, lots, 0), sharer('b', 2, lots, 0), sharer('c', 4, lots, 0)}, []int{1, 2, 4}, 0, 0},
		{"groups", []Sharer{sharer('a', 1, lots, 0, light), sharer('b', 2, lots, 0, light), sharer('c', 9, lots, 0, heavy)}, []int{1, 2, 4}, 0, 0},
		{"a queue that comes anew", []Sharer{sharer('a', 4, lots, 0), sharer('b', 2, lots, 0), sharer('c', 1, lots, 0)}, []int{4, 2, 1}, 0, 2000},
		{"a queue that comes back", []Sharer{sharer('a', 2, lots, 0), sharer('b', 1, lots, 0), sharer('c', 4, lots, 0)}, []int{2, 1, 4}, 2000, 3000},
	} {
		for _, at := range []struct{ nodes, threads, late int }{{1, 8, 2}, {4, 8, 0}, {4, 8, 1}, {4, 8, 2}, {4, 8, 3}, {1, 40, 9}} {
			r := rand.New(rand.NewPCG(1, 2))
			shares, running := make([]protocol.Shares, at.nodes), make([][]protocol.ClaimedTask, at.nodes)
			sums := [][]int{make([]int, len(c.queues))} // of the starts of each queue, by the starts of all
			for len(sums) <= all {
				node := r.IntN(at.nodes)
				for range 1 + r.IntN(9) {
					queues := slices.Clone(c.queues)
					if len(sums) > c.from && len(sums) <= c.to {
						queues[0].Room = 0
					}
					for i := range queues {
						for _, one := range running[node] {
							if one.Queue == queues[i].Queue {
								queues[i].Running++
							}
						}
					}
					claim := []byte(dealt(queues, NewSharing(&shares[node], queues, at.threads, nil), at.threads-len(running[node])))
					slices.Sort(claim) // a store gives the older ones first
					claimed := claimOf(string(claim))
					StartOrder(claimed)
					for _, one := range claimed {
						sum := slices.Clone(sums[len(sums)-1])
						sum[one.Task.ID[0]-'a']++
						sums = append(sums, sum)
					}
					running[node] = claimed[len(claimed)-at.late:]
				}
			}
			for from := range sums[:len(sums)-window] {
				for i, part := range c.parts {
					got, want := float64(sums[from+window][i]-sums[from][i]), window*float64(part)/7
					if (from >= c.to || from+window < c.from) && math.Abs(got-want) > want/20 {
						t.Fatalf("%s on %+v: of the thousand from %d on %v are of queue %d, want %.0f", c.name, at, from, got, i, want)
					}
				}
			}
		}
	}
}
