package cli

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// checkNodeName refuses what cannot name a node: names stand in lists, in paths of the API and on terminals, by themselves.
func checkNodeName(name string) error {
	wrong := ""
	switch {
	case name == "":
		return usagef("a node's name is empty; if it comes from a variable, that is not set")
	case cells.Clean(name) != name:
		wrong = "has a control character, or another one that cannot be shown"
	case strings.TrimSpace(name) != name:
		wrong = "begins or ends with a space"
	case strings.ContainsAny(name, ",/"):
		wrong = "has a comma or a slash"
	case utf8.RuneCountInString(name) > mostNodeName:
		return usagef("the name of a node is longer than %d characters; take a shorter one, as that of its host", mostNodeName)
	default:
		return nil
	}
	return usagef("%q cannot name a node: it %s; take a name as a host has", name, wrong)
}

// mostNodeName is how many characters a node's name has at most: no host's has more than 64 on Linux, and tables have to hold it.
const mostNodeName = 128

// foreignSilent is after how long a node of another program is taken for gone, as Disbatch's monitoring has it.
const foreignSilent = time.Minute

// foreignHeard returns when another program's node of the name was heard of last, if the store keeps that; else zero.
func foreignHeard(ctx context.Context, st store.Store, name plan.NodeName) (at time.Time, err error) {
	s, ok := st.(store.Documents)
	if !ok {
		return at, nil
	}
	docs, err := s.NodeDocuments(ctx)
	for _, d := range docs {
		if d["node"] == string(name) && d["sluice"] != true { // by which Sluice's nodes mark theirs
			at, _ = d["timestamp"].(time.Time)
		}
	}
	return at, err
}

// noteNoNode says that none of these nodes has the name.
func (a *app) noteNoNode(name plan.NodeName, nodes []plan.Instance) {
	var names []string
	for _, i := range nodes {
		names = append(names, string(i.Node))
	}
	a.note("no node of the name %s is there now%s", name, hint.Meant(string(name), names))
}
