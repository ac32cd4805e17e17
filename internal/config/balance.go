package config

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// ReadBalance reads a balance document from a file, in the form of the configuration file, and also
// returns it as strict JSON. Mistakes are textfile.Errors. Notes on what is probably not meant are
// a separate result.
func ReadBalance(path string) (document json.RawMessage, b *balance.Document, warnings []textfile.Error, err error) {
	data, err := readFile(path)
	if err != nil {
		return nil, nil, nil, err
	}
	r, root, ok := begin(path, data, func(*node) []span { return nil }, `{"max_tasks": {"* 07:00": 5}, "queues": [["bulk"], ["urgent"]]}`)
	if !ok {
		return nil, nil, nil, r.errs
	}
	document, _ = relax(data)
	b, err = balance.Parse(document)
	if wrong, isWrong := errors.AsType[balance.Error](err); isWrong {
		for i := range wrong {
			r.failf(root.locate(wrong[i].Path, wrong[i].Key), "%s", wrong[i].Message)
		}
	} else if err != nil {
		return nil, nil, nil, err
	}
	for i := range root.members {
		if m := &root.members[i]; !slices.Contains(balance.Keys, m.name) {
			r.warnf(m.at, "%q is not a key of the balance document and has no effect%s", m.name, hint.Meant(m.name, balance.Keys))
		}
	}
	return document, b, r.Warnings, r.done()
}

// locate returns the byte of the value, or of its key, to which keys and numbers of items lead. If
// the value does not exist, it returns the byte of the value that would contain it. The last value
// of a repeated key counts.
func (n *node) locate(path []string, key bool) int {
	at := n.from
	for _, word := range path {
		var next *node
		from := at
		switch n.kind {
		case object:
			for i := range n.members {
				if m := &n.members[i]; m.name == word {
					next, from = &m.value, m.at
				}
			}
		case list:
			if i, err := strconv.Atoi(word); err == nil && i < len(n.items) {
				next, from = &n.items[i], n.items[i].from
			}
		}
		if next == nil {
			return at
		}
		if n, at = next, next.from; key {
			at = from
		}
	}
	return at
}
