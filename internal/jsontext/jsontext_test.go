package jsontext

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestANameThatIsTwiceInAnObjectIsFound(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"a":2}`:                         "a",
		`{"a":1,"\u0061":2}`:                    "a",
		`{"x":[{"b":{},"c":"b","b":[]}],"x":1}`: "b",
		`[{"a":1},{"a":2}]`:                     "",
		`{"a":{"a":["a","a",{"a":"a"}]},"b":1}`: "",
		`{"a":"\"a\":1,","b":"{\"b\":","c":[]}`: "",
		`{"a":1,"A":2}`:                         "",
		` { "a" : 1 , "b" : 2 , "a" : 3 } `:     "a",
		`{}`:                                    "",
		`"a"`:                                   "",
		`1`:                                     "",
	} {
		if got := Twice([]byte(text)); got != want {
			t.Errorf("%s: %q is twice, want %q", text, got, want)
		}
	}
}

func TestANameThatIsTwiceInAnyCaseIsFound(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2}`:              "",
		`{"a":1,"B":2,"A":3}`:        "A",
		`{"a":{"B":1,"b":2},"c":{}}`: "",
		`["a","A"]`:                  "",
	} {
		if got := TwiceInCase([]byte(text)); got != want {
			t.Errorf("%s: %q is twice, want %q", text, got, want)
		}
	}
}

func TestHalvesOfSurrogatePairsAreReplaced(t *testing.T) {
	for text, want := range map[string]string{
		`"\ud800"`:                    `"\ufffd"`,
		`"a\uDFFFb"`:                  `"a\ufffdb"`,
		`{"\udc00":["\ud800\ud800"]}`: `{"\ufffd":["\ufffd\ufffd"]}`,
		`"\ud83d\ud83d\ude00"`:        `"\ufffd\ud83d\ude00"`,
		`"\ud83d\n\ude00"`:            `"\ufffd\n\ufffd"`,
		`"\ud83dx"`:                   `"\ufffdx"`,
		`"\uD83D\uDE00"`:              `"\uD83D\uDE00"`,
		`"\\ud800 \u00e4 \""`:         `"\\ud800 \u00e4 \""`,
		`1`:                           `1`,
		``:                            ``,
	} {
		in := []byte(text)
		if got := Whole(in); string(got) != want || string(in) != text {
			t.Errorf("%s becomes %s, want %s; it was handed %s", text, got, want, in)
		}
	}
}

func FuzzMembersAreThoseThatEncodingJSONReads(f *testing.F) {
	for _, text := range []string{
		"", "{}", " { } ", "null", "[1]", "1", `"{"`, `{"a":1}`, `{"a":1}}`, `{"a":,"b":1}`, `{"a": {"b": [1, "]}", {"c": null}]} , "b" : "x:,\"}"}`,
		`{"a":1,"a":[2]}`, `{"":{}}`, `{"\u00e4\"":"ä"}`, "{\"\xff\":\"\xff\"}", "\n{\t\"a\"\r:\n[ 1 , 2 ]\t}\n", `{"a":"\\","b":[[],[{}]]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(text, &want)
		all, err := Object(text)
		var got map[string]json.RawMessage
		if all != nil {
			got = map[string]json.RawMessage{}
		}
		for _, m := range all {
			got[m.Name] = all.Get(m.Name)
		}
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v, want %q, %v", text, got, err, want, wantErr)
		}
	})
}
