package cli

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// Everybody who can write to a database names nodes and queues in it freely.
func TestNamesThatOthersWroteDoNotReachTheTerminal(t *testing.T) {
	m := model.New(model.Options{})
	odd := "a\x1b[2J\x1b]0;x\x07\nb\rc"
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: plan.NodeName(odd), Lease: time.Minute, Threads: 1, Plugins: []string{odd}, Version: odd}
	if err := m.Register(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	for k, limit := range []plan.NodeName{plan.NodeName(odd), plan.NodeName(odd + "gone")} {
		if err := m.SetMaxThreads(t.Context(), limit, k); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.CreateQueue(t.Context(), plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: odd, Plugin: odd}); err != nil {
		t.Fatal(err)
	}
	run := commandsOn(lasting{m, m})
	for _, args := range [][]string{{"node", "list"}, {"queue", "list"}, {"node", "set", "a", "--maxthreads", "1"}, {"task", "list"}, {"queue", "set", "x", "--threads", "1"}} {
		_, shown, said := run(args...)
		if k := strings.IndexFunc(shown+said, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); k >= 0 {
			t.Errorf("%q prints a control character: %q", args, shown+said)
		}
		if args[1] == "list" && args[0] != "task" && strings.Count(shown, "\n") != 2 {
			t.Errorf("%q does not keep to a line for each:\n%s", args, shown)
		}
	}
}

func TestANodeThatLeavesAQueueAloneSaysSo(t *testing.T) {
	m := model.New(model.Options{})
	q, err := m.CreateQueue(t.Context(), plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "exec", Plugin: "exec", Unlimited: true})
	if err != nil {
		t.Fatal(err)
	}
	other := plan.QueueID{ID: plan.NewID(time.Now())}
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1", Lease: time.Minute, Threads: 1, Plugins: []string{"exec"},
		Pauses: []plan.Pause{{Queue: q.ID, Each: 8 * time.Second, Why: "no such folder"}, {Queue: other, Why: "it takes tasks of it again"}}}
	if err := m.Register(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	run := commandsOn(lasting{m, m})
	if _, _, said := run("node", "list"); said != "note: node n1 leaves queue exec to other nodes, and tries one task each 8.0s: no such folder\n" {
		t.Errorf("it notes %q", said)
	}
	if _, shown, _ := run("node", "list", "-o", "json"); !strings.Contains(shown, `"each": "8s"`) || !strings.Contains(shown, `"why": "no such folder"`) {
		t.Errorf("it prints %s", shown)
	}
}

// A mixed store has nodes of other programs.
type mixed struct {
	lasting
	nodes []store.Document
}

func (s mixed) NodeDocuments(context.Context) ([]store.Document, error) { return s.nodes, nil }

func TestALimitOfAnotherProgramsNodeIsSaidToBeThat(t *testing.T) {
	m := model.New(model.Options{})
	run := commandsOn(mixed{lasting{m, m}, []store.Document{
		{"node": "theirs", "timestamp": time.Now().Add(-5 * time.Second)},
		{"node": "gone", "timestamp": time.Now().Add(-time.Hour)},
		{"node": "odd", "timestamp": "now"},
		{"node": "left", "timestamp": time.Now(), "sluice": true},
	}})
	for name, another := range map[string]bool{"theirs": true, "gone": false, "odd": false, "nobody": false, "left": false} {
		code, _, said := run("node", "set", name, "--maxthreads", "2")
		if code != 0 || strings.Contains(said, "belongs to another program (last heartbeat 5.") != another || strings.Contains(said, "is there now") == another {
			t.Errorf("of %s it says %q, and ends with %d", name, said, code)
		}
	}
}
