package jsontext

import "testing"

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
