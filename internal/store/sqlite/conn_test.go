package sqlite

import (
	"slices"
	"testing"
)

func TestNumbersThatFollowEachOtherAreSpans(t *testing.T) {
	for _, c := range []struct {
		name string
		ns   []int64
		want []span // nil: a list is better
	}{
		{"none", []int64{}, []span{}},
		{"one", []int64{7}, []span{{7, 7}}},
		{"in any order", []int64{9, 7, 8}, []span{{7, 9}}},
		{"twice the same", []int64{7, 8, 7}, []span{{7, 8}}},
		{"two spans of four each", []int64{1, 2, 3, 4, 9, 10, 11, 12}, []span{{1, 4}, {9, 12}}},
		{"far apart", []int64{1, 3, 5, 7}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := spans(c.ns)
			if ok != (c.want != nil) || !slices.Equal(got, c.want) {
				t.Errorf("spans: %v, %v; want %v", got, ok, c.want)
			}
		})
	}
}

// Whatever the numbers are, each row is handed over, and changed, once, and no other.
func TestEachNumberIsTakenOnce(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	newPlan(t, s, "nightly", manyTasks(40)...)
	for _, ns := range [][]int64{{3}, {3, 4, 5, 6, 7, 8, 9, 10}, {10, 2, 9, 3, 8, 4, 7, 5, 6, 20, 21, 22, 23, 24, 25, 26}, {1, 3, 5, 7, 9, 39}} {
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
