package view

import (
	"strings"
	"testing"
)

func TestTableKeepsColumnsUnderWideCharacters(t *testing.T) {
	table := Table{Head: []string{"NAME", "STATE"}, Paint: func(column int, word, padded string) string {
		if column == 1 {
			return "<" + padded + ">"
		}
		return padded
	}}
	table.Add("漢字漢", "x")
	table.Add("ab", "y")
	var b strings.Builder
	if err := table.Print(&b); err != nil {
		t.Fatal(err)
	}
	if want := "NAME    STATE\n漢字漢  <x>\nab      <y>\n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
