package hint

import (
	"fmt"
	"strings"
)

// Meant ends a message about a word that is not known with the known word that was perhaps meant. It is empty if no word is near.
func Meant(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Nearest returns the known word that somebody who wrote word most likely meant; empty if none is near: one change in three letters.
func Nearest(word string, known []string) string {
	if word == "" {
		return ""
	}
	best, most := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(fold(word), fold(k), most); d < most && k != word {
			best, most = k, d
		}
	}
	return best
}

// fold makes words equal that differ only in what people mix up.
func fold(word string) string { return strings.ReplaceAll(strings.ToLower(word), "-", "_") }

// distance returns how many insertions, deletions, changes and swaps of neighbouring letters turn a
// into b, or most if that is less. It is the "optimal string alignment" of Damerau, "A technique
// for computer detection and correction of spelling errors" (1964).
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	rows := make([]int, 3*(len(b)+1))
	older, old, row := rows[:len(b)+1], rows[len(b)+1:2*(len(b)+1)], rows[2*(len(b)+1):]
	for j := range old {
		old[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(old[j]+change, old[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		if least >= most {
			return most
		}
		older, old, row = old, row, older
	}
	return min(old[len(b)], most)
}
