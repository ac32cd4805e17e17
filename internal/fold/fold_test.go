package fold

import (
	"reflect"
	"testing"
)

func TestClassesAreInTheOrderOfTheirFirstMembers(t *testing.T) {
	keys := []string{"b", "", "a", "b", "a", "", "b"}
	if got, want := Classes(len(keys), 3, func(i int) string { return keys[i] }), [][]int{{0, 3, 6}, {1}, {2}, {4}, {5}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the classes are %v, want %v", got, want)
	}
}

func TestAnEdgeTellsHowManyItStandsFor(t *testing.T) {
	edges, weights := Edges([][2]int{{0, 1}, {1, 2}, {0, 3}, {1, 3}}, []int{0, 0, 1, 2})
	if !reflect.DeepEqual(edges, [][2]int{{0, 1}, {0, 2}}) || !reflect.DeepEqual(weights, []int{1, 2}) {
		t.Errorf("the edges are %v with the weights %v, want 0-1 once and 0-2 twice", edges, weights)
	}
}

func TestNumbersInNamesAreStars(t *testing.T) {
	for name, want := range map[string]string{
		"copy": "copy", "copy[17]": "copy[*]", "t12": "t*", "7of-10": "*of-*", "größe3": "größe*", "": "",
	} {
		if got := Pattern(name); got != want {
			t.Errorf("%q is like %q, want %q", name, got, want)
		}
	}
}
