package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// plainValue is what encoding/json makes of a value.
func plainValue(n *node) any {
	switch n.kind {
	case object:
		m := map[string]any{}
		for i := range n.members {
			m[n.members[i].name] = plainValue(&n.members[i].value)
		}
		return m
	case list:
		l := []any{}
		for i := range n.items {
			l = append(l, plainValue(&n.items[i]))
		}
		return l
	case text:
		return n.word
	case number:
		return json.Number(n.word)
	case boolean:
		return n.word == "true"
	}
	return nil
}

func decoded(t testing.TB, strict []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(strict))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRelaxedJSONIsReadAsPerlReadsIt(t *testing.T) {
	for relaxed, strict := range map[string]string{
		"[1, 2,]":                            "[1, 2]",
		"{\"a\": 1, \"b\": [],\n}":           `{"a": 1, "b": []}`,
		"[1, # one, ] }\n 2 # two\n, # x\n]": "[1, 2]",
		"# first\n{} # last":                 "{}",
		"# first\r[1 # \"\r]":                "[1]",
		`["# no comment", "a,]", "\",]"]`:    `["# no comment", "a,]", "\",]"]`,
		"[\"a\tb\", \"\t\"]":                 `["a\tb", "\t"]`,
		"{\"k\tk\": [[],],}":                 `{"k\tk": [[]]}`,
		"\uFEFF[]":                           "[]",
		`["\u00e9é\\"]`:                      `["éé\\"]`,
	} {
		made, _ := relax([]byte(relaxed))
		root, wrong, _ := parse([]byte(relaxed), made)
		if got, want := plainValue(&root), decoded(t, []byte(strict)); wrong != "" || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v (%s), want %v", relaxed, got, wrong, want)
		}
	}
	for _, wrong := range []string{"[,]", "[1,,]", "{,}", "[1,2", "{\"a\":,}", "[1],", ",", "", "#", "[\"a\nb\"]", "[1 2]", "[\"a\x01\"]", "{1: 2}", "// x\n{}"} {
		made, _ := relax([]byte(wrong))
		if _, message, _ := parse([]byte(wrong), made); message == "" {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func FuzzRelaxed(f *testing.F) {
	for _, seed := range []string{`{"a": [1, 2.5e3, "x\ty", null, true], "b": {}}`, "[1, # x\n]", "{\"a\": \"\t\",}", `"\ud83d\ude00"`, "[,]", "\"\\", "\uFEFF{}", " 1 "} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		strict, comments := relax(data)
		if len(strict) != len(data) {
			t.Fatalf("%d bytes became %d", len(data), len(strict))
		}
		for i := range data {
			if strict[i] != data[i] && strict[i] != ' ' {
				t.Fatalf("byte %d became %q", i, strict[i])
			}
		}
		root, wrong, at := parse(data, strict)
		if at < 0 || at > len(data) {
			t.Fatalf("%q is said to be at byte %d of %d", wrong, at, len(data))
		}
		if json.Valid(data) {
			if wrong != "" || len(comments) > 0 {
				t.Fatalf("strict JSON is refused: %s", wrong)
			}
			if got, want := plainValue(&root), decoded(t, data); !reflect.DeepEqual(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		if wrong == "" {
			checkPlaces(t, strict, &root)
		}
		c, err := Parse("c", data)
		if err == nil {
			_, _ = c.URI(Disbatchd)
		}
	})
}

// checkPlaces checks that each value is where it says.
func checkPlaces(t *testing.T, strict []byte, n *node) {
	if got, want := plainValue(n), decoded(t, strict[n.from:n.to]); n.kind != text && n.kind != list && n.kind != object && !reflect.DeepEqual(got, want) {
		t.Fatalf("at %d is %v, want %v", n.from, want, got)
	}
	for i := range n.items {
		checkPlaces(t, strict, &n.items[i])
	}
	for i := range n.members {
		if m := &n.members[i]; strict[m.at] != '"' {
			t.Fatalf("at %d is no key", m.at)
		}
		checkPlaces(t, strict, &n.members[i].value)
	}
}
