package runner

import (
	"slices"
	"strings"
	"testing"
)

// masked runs the pieces of a text through a masker.
func masked(s *secrets, pieces ...string) string {
	m := masker{secrets: s}
	var out strings.Builder
	for _, p := range pieces {
		out.Write(m.next([]byte(p)))
	}
	out.Write(m.rest())
	return out.String()
}

const key = "-----BEGIN KEY-----\nMIIEvQ\n}\nAbCdEf\n-----END KEY-----\n"

func TestSecretsAreMaskedHoweverTheTextIsCut(t *testing.T) {
	for _, c := range []struct {
		name    string
		secrets []string
		text    string
		want    string
	}{
		{"no secrets", nil, "abc", "abc"},
		{"an empty secret hides nothing", []string{"", " \n"}, "a b\n", "a b\n"},
		{"one secret, several times", []string{"hunter2"}, "pw=hunter2 hunter2\nhunter2", "pw=*** ***\n***"},
		{"almost the secret", []string{"hunter2"}, "hunter3 hunter hunte\n", "hunter3 hunter hunte\n"},
		{"one secret right after the other", []string{"hunter2"}, "hunter2hunter2", "******"},
		{"a secret that overlaps itself", []string{"abab"}, "xababababx", "x***x"},
		{"a run of a secret of one byte repeated", []string{"aa"}, "baaaaaaab", "b***b"},
		{"a secret within another", []string{"pass", "mypassword"}, "mypassword pass mypass\n", "*** *** my***\n"},
		{"a secret that begins another, the shorter only", []string{"pass", "password"}, "passwor\n", "***wor\n"},
		{"secrets that overlap", []string{"abcd", "cdef"}, "xabcdefx", "x***x"},
		{"secrets that overlap in a chain", []string{"abcd", "cdef", "efgh"}, "xabcdefghx", "x***x"},
		{"a newline at the end of the secret does not count", []string{"hunter2\n"}, "hunter2!", "***!"},
		{"a secret of several lines as it is", []string{key}, "key:\n" + key + "done\n", "key:\n***\ndone\n"},
		{"a secret of several lines, indented", []string{key}, " -----BEGIN KEY-----\n MIIEvQ\n }\n", " ***\n ***\n }\n"},
		{"a secret of several lines, with other newlines", []string{key}, "MIIEvQ\r\nAbCdEf\r\n", "***\r\n***\r\n"},
		{"the beginning of a secret at the end of the stream", []string{"hunter2"}, "pw=hunte", "pw=***"},
		{"too little of a secret at the end of the stream", []string{"hunter2"}, "pw=hun", "pw=hun"},
		{"a beginning at the end that a mask stands for already", []string{"abcdefabcde"}, "abcdefabcde", "***"},
		{"a beginning at the end that overlaps a secret", []string{"123abcd", "abcdefgh"}, "123abcdef", "***"},
		{"as Python writes it into JSON", []string{"pässwörd"}, `{"a": "p\u00e4ssw\u00f6rd", "b": "pässwörd"}`, `{"a": "***", "b": "***"}`},
		{"as Java writes it into JSON", []string{"pässwörd"}, `{"a": "p\u00E4ssw\u00F6rd"}`, `{"a": "***"}`},
		{"as PHP writes it into JSON", []string{"abc/déf"}, `["abc\/d\u00e9f", "abc/déf"]`, `["***", "***"]`},
		{"as Go writes it into JSON", []string{"a<b>&c"}, `["a\u003cb\u003e\u0026c"]`, `["***"]`},
		{"quotes and backslashes in JSON", []string{`a"b\c`}, `["a\"b\\c"]`, `["***"]`},
		{"a secret of several lines in JSON", []string{key}, `["-----BEGIN KEY-----\nMIIEvQ\n}\nAbCdEf\n-----END KEY-----\n"]`, `["***\n"]`},
		{"bytes that are not UTF-8", []string{"\xff\xfe"}, "a\xff\xfeb\xff", "a***b\xff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSecrets(c.secrets)
			for n := 1; n <= len(c.text); n++ {
				var pieces []string
				for piece := range slices.Chunk([]byte(c.text), n) {
					pieces = append(pieces, string(piece))
				}
				if got := masked(s, pieces...); got != c.want {
					t.Errorf("in pieces of %d: %q, want %q", n, got, c.want)
				}
			}
		})
	}
}

func TestALineIsNotHeldBack(t *testing.T) {
	m := masker{secrets: newSecrets([]string{"password", "line one\nline two"})}
	for _, line := range []string{"a\n", "pass\n", "line\n"} {
		if got := string(m.next([]byte(line))); got != line {
			t.Errorf("after %q came out %q: a line that has ended should come out at once", line, got)
		}
	}
}

// The property: no secret of one line is ever in what is shown, and cutting the text in two changes nothing.
func FuzzMasker(f *testing.F) {
	f.Add("hunter2", "ter2x", "a hunter2x b", 4)
	f.Add("abab", "ba", "abababab", 3)
	f.Add("a", "b\nc", "ab\nc", 1)
	f.Fuzz(func(t *testing.T, one, two, text string, at int) {
		if strings.ContainsAny(one+two, "*") || at < 0 || at > len(text) {
			return // a secret of asterisks is hidden by what it looks like
		}
		s := newSecrets([]string{one, two})
		got, want := masked(s, text[:at], text[at:]), masked(s, text)
		if got != want {
			t.Errorf("cut at %d: %q, whole: %q", at, got, want)
		}
		for _, secret := range []string{one, two} {
			if v := strings.TrimSpace(secret); v != "" && strings.Contains(got, v) && strings.Contains(text, v) {
				t.Errorf("%q is in %q", v, got)
			}
		}
	})
}
