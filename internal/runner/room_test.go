//go:build unix

package runner

import "testing"

func TestWhetherACommandHasRoom(t *testing.T) {
	for _, c := range []struct {
		name  string
		crowd crowd
		more  int // that all may come to take
		full  bool
	}{
		{"the first command needs threads, a guardian, a shell and a program",
			crowd{most: 31, taken: 13, processors: 2, threads: 13, commands: []int{0}}, 3 + 5 + 2, false},
		{"it may take the last place",
			crowd{most: 23, taken: 13, processors: 2, threads: 13, commands: []int{0}}, 10, false},
		{"it has no room if that is taken",
			crowd{most: 22, taken: 13, processors: 2, threads: 13, commands: []int{0}}, 10, true},
		{"places that are there already are not counted again, but for spare ones",
			crowd{most: 25, taken: 20, processors: 2, threads: 15, guardian: 5, commands: []int{0}}, 3 + 2, false},
		{"a second command brings a thread and a pipe, and so does the first one",
			crowd{most: 29, taken: 21, processors: 2, threads: 15, guardian: 5, commands: []int{1, 0}}, 3 + 2 + 3, false},
		{"commands that are being started at once all count",
			crowd{most: 29, taken: 20, processors: 2, threads: 15, guardian: 5, commands: []int{0, 0}}, 3 + 3 + 3, false},
		{"a third one has no room then",
			crowd{most: 29, taken: 20, processors: 2, threads: 15, guardian: 5, commands: []int{0, 0, 0}}, 3 + 9, true},
		{"a large command takes no room from the others twice",
			crowd{most: 46, taken: 40, processors: 2, threads: 16, guardian: 5, commands: []int{19, 0}}, 3 + 3, false},
		{"the threads of a large machine count",
			crowd{most: 104, taken: 24, processors: 64, threads: 19, guardian: 5, commands: []int{0}}, 58 + 2, false},
		{"what others of the user take counts",
			crowd{most: 1000, taken: 998, processors: 2, threads: 15, guardian: 5, commands: []int{3, 0}}, 3 + 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if more, full := c.crowd.more(), c.crowd.full(); more != c.more || full != c.full {
				t.Errorf("%d more may be needed, and full is %v; want %d and %v", more, full, c.more, c.full)
			}
		})
	}
}

func TestCommandsThatNeedNoOtherCount(t *testing.T) {
	for taken, want := range map[int]int{0: 24, 400: 8, 560: 1, 590: 0, 700: 0} {
		c := crowd{most: 600, taken: taken, processors: 2, threads: 15, guardian: 5, commands: []int{3, 0}}
		if got := c.ahead(); got != want {
			t.Errorf("of 600 places %d are taken: %d commands have room, want %d", taken, got, want)
		}
	}
}
