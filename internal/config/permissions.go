package config

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// DefaultPermissions is where Disbatch 4 has the file of what plugins may do.
const DefaultPermissions = "/etc/disbatch/plugin-permissions.json"

// A Permission is what plugins may do with a collection.
type Permission struct {
	Collection string   // "" means the whole database
	Actions    []string // in MongoDB's words
}

// actions are those of MongoDB that are about collections. It may have others, newer ones: they are warned of.
var actions = []string{
	"bypassDocumentValidation", "changeStream", "collMod", "collStats", "compact", "convertToCapped", "createCollection", "createIndex", "createSearchIndexes",
	"dropCollection", "dropIndex", "dropSearchIndex", "find", "indexStats", "insert", "killCursors", "listIndexes", "listSearchIndexes", "planCacheIndexFilter",
	"planCacheRead", "planCacheWrite", "reIndex", "remove", "renameCollectionSameDB", "storageDetails", "update", "updateSearchIndex", "validate",
}

var actionName = regexp.MustCompile(`^[a-zA-Z]+$`)

// ReadPermissions reads Disbatch 4's file of the permissions of plugins. It has the form of the
// configuration file: collections with lists of actions. Mistakes are textfile.Errors. Notes on
// what is probably not meant are a separate result.
func ReadPermissions(path string) (all []Permission, warnings []textfile.Error, err error) {
	data, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	r, root, ok := begin(path, data, func(*node) []span { return nil }, `{"reports": ["insert"]}`)
	if !ok {
		return nil, nil, r.errs
	}
	seen := map[string]bool{}
	for i := range root.members {
		m := &root.members[i]
		if seen[m.name] {
			r.failf(m.at, "%q is there twice; write all of its actions in one list", m.name)
		}
		seen[m.name] = true
		p := Permission{Collection: m.name, Actions: r.texts(fmt.Sprintf("%q", m.name), &m.value, `"find"`, func(action string) string {
			if !actionName.MatchString(action) {
				return "which is no action; those are words such as find, insert, update and remove"
			}
			return ""
		})}
		for k := range m.value.items {
			item := &m.value.items[k]
			if item.kind != text || slices.Contains(actions, item.word) || !actionName.MatchString(item.word) {
				continue
			}
			r.warnf(item.from, "%q is no action that Sluice knows; MongoDB decides%s", item.word, hint.Meant(item.word, actions))
		}
		if len(p.Actions) > 0 {
			all = append(all, p)
		}
	}
	err = r.done()
	return all, r.Warnings, err
}
