package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// A queueEntry is a queue in JSON listings, as the API has it. State and status say whether more of its tasks may start.
type queueEntry struct{ api.Queue }

func (e *queueEntry) threads() string { return limitText(e.Threads) }

func limitText(n *int) string {
	if n == nil {
		return unlimited
	}
	return strconv.Itoa(*n)
}

// said is what the queue says of more than threads and order, for people: each with the name of its
// flag, and "" where it says nothing.
func (e *queueEntry) said() [][2]string {
	return [][2]string{
		{"nodes", e.nodes()}, {"on-lost", string(e.OnLost)}, {"secret", strings.Join(e.Secrets, ",")}, {"keep", keepText(e.Keep)},
		{"group", e.Group}, {"weight", weightText(e.Weight)}, {"rate", e.Rate.String()}, {"defaults", e.defaults()},
	}
}

// weightText is a weight that was set; "" for the weight that nobody set.
func weightText(weight int) string {
	if weight == 0 {
		return ""
	}
	return strconv.Itoa(weight)
}

// defaults is what its tasks have by default, as --defaults takes it.
func (e *queueEntry) defaults() string {
	text, err := jsontext.Marshal(e.Defaults)
	if err != nil || string(text) == "{}" {
		return ""
	}
	return string(text)
}

// nodes is what the queue says of nodes, in a few words; "" if that is nothing.
func (e *queueEntry) nodes() string {
	join := func(nodes []plan.NodeName) string {
		return strings.Join(api.Each(nodes, func(n *plan.NodeName) string { return string(*n) }), ",")
	}
	var parts []string
	switch {
	case len(e.Pin) > 0:
		parts = append(parts, "only "+join(e.Pin))
	case len(e.Ignore) > 0:
		parts = append(parts, "not "+join(e.Ignore))
	}
	if e.NodeThreads > 0 {
		parts = append(parts, fmt.Sprintf("%d each", e.NodeThreads))
	}
	return strings.Join(parts, ", ")
}

func entryOfQueue(q *plan.Queue) queueEntry { return queueEntry{api.QueueOf(q)} }
