// Package fold owns which tasks of a large plan are drawn as one node: in texts, and on pages.
package fold

import "strings"

// Smallest is how many tasks are worth a node together.
const Smallest = 3

// Classes parts the numbers below n by their key, in the order of their first members. A number is
// alone if its key is empty, or if fewer than enough have its key.
func Classes(n, enough int, key func(i int) string) (classes [][]int) {
	keys, count := make([]string, n), map[string]int{}
	for i := range keys {
		keys[i] = key(i)
		count[keys[i]]++
	}
	at := map[string]int{}
	for i, k := range keys {
		if c, ok := at[k]; ok {
			classes[c] = append(classes[c], i)
			continue
		}
		if k != "" && count[k] >= enough {
			at[k] = len(classes)
		}
		classes = append(classes, []int{i})
	}
	return classes
}

// Edges returns the edges between different nodes, each once, and how many of the edges each stands
// for. The node of i is of[i].
func Edges[N int | int32](edges [][2]int, of []N) (folded [][2]int, weights []int) {
	at := make(map[[2]int]int, len(edges))
	for _, e := range edges {
		e = [2]int{int(of[e[0]]), int(of[e[1]])}
		if e[0] == e[1] {
			continue
		}
		i, ok := at[e]
		if !ok {
			i = len(folded)
			at[e] = i
			folded, weights = append(folded, e), append(weights, 0)
		}
		weights[i]++
	}
	return folded, weights
}

// Pattern returns a name with each of its numbers as a star. Tasks of one level and one pattern are
// alike.
func Pattern(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch digit := isDigit(name[i]); {
		case !digit:
			b.WriteByte(name[i])
		case i == 0 || !isDigit(name[i-1]):
			b.WriteByte('*')
		}
	}
	return b.String()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
