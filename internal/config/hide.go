package config

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// A mistake quotes its line of the file, and people send such messages to others. So the line shows
// keys, and only those values that are known not to be secret.

// plain are the keys whose values, and all that is in them, a message may show.
var plain = map[string]bool{
	"database": true, "plugins": true, "monitoring": true, "balance": true, "task_runner": true, "gfs": true, "quiet": true, "testing": true, "web_root": true, "views_dir": true,
	"activequeues": true, "ignorequeues": true,
}

// secrets returns the values of a file that no message may show.
func secrets(root *node) (hidden []span) {
	below := func(n *node, shown func(name string) bool) {
		if n.kind != object {
			hidden = values(hidden, n, nil)
		}
		for i := range n.members {
			if m := &n.members[i]; !shown(m.name) {
				hidden = values(hidden, &m.value, nil)
			}
		}
	}
	for i := range root.members {
		m := &root.members[i]
		switch {
		case plain[m.name]:
		case m.name == "mongohost" && !strings.ContainsAny(m.value.word, "@?"):
		case m.name == "attributes":
			below(&m.value, func(name string) bool { a := attributes[name]; return a != nil && !a.secret })
		case m.name == "log4perl":
			hidden = values(hidden, &m.value, map[string]bool{"level": true, "type": true, "layout": true, "filename": true})
		default:
			hidden = values(hidden, &m.value, nil)
		}
	}
	return hidden
}

// values appends every text and number of a value to the spans, but those of keys that may be shown.
func values(hidden []span, n *node, shown map[string]bool) []span {
	switch n.kind {
	case text:
		hidden = append(hidden, span{n.from + 1, n.to - 1})
	case number:
		hidden = append(hidden, n.span)
	}
	for i := range n.items {
		hidden = values(hidden, &n.items[i], shown)
	}
	for i := range n.members {
		if m := &n.members[i]; !shown[m.name] {
			hidden = values(hidden, &m.value, shown)
		}
	}
	return hidden
}

// unreadable returns what no message may show of a file that is no JSON: all but what looks like a key, true, false and null.
func unreadable(strict []byte) (hidden []span) {
	for at := 0; at < len(strict); {
		from := at
		switch c := strict[at]; {
		case c == '"':
			at = textEnd(strict, at)
			end := at // of one that its line ends
			if at > from+1 && strict[at-1] == '"' {
				end--
			}
			if !bytes.HasPrefix(bytes.TrimLeft(strict[at:], " \t"), []byte(":")) {
				hidden = append(hidden, span{from + 1, end})
			}
		case strings.IndexByte(" \t\r\n,:[]{}", c) >= 0:
			at++
		default:
			for at < len(strict) && strings.IndexByte(" \t\r\n,:[]{}\"", strict[at]) < 0 {
				at++
			}
			switch string(strict[from:at]) {
			case "true", "false", "null":
			default:
				hidden = append(hidden, span{from, at})
			}
		}
	}
	return hidden
}

// hide returns the text with stars for each of the spans, and where a byte of it is then.
func hide(text []byte, hidden []span, at int) (shown []byte, there int) {
	slices.SortFunc(hidden, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	there = at
	end := 0
	for _, h := range hidden {
		if h.from < end || h.from == h.to {
			continue
		}
		shown = append(shown, text[end:h.from]...)
		switch {
		case at >= h.to:
			there += len(stars) - (h.to - h.from)
		case at > h.from:
			there = len(shown)
		}
		shown = append(shown, stars...)
		end = h.to
	}
	return append(shown, text[end:]...), there
}

const stars = "***"
