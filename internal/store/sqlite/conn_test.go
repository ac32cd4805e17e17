package sqlite

import (
	"slices"
	"testing"
)

func TestNumbersThatFollowEachOtherAreSpans(t *testing.T) {
	for _, c := range []struct {
		name  string
		ns    []int64
		spans [][]any
		some  int // how many numbers are looked up, in statements of someNumbers each
	}{
		{name: "none"},
		{name: "one", ns: []int64{7}, spans: [][]any{{int64(7), int64(7)}}},
		{name: "in any order", ns: []int64{9, 7, 8}, spans: [][]any{{int64(7), int64(9)}}},
		{name: "twice the same", ns: []int64{7, 8, 7}, spans: [][]any{{int64(7), int64(8)}}},
		{name: "two spans of four each", ns: []int64{1, 2, 3, 4, 9, 10, 11, 12}, spans: [][]any{{int64(1), int64(4)}, {int64(9), int64(12)}}},
		{name: "far apart", ns: []int64{1, 3, 5, 7}, some: 4},
		{name: "a span among others", ns: []int64{1, 3, 10, 11, 12, 13, 20}, spans: [][]any{{int64(10), int64(13)}}, some: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var spans [][]any
			some := 0
			inParts(c.ns, func(in string, part ...any) {
				if in == inSpan {
					spans = append(spans, part)
				} else {
					some += len(slices.Compact(slices.Sorted(slices.Values(part[0].([]int64)))))
				}
			})
			if !slices.EqualFunc(spans, c.spans, slices.Equal[[]any]) || some != c.some {
				t.Errorf("spans %v and %d others; want %v and %d", spans, some, c.spans, c.some)
			}
		})
	}
}

// Whatever the numbers are, each row is handed over, and changed, once, and no other.
func TestEachNumberIsTakenOnce(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	newPlan(t, s, "nightly", manyTasks(40)...)
	for _, ns := range [][]int64{{3}, {3, 4, 5, 6, 7, 8, 9, 10}, {10, 2, 9, 3, 8, 4, 7, 5, 6, 20, 21, 22, 23, 24, 25, 26}, {1, 3, 5, 7, 9, 39},
		{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 34, 35, 36, 37, 39, 40}} {
		err := s.write(t.Context(), func(tx *tx) error {
			want := slices.Clone(ns)
			tx.exec("UPDATE tasks SET attempt = 0")
			tx.execEach("UPDATE tasks SET attempt = attempt + ? WHERE n", ns, 5)
			slices.Sort(want)
			var read, changed []int64
			tx.queryEach("SELECT n FROM tasks WHERE n", ns, func(r *rows) { read = append(read, r.int(0)) })
			for r := tx.query("SELECT n FROM tasks WHERE attempt = 5 ORDER BY n"); r.next(); {
				changed = append(changed, r.int(0))
			}
			if slices.Sort(read); !slices.Equal(read, want) || !slices.Equal(changed, want) {
				t.Errorf("of %v read %v and changed %v", want, read, changed)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
