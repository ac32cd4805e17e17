package textfile_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seed-1177d267/sluice/internal/textfile"
)

func TestAByteOrderMarkIsNoPartOfAText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "\uFEFFa\n": "a\n", "\uFEFF": "", "a\uFEFF": "a\uFEFF", "\uFEFF\uFEFF": "\uFEFF", "\xEF\xBB": "\xEF\xBB",
	} {
		if got := string(textfile.WithoutMark([]byte(text))); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		got, err := io.ReadAll(textfile.Reader(iotest.OneByteReader(strings.NewReader(text))))
		if err != nil || string(got) != want {
			t.Errorf("%q is read as %q, %v; want %q", text, got, err, want)
		}
	}
}
