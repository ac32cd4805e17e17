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
			crowd{most: 26, taken: 9, processors: 2, threads: 9, commands: []int{0}}, 2 + 5 + 2, false},
		{"it may take the last place",
			crowd{most: 18, taken: 9, processors: 2, threads: 9, commands: []int{0}}, 9, false},
		{"it has no room if that is taken",
			crowd{most: 17, taken: 9, processors: 2, threads: 9, commands: []int{0}}, 9, true},
		{"places that are there already are not counted again",
			crowd{most: 18, taken: 16, processors: 2, threads: 11, guardian: 5, commands: []int{0}}, 2, false},
		{"a second command brings a thread and a pipe, and so does the first one",
			crowd{most: 24, taken: 17, processors: 2, threads: 11, guardian: 5, commands: []int{1, 0}}, 1 + 2 + 3, false},
		{"commands that are being started at once all count",
			crowd{most: 24, taken: 16, processors: 2, threads: 11, guardian: 5, commands: []int{0, 0}}, 1 + 3 + 3, false},
		{"a third one has no room then",
			crowd{most: 24, taken: 16, processors: 2, threads: 11, guardian: 5, commands: []int{0, 0, 0}}, 2 + 9, true},
		{"a large command takes no room from the others twice",
			crowd{most: 40, taken: 36, processors: 2, threads: 12, guardian: 5, commands: []int{19, 0}}, 3, false},
		{"the threads of a large machine count",
			crowd{most: 100, taken: 20, processors: 64, threads: 15, guardian: 5, commands: []int{0}}, 58 + 2, false},
		{"what others of the user take counts",
			crowd{most: 1000, taken: 998, processors: 2, threads: 11, guardian: 5, commands: []int{3, 0}}, 4, true},
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
		c := crowd{most: 600, taken: taken, processors: 2, threads: 11, guardian: 5, commands: []int{3, 0}}
		if got := c.ahead(); got != want {
			t.Errorf("of 600 places %d are taken: %d commands have room, want %d", taken, got, want)
		}
	}
}
