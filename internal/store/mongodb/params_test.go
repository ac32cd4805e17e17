package mongodb

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestParamsComeBackAsTheyWere(t *testing.T) {
	for _, c := range []struct {
		name, params string
		exact        bool // a document alone holds them
	}{
		{"no members", `{}`, true},
		{"the order of members stays", `{"b":1,"a":2}`, true},
		{"all kinds of values", `{"s":"x","i":7,"big":9007199254740993,"f":1.5,"t":true,"n":null,"l":[1,[2],{}],"o":{"x":{}}}`, true},
		{"a float without a fraction stays a float", `{"x":2.0}`, true},
		{"a float that Go writes with an exponent", `{"x":1e+30}`, true},
		{"text with quotes, angles and an emoji", `{"x":"\"<&>\" 🙂"}`, true},
		{"a number of another spelling", `{"x":1e3}`, false},
		{"a number that no float holds", `{"x":0.1000000000000000055511151231257827}`, false},
		{"an integer of more than 64 bits", `{"x":12345678901234567890}`, false},
		{"minus zero", `{"x":-0}`, false},
		{"a number beyond all floats", `{"x":1e999}`, false},
		{"a member with a dollar sign", `{"$set":{"x":1},"y":2}`, false},
		{"a member with a dot", `{"a.b":1}`, false},
		{"a member with a NUL", `{"a\u0000":1}`, false},
		{"a member that is there twice", `{"a":1,"a":2}`, false},
		{"half of a surrogate pair", `{"a":"\ud800"}`, false},
		{"a byte that is no UTF-8", "{\"a\":\"\xff\"}", false},
		{"deeper than a document may be", `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, exact, err := encodeParams(json.RawMessage(c.params))
			if err != nil {
				t.Fatal(err)
			}
			if exact != c.exact {
				t.Errorf("exact = %v, want %v", exact, c.exact)
			}
			var in taskDoc
			if err := in.setParams(json.RawMessage(c.params)); err != nil {
				t.Fatal(err)
			}
			var out taskDoc
			raw, err := bson.Marshal(in)
			if err == nil {
				err = bson.Unmarshal(raw, &out)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := out.params()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, []byte(c.params)) {
				t.Errorf("got %s, want %s", got, c.params)
			}
		})
	}
}

func TestParamsThatAreNoObjectAreRefused(t *testing.T) {
	for _, params := range []string{`[]`, `1`, `"x"`, `{"a"`, `{"a":}`, `{]`, `{} {}`} {
		if _, _, err := encodeParams(json.RawMessage(params)); err == nil {
			t.Errorf("%s was taken for an object", params)
		}
	}
	for _, params := range []string{``, ` `, `null`} {
		if doc, exact, err := encodeParams(json.RawMessage(params)); err != nil || !exact || len(doc) != 5 {
			t.Errorf("%q gave a document of %d bytes, exact %v and %v, want an empty document", params, len(doc), exact, err)
		}
	}
}

func TestParamsOfOtherProgramsAreReadAsExtendedJSON(t *testing.T) {
	id, _ := bson.ObjectIDFromHex("571f8951b75bf335634ec271")
	raw, err := bson.Marshal(d("user", "x", "id", id, "at", bson.DateTime(0), "n", int64(3), "data", []byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeParams(raw)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"user":"x","id":{"$oid":"571f8951b75bf335634ec271"},"at":{"$date":{"$numberLong":"0"}},"n":3,` +
		`"data":{"$binary":{"base64":"AQ==","subType":"00"}}}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzParams holds conversion to two properties: what is called exact means the same on the way back, and what comes back is JSON.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,2.5,{"b":null}],"c":"\u00fc"}`, `{"a":1e3,"b":-0.0}`, `{"x":{"$y":1}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		doc, exact, err := encodeParams(params)
		if err != nil || !json.Valid(params) {
			return
		}
		back, err := decodeParams(doc)
		if err != nil {
			t.Fatalf("%s became a document that cannot be read: %v", params, err)
		}
		if !json.Valid(back) {
			t.Fatalf("%s came back as %s, which is not JSON", params, back)
		}
		if exact && len(bytes.TrimSpace(params)) > 0 && !reflect.DeepEqual(tree(t, params), tree(t, back)) {
			if string(bytes.TrimSpace(params)) != "null" {
				t.Fatalf("%s came back as %s, though that was called exact", params, back)
			}
		}
	})
}

func tree(t *testing.T, raw []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
