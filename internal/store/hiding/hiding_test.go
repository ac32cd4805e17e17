package hiding_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// Callers ask for the optional parts of a store by interface. A store in front of another must not
// lose them: submissions through one that did sent few tasks at once.
func TestWhatAStoreOffersBesideIsOfferedWithoutItsSecrets(t *testing.T) {
	onDisk, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer onDisk.Close()
	for name, st := range map[string]store.Store{"model": model.New(model.Options{}), "sqlite": onDisk} {
		hidden := hiding.New(st)
		for what, offers := range map[string]func(store.Store) bool{
			"balance":   func(s store.Store) bool { _, ok := s.(store.Balance); return ok },
			"documents": func(s store.Store) bool { _, ok := s.(store.Documents); return ok },
			"results":   func(s store.Store) bool { _, ok := s.(store.Results); return ok },
			"packs":     func(s store.Store) bool { _, ok := s.(store.Packs); return ok },
			"deletion":  func(s store.Store) bool { _, ok := s.(store.QueueDeleter); return ok },
		} {
			if offers(hidden) != offers(st) {
				t.Errorf("%s: %s offered: %v, and without secrets %v", name, what, offers(st), offers(hidden))
			}
		}
		batch := func(s store.Store) int {
			if b, ok := s.(store.Batcher); ok {
				return b.SubmitBatch()
			}
			return 0
		}
		if batch(hidden) != batch(st) {
			t.Errorf("%s takes %d tasks at once best, and without secrets %d", name, batch(st), batch(hidden))
		}
		if hiding.Of(hidden) != st || hiding.New(hidden) != hidden {
			t.Errorf("%s is not the store that is hidden, or is hidden twice", name)
		}
	}
}

// gaps is a store whose cursors leave numbers out, as those of MongoDB may.
type gaps struct{ store.Store }

func (g gaps) Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error) {
	entries, next, err := g.Store.Log(ctx, id, (after+2)/3, limit)
	return entries, max(after, 3*next), err
}

// Another queue than the task's names the secret. So the node does not know it, because the node
// hides only the names of its own queue and its plan. The joined pages of the log are the same for
// all page sizes.
func TestASecretThatEntriesOfALogCutIsInNoPage(t *testing.T) {
	const secret, pieces = "Wx9SecretTokenä/b", 700
	ctx := t.Context()
	no := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	onDisk, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	no(err)
	defer onDisk.Close()
	for name, st := range map[string]store.Store{"model": model.New(model.Options{}), "sqlite": onDisk, "with gaps": gaps{model.New(model.Options{})}} {
		_, err = st.CreateQueue(ctx, plan.Queue{Name: "vault", Plugin: "demo", QueueSettings: plan.QueueSettings{Secrets: []string{"token"}}})
		no(err)
		spec := plan.New("p")
		spec.Add(plan.TaskSpec{Name: "a", Params: json.RawMessage(`{"run":"x","token":"` + secret + `"}`)})
		_, err = submit.Submit(ctx, st, spec, false)
		no(err)
		n := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Threads: 1, Lease: time.Minute, Plugins: []string{"exec"}}
		no(st.Register(ctx, n))
		turned, err := st.Turn(ctx, protocol.Turn{Instance: n.ID, Slots: 1, Start: true, Budget: 100, Plugins: n.Plugins})
		no(err)
		text, want := "", ""
		for i := range pieces {
			text += fmt.Sprintf("%d:%s", i, secret)
			want += fmt.Sprintf("%d:***", i)
		}
		var entries []plan.LogEntry
		for i, piece := range slices.Collect(slices.Chunk([]byte(text), 7)) {
			entries = append(entries, plan.LogEntry{At: time.Now(), Attempt: 1, Stream: plan.Stdout, Text: string(piece)})
			if i%3 == 0 {
				entries = append(entries, plan.LogEntry{At: time.Now(), Attempt: 1, Stream: plan.Stderr, Text: "oops\n"})
			}
		}
		no(st.AppendLog(ctx, turned.Claimed[0].Claim, entries))
		hidden := hiding.New(st)
		_, err = st.Beat(ctx, protocol.Beat{Instance: n.ID, Progress: []protocol.Reached{
			{Claim: turned.Claimed[0].Claim, Progress: plan.Progress{Fraction: 0.5, Text: "as " + secret}},
		}})
		no(err)
		for _, q := range []store.TaskQuery{{}, {Reached: true, Brief: true}, {Params: true}} {
			if tasks, err := hidden.Tasks(ctx, q); err != nil || len(tasks) != 1 || tasks[0].Progress == nil || tasks[0].Progress.Text != "as ***" {
				t.Errorf("%s: tasks by %+v are %+v, %v", name, q, tasks, err)
			}
		}
		if task, err := hidden.Task(ctx, turned.Claimed[0].Task); err != nil || task.Progress == nil || task.Progress.Text != "as ***" {
			t.Errorf("%s: the task has %v, %v", name, task.Progress, err)
		}
		for _, limit := range []int{1, 2, 3, 50, 5000} {
			var got strings.Builder
			n := 0
			for cursor := int64(0); ; {
				page, next, err := hidden.Log(ctx, turned.Claimed[0].Task, cursor, limit)
				no(err)
				if n += len(page); len(page) == 0 {
					break
				}
				for _, e := range page {
					if e.Stream == plan.Stdout {
						got.WriteString(e.Text)
					}
				}
				cursor = next
			}
			if got.String() != want || n != len(entries) {
				t.Errorf("%s, by pages of %d: %d entries of %d, which begin %.200q; want %.60q", name, limit, n, len(entries), got.String(), want)
			}
		}
	}
}

// The file of a plan has defaults that the plan was not run with, and values that only a queue makes secret.
func TestTheFileOfAPlanIsShownWithoutItsSecrets(t *testing.T) {
	const text = "plan: p\nsecrets: [password]\nparams: {password: default1, user: ann}\n" +
		"tasks: {a: {plugin: demo, params: {token: sesame77, given: real-one}}} # sesame77\n"
	ctx := t.Context()
	st := model.New(model.Options{})
	p, err := st.CreatePlan(ctx, plan.Plan{
		Name: "p", Secrets: []string{"password"}, Params: json.RawMessage(`{"password":"real-one","user":"ann"}`), File: plan.File{Text: text, Dir: "/srv"},
	})
	if err == nil {
		_, err = st.CreateQueue(ctx, plan.Queue{Name: "vault", Plugin: "demo", QueueSettings: plan.QueueSettings{Secrets: []string{"token"}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := hiding.New(st).PlanFile(ctx, p.ID)
	want := plan.File{Dir: "/srv", Text: "plan: p\nsecrets: [password]\nparams: {password: \"***\", user: ann}\n" +
		"tasks: {a: {plugin: demo, params: {token: \"***\", given: ***}}} # ***\n"}
	if err != nil || got != want {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
}
