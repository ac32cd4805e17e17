package cli

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

func TestANodeSaysOnceWhichQueuesItLeavesToOthers(t *testing.T) {
	st := model.New(model.Options{})
	queue := func(name, plugin string) {
		t.Helper()
		if _, err := st.CreateQueue(t.Context(), plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: name, Plugin: plugin}); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	has := []string{"exec"}
	w := &queueWatch{st: st, has: func() []string { return has }, log: slog.New(slog.NewTextHandler(&b, nil))}
	says := func(when string, want ...string) {
		t.Helper()
		b.Reset()
		w.look(t.Context())
		lines := strings.Count(b.String(), "\n")
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s it says\n%swant %q", when, b.String(), want)
			}
		}
		if lines != len(want) {
			t.Errorf("%s it says\n%swant %d lines", when, b.String(), len(want))
		}
	}
	queue("sh", "exec")
	queue("mail", "imap")
	says("as it starts", `left to others: this node does not have its plugin" queue=mail plugin=imap`)
	says("later")
	queue("news", "nntp")
	queue("odd", "no name")
	says("of what is new", "queue=news plugin=nntp", "invalid name")
	says("later")
	has = []string{"exec", "imap"}
	says("when a plugin came", `msg="the plugin of a queue is there now" queue=mail plugin=imap`)
	says("later")
	has = []string{"imap"}
	says("when one went", "left to others: this node does not have its plugin\" queue=sh plugin=exec")
}
