// Package textfile reads texts that people wrote, and describes a mistake in one. It gives the place
// as an editor counts it, the line with a caret below it, and the nearest known word.
package textfile

import (
	"bytes"
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A Source is the text of a file, and finds the place of a byte. It counts lines in two ways. One
// is YAML's, for the places of its nodes; some rare characters end a line there, too. The other is
// an editor's, for people.
type Source struct {
	Name  string // as the caller named it
	Text  []byte
	yaml  []lineStart
	lines []lineStart // as an editor counts
	marks []int       // byte of each character whose number is a multiple of markEvery: a file may be one long line
}

// A lineStart is where a line begins.
type lineStart struct{ at, char int }

const markEvery = 256

// index finds the lines, when the first error asks for them.
func (s *Source) index() {
	if s.lines != nil {
		return
	}
	s.yaml, s.lines = []lineStart{{}}, []lineStart{{}}
	char := 0
	for i, r := range string(s.Text) {
		if char%markEvery == 0 {
			s.marks = append(s.marks, i)
		}
		char++
		next := lineStart{i + 1, char}
		switch r {
		case '\r':
			if i+1 < len(s.Text) && s.Text[i+1] == '\n' {
				continue
			}
			fallthrough
		case '\n':
			s.lines = append(s.lines, next)
			s.yaml = append(s.yaml, next)
		case '\u0085', '\u2028', '\u2029':
			next.at = i + utf8.RuneLen(r)
			s.yaml = append(s.yaml, next)
		}
	}
}

// Offset returns the byte at which YAML's line and column, both from 1, are.
func (s *Source) Offset(line, column int) int {
	s.index()
	if line < 1 || line > len(s.yaml) {
		return len(s.Text)
	}
	char := s.yaml[line-1].char + column - 1
	if char/markEvery >= len(s.marks) {
		return len(s.Text)
	}
	at := s.marks[char/markEvery]
	for char %= markEvery; char > 0 && at < len(s.Text); char-- {
		at += s.width(at)
	}
	return at
}

// LastLine returns the number of the last line that has something in it, as YAML counts.
func (s *Source) LastLine() int {
	s.index()
	for line := len(s.yaml); line > 1; line-- {
		if len(bytes.TrimSpace(s.Text[s.yaml[line-1].at:])) > 0 {
			return line
		}
	}
	return 1
}

// width returns how many bytes the character at a byte has.
func (s *Source) width(at int) int {
	_, n := utf8.DecodeRune(s.Text[at:])
	return n
}

// Place returns the line and the column of a byte as an editor counts them, both from 1, columns in characters.
func (s *Source) Place(at int) (line, column int) {
	s.index()
	line, ok := slices.BinarySearchFunc(s.lines, at, func(l lineStart, at int) int { return cmp.Compare(l.at, at) })
	if ok {
		line++
	}
	mark, ok := slices.BinarySearch(s.marks, at)
	if ok {
		mark++
	}
	if mark == 0 {
		return line, 1 // of nothing
	}
	char := (mark-1)*markEvery + utf8.RuneCount(s.Text[s.marks[mark-1]:at])
	return line, 1 + char - s.lines[line-1].char
}

// Widest part of a line that an error shows; a JSON file may have one line in all.
const excerptWidth = 120

// Excerpt returns the line of a byte, or a part of a long line around the byte. before is the
// number of its columns before the byte.
func (s *Source) Excerpt(at int) (text string, before int) {
	line, _ := s.Place(at)
	start, end := s.lines[line-1].at, len(s.Text)
	if line < len(s.lines) {
		end = s.lines[line].at
	}
	for end > start && (s.Text[end-1] == '\n' || s.Text[end-1] == '\r') {
		end--
	}
	at = min(at, end)
	from, to := at, at
	for ; from > start && before < excerptWidth/2; before++ {
		_, n := utf8.DecodeLastRune(s.Text[start:from])
		from -= n
	}
	for n := before; to < end && n < excerptWidth; n++ {
		to += s.width(to)
	}
	for n := utf8.RuneCount(s.Text[from:to]); from > start && n < excerptWidth; n++ {
		_, size := utf8.DecodeLastRune(s.Text[start:from])
		from -= size
		before++
	}
	shown := make([]rune, 0, excerptWidth+2)
	if from > start {
		shown, before = append(shown, '…'), before+1
	}
	for _, r := range string(s.Text[from:to]) {
		shown = append(shown, Printable(r))
	}
	if to < end {
		shown = append(shown, '…')
	}
	return string(shown), before
}

// Printable returns what is shown of a character: one for one, so that columns stay.
func Printable(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case !unicode.IsPrint(r):
		return utf8.RuneError
	}
	return r
}
