// Tally counts the words on its standard input and prints the most frequent first. It is what the plan beside it checks.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
)

func main() {
	counts, err := tally(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	for _, c := range counts {
		fmt.Println(c.n, c.word)
	}
}

type count struct {
	word string
	n    int
}

func tally(r io.Reader) ([]count, error) {
	index := map[string]int{}
	var counts []count
	words := bufio.NewScanner(r)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		i, known := index[words.Text()]
		if !known {
			i = len(counts)
			index[words.Text()] = i
			counts = append(counts, count{word: words.Text()})
		}
		counts[i].n++
	}
	slices.SortStableFunc(counts, func(a, b count) int { return cmp.Compare(b.n, a.n) })
	return counts, words.Err()
}
