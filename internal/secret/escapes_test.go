package secret

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestASecretIsFoundHoweverJSONSpellsIt(t *testing.T) {
	const umlaut, slashes, quotes = "pässwörd-1234", "abc/def/ghi", `hunter2 "quoted" \n`
	for _, c := range []struct {
		name, secret, text string
		want               bool
	}{
		{"as it is", umlaut, `{"a": "pässwörd-1234"}`, true},
		{"as Python does", umlaut, `{"a": "p\u00e4ssw\u00f6rd-1234"}`, true},
		{"in capitals", umlaut, `{"a": "p\u00E4ssw\u00F6rd-1234"}`, true},
		{"as nobody does", umlaut, `"\u0070\u00e4\u0073sw\u00f6rd\u002d1234"`, true},
		{"as a key", umlaut, `{"p\u00e4ssw\u00f6rd-1234": 1}`, true},
		{"as a part", umlaut, `["x p\u00e4ssw\u00f6rd-1234 y"]`, true},
		{"another one", umlaut, `{"a": "p\u00e4ssw\u00f6rd-1235"}`, false},
		{"as PHP does", slashes, `["abc\/def\/ghi"]`, true},
		{"with quotes and backslashes", quotes, `["hunter2 \"quoted\" \\n"]`, true},
		{"in JSON in JSON", umlaut, `{"body": "{\"a\": \"p\\u00e4ssw\\u00f6rd-1234\"}"}`, true},
		{"with quotes, in JSON in JSON", quotes, `{"body": "[\"hunter2 \\\"quoted\\\" \\\\n\"]"}`, true},
		{"in what is no JSON", umlaut, `p\u00e4ssw\u00f6rd-1234 "`, true},
		{"a sign beyond 16 bits", "key-🔑-key", `"key-\ud83d\udd11-key"`, true},
		{"half of such a sign", "key-🔑-key", `"key-\ud83d-key"`, false},
		{"a number", "123456", `{"a": 123456}`, true},
		{"three bytes are in too much else", "abc", `"abc"`, false},
		{"four are not", "abcd", `"abcd"`, true},
		{"blank space around it does not count", "  abcd\n", `"abcd"`, true},
		{"several lines", key, `"-----BEGIN KEY-----\nMIIEvQ\n}\nAbCdEf\n-----END KEY-----"`, true},
		{"a line of several", "AbCdEfGh\nIjKlMnOp", `["IjKlMnOp"]`, true},
		{"a short line of several", "AbCdEfGh\nIjKl", `["IjKl"]`, false},
		{"in colours", umlaut, `"p\u00e4ss\u001b[01;31m\u001b[Kw\u00f6rd\u001b[m\u001b[K-1234"`, true},
		{"an escape that is none", umlaut, `"\x \u00g4 \u12`, false},
		{"a backslash at the end", umlaut, `\`, false},
		{"nothing", umlaut, ``, false},
		{"no secret", "", `"a"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Holds([]byte(c.text), []string{"another secret", c.secret}); got != c.want {
				t.Errorf("%s holds %q: %v, want %v", c.text, c.secret, got, c.want)
			}
		})
	}
}

// A text with a secret still holds it after a JSON encoder, and after a second one. In a log it is
// masked.
func FuzzASecretInJSON(f *testing.F) {
	f.Add("pässwörd", "x", "y")
	f.Add("a/b\\c\"d<e>&f\x01", "\\", "\\u00e4")
	f.Add("🔑🔑", "\\ud83d", "")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		secret = strings.TrimSpace(secret)
		if len(secret) < shortestPart || !utf8.ValidString(secret) || !utf8.ValidString(before) || !utf8.ValidString(after) || strings.ContainsAny(secret, "*\u2028\u2029") {
			return // encoding/json writes the last two as numbers, which is not a way of its own to spell all else
		}
		once, err := json.Marshal(map[string]string{before + secret + after: "a"})
		if err != nil {
			t.Fatal(err)
		}
		twice, err := json.Marshal(string(once))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{once, twice} {
			if !Holds(text, []string{secret}) {
				t.Errorf("%q is not found in %s", secret, text)
			}
		}
		if strings.Contains(secret, "\n") {
			return
		}
		var decoded map[string]string
		if err := json.Unmarshal([]byte(masked(NewValues([]string{secret}), string(once))), &decoded); err != nil {
			return // the mask may begin in an escape of what stands before
		}
		for k := range decoded {
			if strings.Contains(k, secret) && !strings.Contains(before+"***"+after, secret) {
				t.Errorf("%q is in %q", secret, k)
			}
		}
	})
}
