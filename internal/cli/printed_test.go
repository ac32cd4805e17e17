package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/memory"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// ranElsewhere is a store with a task of no plan that printed this and has no log, as of another program.
func ranElsewhere(t *testing.T, stdout, stderr string) (store.Store, plan.TaskID) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	st := memory.New(memory.Options{})
	q, err := st.EnsureQueue(t.Context(), plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "q", Plugin: "p", Unlimited: true})
	check(err)
	task := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "migrate", Queue: q.ID}
	check(st.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{task}))
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n"}
	check(st.Register(t.Context(), i))
	turn := plan.Turn{Instance: i.ID, Slots: 1, Plugins: []string{"p"}, Start: true}
	did, err := st.Turn(t.Context(), turn)
	check(err)
	section := func(s string) *io.SectionReader { return io.NewSectionReader(strings.NewReader(s), 0, int64(len(s))) }
	c := did.Claimed[0].Claim
	check(st.PutResults(t.Context(), c, section(stdout), section(stderr), plan.GFSAuto))
	turn.Slots, turn.Ended = 0, []plan.Ending{{Claim: c, Status: plan.Succeeded}}
	_, err = st.Turn(t.Context(), turn)
	check(err)
	return st, task.ID
}

func TestLogsOfATaskThatAnotherProgramRanAreWhatItPrinted(t *testing.T) {
	for _, c := range []struct{ stdout, stderr, args, want, note string }{
		{"one\ntwo\n", "", "", "one\ntwo\n", "this is its standard output\n"},
		{"one\ntwo", "err\n", "", "one\ntwo\nerr\n", "this is its standard output, and after it its standard error\n"},
		{"one\ntwo", "err\n", "--follow", "one\ntwo\nerr\n", "this is its standard output, and after it its standard error\n"},
		{"", "err\n", "", "err\n", "this is its standard error\n"},
		{"one\ntwo\n", "err\n", "--tail=2", "two\nerr\n", "standard error\n"},
		{"", "", "", "", "it printed nothing\n"},
	} {
		st, id := ranElsewhere(t, c.stdout, c.stderr)
		open := func(context.Context, string) (store.Store, error) { return st, nil }
		run := func(args ...string) (string, string) {
			var stdout, stderr bytes.Buffer
			code := Program{
				Open: open, Existing: open, DefaultStore: func() (string, bool) { return "sqlite:x", false }, Redact: func(u string) string { return u },
				Plugins: plugins.NewRegistry(), Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" },
			}.Run(t.Context(), args)
			if code != 0 {
				t.Errorf("sluice %s ends with %d: %s", args, code, stderr.String())
			}
			return stdout.String(), stderr.String()
		}
		args := append([]string{"task", "logs", id.String()}, strings.Fields(c.args)...)
		if out, note := run(args...); out != c.want || !strings.HasSuffix(note, c.note) {
			t.Errorf("%q and %q, %s: printed is %q, noted %q; want %q, and %q", c.stdout, c.stderr, c.args, out, note, c.want, c.note)
		}
		out, _ := run("task", "show", id.String())
		for stream, text := range map[string]string{"stdout": c.stdout, "stderr": c.stderr} {
			if want := fmt.Sprintf("\n%s             %s\n", stream, number(len(text), "byte")); !strings.Contains(out, want) {
				t.Errorf("task show says\n%s, want %q", out, want)
			}
		}
	}
}
