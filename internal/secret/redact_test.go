package secret

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// masked runs the pieces of a text through a masker.
func masked(s *Values, pieces ...string) string {
	m := Masker{secrets: s}
	var out strings.Builder
	for _, p := range pieces {
		out.Write(m.Next([]byte(p)))
	}
	out.Write(m.Rest())
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
		{"as bash -x quotes it", []string{"it's-a-secret"}, "+ curl -u 'me:it'\\''s-a-secret'\n", "+ curl -u 'me:***'\n"},
		{"as dash and Python's shlex quote it", []string{"it's-a-secret"}, `'it'"'"'s-a-secret' it's x`, `'***' it's x`},
		{"as printf %q quotes it", []string{"it's $1, #2"}, `it\'s\ \$1\,\ #2 \#2`, `*** \#2`},
		{"as printf %q quotes what begins as a comment", []string{"#1 secret"}, `\#1\ secret`, `***`},
		{"as declare -p quotes it", []string{`a"b$c\d`}, `X="a\"b\$c\\d"`, `X="***"`},
		{"as bash quotes control characters", []string{"it's\ta\x01\x7f"}, `$'it\'s\ta\001\177'`, `$'***'`},
		{"as bash in the locale C quotes it", []string{"pässwörd"}, `$'p\303\244ssw\303\266rd'`, `$'***'`},
		{"as curl and jq write it into a URL", []string{"a/b+c=d ~é"}, "https://h/?t=a%2Fb%2Bc%3Dd%20~%C3%A9&x", "https://h/?t=***&x"},
		{"as .NET writes it into a URL", []string{"a/b+c=d é"}, "?t=a%2fb%2bc%3dd+%c3%a9&u=a%2fb%2bc%3dd%20%c3%a9", "?t=***&u=***"},
		{"as a form has it", []string{"a/b c~d*"}, "a%2Fb+c~d%2A a%2Fb+c%7Ed*", "*** ***"},
		{"as Python's quote, JavaScript and Go write it", []string{"a/b:c!d é"}, "a/b%3Ac%21d%20%C3%A9 a%2Fb%3Ac!d%20%C3%A9 a/b:c!d%20%C3%A9 a%2Fb:c%21d%20%C3%A9", "*** *** *** ***"},
		{"percent-encoded, in colours", []string{"tok/secret"}, "tok%\x1b[1m2Fsec\x1b[0mret.", "***\x1b[1m\x1b[0m."},
		{"the beginning of a spelling at the end of the stream", []string{"tok/secret"}, "t=tok%2", "t=***"},
		{"almost percent-encoded", []string{"tok/secret"}, "tok%2Gsecret tok%2fsecre\n", "tok%2Gsecret tok%2fsecre\n"},
		{"in colours, as grep has it", []string{"tok-secret-9876"}, "a tok-\x1b[01;31m\x1b[Ksecret\x1b[m\x1b[K-9876 b\n", "a ***\x1b[01;31m\x1b[m b\n"},
		{"a colour that ends within", []string{"tok-secret-9876"}, "\x1b[1mtok\x1b[0m-secret-9876 b\n", "\x1b[1m***\x1b[0m b\n"},
		{"a colour that is the secret", []string{"1;31m", "hunter2"}, "hun\x1b[1;31mter2 \x1b[1;31mb", "*** \x1b[***b"},
		{"a link, and control characters", []string{"hunter2"}, "h\x1b]8;;http://a/\x1b\\u\x07n\x1b]0;x\x07t\x00e\x1b(Br\u009b1m\x7f2.", "***."},
		{"a carriage return", []string{"hunter2"}, "hun\rter2.", "***."},
		{"a window's title that is the secret", []string{"hunter2"}, "h\x1b]0;hunter2\x07unter3\n", "h\x1b]0;***\x07unter3\n"},
		{"sequences that are aborted", []string{"hunter2"}, "hun\x1b[1\x18t\x1b\x1b[1me\x1b]0;x\x18r2", "***\x1b[1m"},
		{"the beginning of a secret in colours at the end of the stream", []string{"hunter2"}, "hun\x1b[1mte\x1b[", "***\x1b[1m"},
		{"too little of a secret before a colour", []string{"hunter2"}, "hun\x1b[1m\x1b[", "hun\x1b[1m\x1b["},
		{"almost the secret, in colours", []string{"hunter2"}, "hun\x1b[1mter3\x1b]0;hun\n\tter2\n", "hun\x1b[1mter3\x1b]0;hun\n\tter2\n"},
		{"a line's end between its parts", []string{"hunter2"}, "hun\x1b]0;x\nter2\x07", "hun\x1b]0;x\nter2\x07"},
		{"a sign that begins as a control character does", []string{"hunter2"}, "hun©ter2 £", "hun©ter2 £"},
		{"bytes that are not UTF-8", []string{"\xff\xfe"}, "a\xff\xfeb\xff", "a***b\xff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewValues(c.secrets)
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
	m := Masker{secrets: NewValues([]string{"password", "line one\nline two"})}
	for _, line := range []string{"a\n", "pass\n", "line\n"} {
		if got := string(m.Next([]byte(line))); got != line {
			t.Errorf("after %q came out %q: a line that has ended should come out at once", line, got)
		}
	}
}

// A Masker searches for each spelling, so their number is bounded, and most secrets have none.
func TestTheNumberOfSpellingsIsBounded(t *testing.T) {
	if got := Spellings("tok-Secret_9876.x"); len(got) > 0 {
		t.Errorf("a token has the spellings %q", got)
	}
	text := "#/<>&\"\\'`$!*()[]{}|;,?^~+=:@ \t\n\r\b\f\v\a\x1b\x01\x7f\u2028é🔑"
	got := Spellings(text)
	if len(got) > mostSpellings {
		t.Errorf("a text of all kinds of characters has %d spellings, more than %d", len(got), mostSpellings)
	}
	values := NewValues([]string{text})
	for _, form := range got {
		if shown := masked(values, "<"+form+">"); shown != "<***>" {
			t.Errorf("%q is shown as %q", form, shown)
		}
		if !Holds([]byte(form), []string{text}) {
			t.Errorf("%q is taken for an output without the secret", form)
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
			return // a secret of asterisks looks like its mask
		}
		s := NewValues([]string{one, two})
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

// A text without secrets is not changed, and a secret is hidden, also where more lies within than is held back: an image.
func TestWhatIsHeldBackIsBounded(t *testing.T) {
	image := "\x1b]1337;File=:" + strings.Repeat("c2VjcmV0", mostUnseen/4) + "\x07"
	for text, want := range map[string]string{
		"hunt" + image + "er2.\n":                 "***.\n",
		"hunt" + image + image + "er2.\n":         "***.\n",
		"hunter2 " + image + "\n":                 "*** " + image + "\n",
		"hunt" + image + "er3.\n":                 "", // as it is, but for some of the image
		"hunt" + strings.Repeat("\x1b[1m", 30000): "***",
	} {
		m := Masker{secrets: NewValues([]string{"hunter2"})}
		var out strings.Builder
		for piece := range slices.Chunk([]byte(text), 1000) {
			out.Write(m.Next(piece))
			if len(m.held) > mostUnseen+2000 {
				t.Fatalf("%.20q…: %d bytes are held back", text, len(m.held))
			}
		}
		out.Write(m.Rest())
		got := out.String()
		if want == "" {
			got, want = cells.Clean(got), cells.Clean(text)
		}
		if !strings.HasPrefix(got, want) || len(want) > 3 && got != want {
			t.Errorf("%.20q…: %.60q, want %.60q", text, got, want)
		}
	}
}

// BenchmarkMasker measures the cost of masking by kinds of output.
func BenchmarkMasker(b *testing.B) {
	for name, line := range map[string]string{
		"plain":   "a line as a program may print it, of 64 bytes with its newline.\n",
		"colours": "a line \x1b[1;31mas a program\x1b[0m may print it, with its newline\n",
	} {
		b.Run(name, func(b *testing.B) {
			text := []byte(strings.Repeat(line, (16<<10)/len(line)))
			b.SetBytes(int64(len(text)))
			m := Masker{secrets: NewValues([]string{"tok-secret-9876", "another/password"})}
			for b.Loop() {
				m.Next(text)
			}
		})
	}
}
