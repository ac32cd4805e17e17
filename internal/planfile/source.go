package planfile

import (
	"bytes"
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A source is the text of a file, and tells where in it something stands. Lines are counted twice: as YAML counts them, whose nodes
// name their place so and for which some rare characters end a line too, and as an editor does, for people.
type source struct {
	name  string
	text  []byte
	yaml  []lineStart
	lines []lineStart // as an editor counts
	marks []int       // byte of each character whose number is a multiple of markEvery: a file may be one long line
}

// A lineStart is where a line begins.
type lineStart struct{ at, char int }

const markEvery = 256

// index finds the lines, when the first error asks for them.
func (s *source) index() {
	if s.lines != nil {
		return
	}
	s.yaml, s.lines = []lineStart{{}}, []lineStart{{}}
	char := 0
	for i, r := range string(s.text) {
		if char%markEvery == 0 {
			s.marks = append(s.marks, i)
		}
		char++
		next := lineStart{i + 1, char}
		switch r {
		case '\r':
			if i+1 < len(s.text) && s.text[i+1] == '\n' {
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

// offset returns the byte at which YAML's line and column, both from 1, are.
func (s *source) offset(line, column int) int {
	s.index()
	if line < 1 || line > len(s.yaml) {
		return len(s.text)
	}
	char := s.yaml[line-1].char + column - 1
	if char/markEvery >= len(s.marks) {
		return len(s.text)
	}
	at := s.marks[char/markEvery]
	for char %= markEvery; char > 0 && at < len(s.text); char-- {
		at += s.width(at)
	}
	return at
}

// width returns how many bytes the character at a byte has.
func (s *source) width(at int) int {
	_, n := utf8.DecodeRune(s.text[at:])
	return n
}

// place returns the line and the column of a byte as an editor counts them, both from 1, columns in characters.
func (s *source) place(at int) (line, column int) {
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
	char := (mark-1)*markEvery + utf8.RuneCount(s.text[s.marks[mark-1]:at])
	return line, 1 + char - s.lines[line-1].char
}

// Widest part of a line that an error shows; a JSON file may have one line in all.
const excerptWidth = 120

// excerpt returns the line that a byte is in, or what is around the byte of a long one, and how many columns of it are before the byte.
func (s *source) excerpt(at int) (text string, before int) {
	line, _ := s.place(at)
	start, end := s.lines[line-1].at, len(s.text)
	if line < len(s.lines) {
		end = s.lines[line].at
	}
	for end > start && (s.text[end-1] == '\n' || s.text[end-1] == '\r') {
		end--
	}
	at = min(at, end)
	from, to := at, at
	for ; from > start && before < excerptWidth/2; before++ {
		_, n := utf8.DecodeLastRune(s.text[start:from])
		from -= n
	}
	for n := before; to < end && n < excerptWidth; n++ {
		to += s.width(to)
	}
	for n := utf8.RuneCount(s.text[from:to]); from > start && n < excerptWidth; n++ {
		_, size := utf8.DecodeLastRune(s.text[start:from])
		from -= size
		before++
	}
	shown := make([]rune, 0, excerptWidth+2)
	if from > start {
		shown, before = append(shown, '…'), before+1
	}
	for _, r := range string(s.text[from:to]) {
		shown = append(shown, printable(r))
	}
	if to < end {
		shown = append(shown, '…')
	}
	return string(shown), before
}

// printable returns what is shown of a character: one for one, so that columns stay.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case !unicode.IsPrint(r):
		return utf8.RuneError
	}
	return r
}

var byteOrderMark = []byte("\uFEFF")

// unreadable says why the bytes are no text, and where; an empty message means that they are.
func unreadable(text []byte) (at int, message string) {
	if bytes.HasPrefix(text, []byte{0xFF, 0xFE}) || bytes.HasPrefix(text, []byte{0xFE, 0xFF}) {
		return 0, "the file is UTF-16; save it as UTF-8"
	}
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7F {
				return i, "a control character: this is not a plan file, or needs it as an escape in double quotes"
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return i, "the file is not UTF-8 text; save it as UTF-8"
		case r >= 0x80 && r < 0xA0 && r != 0x85 || r == 0xFFFE || r == 0xFFFF:
			return i, "a control character: this is not a plan file, or needs it as an escape in double quotes"
		}
		i += n
	}
	return 0, ""
}
