package rules

import (
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// mostKey is how many bytes a key has at most.
const mostKey = 200

// KeyOf returns the key of an item, and an error if the item lacks what the key names, or if the key is
// empty, longer than 200 bytes, or no line of text. A foreach without a Key gives "".
func KeyOf(f *plan.Foreach, item json.RawMessage) (string, error) {
	if f == nil || f.Key == "" {
		return "", nil
	}
	value, err := expr.Evaluate(f.Key, func(steps []string) (json.RawMessage, bool, error) { return item, steps[0] == "item", nil }, false)
	if err != nil {
		return "", err
	}
	key := f.Key
	if value != nil {
		key = SubjectText(value)
	}
	switch {
	case key == "":
		return "", fmt.Errorf("the key %s is empty", f.Key)
	case len(key) > mostKey || key != lineOf(key, mostKey):
		return "", fmt.Errorf("the key %s is %s, and a key is a line of at most %d bytes", f.Key, jsontext.Excerpt(jsontext.AppendText(nil, key)), mostKey)
	}
	return key, nil
}

// CheckKeys returns why these items cannot be made: one has no key, or two have the same.
func CheckKeys(f *plan.Foreach, items []json.RawMessage) error {
	if f.Key == "" {
		return nil
	}
	first := make(map[string]int, len(items))
	for i, item := range items {
		key, err := KeyOf(f, item)
		if err != nil {
			return fmt.Errorf("item %d of the foreach: %w", i, err)
		}
		if k, twice := first[key]; twice {
			return fmt.Errorf("items %d and %d of the foreach have the same key %q; let key name what tells them apart", k, i, key)
		}
		first[key] = i
	}
	return nil
}

// HasKey reports whether an item has the key: by Foreach.Key, or without that if the item is that text or
// number. It reads ItemKey and Params.
func HasKey(t *plan.Task, key string) bool {
	if t.ItemKey != "" {
		return t.ItemKey == key
	}
	item := ItemOf(t.Params)
	return len(item) > 0 && item[0] != '{' && item[0] != '[' && SubjectText(item) == key
}
