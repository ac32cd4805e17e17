package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// bareBeginning matches the beginning of a sentence that does not name its subject.
var bareBeginning = regexp.MustCompile(`(?:^|[.!?]["')\]]* )((?:What|Who|Whoever|Of|Those|One (?:that|who|which))\b[^.]*)`)

// Readers have to read a sentence twice if it begins with What, Who, Whoever, Of, One that or Those:
// its subject comes late, or not at all.
func TestCommentsNameTheirSubjects(t *testing.T) {
	const top = "../.."
	read := 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		read++
		return bareSentences(path, func(at token.Position, sentence string) {
			t.Errorf("%s:%d: name the subject of %q", filepath.ToSlash(name), at.Line, sentence)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 500 {
		t.Errorf("the test read %d files, and should have read the whole tree", read)
	}
}

// bareSentences calls found for each sentence of a file's comments that begins bare. The position is
// that of the paragraph.
func bareSentences(path string, found func(at token.Position, sentence string)) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		var paragraph []string
		var at token.Pos
		end := func() {
			for _, m := range bareBeginning.FindAllStringSubmatch(strings.Join(paragraph, " "), -1) {
				if !strings.HasPrefix(m[1], "Of returns") { // the doc comment of a method of that name
					found(files.Position(at), m[1])
				}
			}
			paragraph = nil
		}
		for _, c := range group.List {
			for _, line := range commentLines(c) {
				code := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ")
				line = strings.TrimSpace(line)
				item := strings.TrimLeft(line, "-*0123456789. ")
				switch {
				case line == "" || code && paragraph == nil:
					end()
					continue
				case item != line: // an item of a list
					end()
				}
				if paragraph == nil {
					at = c.Pos()
				}
				paragraph = append(paragraph, item)
			}
		}
		end()
	}
	return nil
}

// commentLines returns the lines of a comment without its marks. A directive has none.
func commentLines(c *ast.Comment) []string {
	text, line := strings.CutPrefix(c.Text, "//")
	if !line {
		return strings.Split(strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/"), "\n")
	}
	if text != "" && text[0] != ' ' && text[0] != '\t' {
		return nil
	}
	return []string{strings.TrimPrefix(text, " ")}
}

func TestBareSentencesAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"A store decides nothing. It starts no work.":             0,
		"What is left goes to the next turn.":                     1,
		"A turn ends. Of the rest nothing is known.":              1,
		"It says \"done.\" Whoever reads it goes on.":             1,
		"(It is there.) Those of one set are equal.":              1,
		"One that is gone stays so. One node has the role.":       1,
		"Whatever dies, the plan ends. Often it does so at once.": 0,
	} {
		if got := len(bareBeginning.FindAllString(text, -1)); got != want {
			t.Errorf("%q has %d bare sentences, want %d", text, got, want)
		}
	}
}
