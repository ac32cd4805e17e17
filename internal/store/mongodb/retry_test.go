package mongodb

import "testing"

func TestARetryIsSplitByTasksAndBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		tasks int
		bytes int // of what replaces each
		want  []int
	}{
		{"few small tasks are one document", 3, 10, []int{3}},
		{"many are several", 2*retryAtOnce + 1, 0, []int{retryAtOnce, retryAtOnce, 1}},
		{"large ones are more", 5, retryBytes / 2, []int{2, 2, 1}},
		{"one that is too large stands alone", 2, 2 * retryBytes, []int{1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			chosen := make([]retriedDoc, c.tasks)
			for i := range chosen {
				chosen[i].Replace = make(text, c.bytes)
			}
			var got []int
			for _, part := range retryParts(chosen) {
				got = append(got, len(part))
			}
			if len(got) != len(c.want) {
				t.Fatalf("got parts of %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("got parts of %v, want %v", got, c.want)
				}
			}
		})
	}
}
