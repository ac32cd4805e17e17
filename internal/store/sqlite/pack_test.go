package sqlite

import (
	"fmt"
	"testing"
)

func FuzzChangesAreReadAsTheyWereWritten(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte{0, 1, 2, 200, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, plans uint8) {
		if things, err := unpackChanges(b); err == nil && len(things) > len(b) {
			t.Errorf("%d bytes hold %d changes", len(b), len(things))
		}
		var tx tx
		for i, n := range b {
			if i < int(plans) {
				tx.shown = append(tx.shown, int64(n)+1)
			} else {
				tx.changed = append(tx.changed, int64(n)*1000+1)
			}
		}
		got, err := unpackChanges(tx.packChanges())
		if err != nil {
			t.Fatal(err)
		}
		var want []changedThing
		for _, n := range distinct(tx.shown) {
			want = append(want, changedThing{n, true})
		}
		for _, n := range distinct(tx.changed) {
			want = append(want, changedThing{n, false})
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func FuzzParentsAreReadAsTheyWereWritten(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 1, 2, 2, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		if parents, err := unpackParents(b); err == nil && len(parents) > len(b) {
			t.Errorf("%d bytes hold %d parents", len(b), len(parents))
		}
		var want []int64
		for _, n := range b {
			want = append(want, int64(n)*int64(n)*1_000_000)
		}
		if got, err := unpackParents(packParents(want)); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v (%v), want %v", got, err, want)
		}
	})
}
