package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// ranElsewhere is a store with a task of no plan that printed this and has no log, as of another program.
func ranElsewhere(t *testing.T, stdout, stderr string, log ...plan.LogEntry) (store.Store, plan.TaskID) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	st := model.New(model.Options{})
	q, err := st.EnsureQueue(t.Context(), plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "q", Plugin: "p", Unlimited: true})
	check(err)
	task := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "migrate", Queue: q.ID}
	check(st.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{task}))
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n"}
	check(st.Register(t.Context(), i))
	turn := protocol.Turn{Instance: i.ID, Slots: 1, Plugins: []string{"p"}, Start: true}
	did, err := st.Turn(t.Context(), turn)
	check(err)
	section := func(s string) *io.SectionReader { return io.NewSectionReader(strings.NewReader(s), 0, int64(len(s))) }
	c := did.Claimed[0].Claim
	if stdout != "null" {
		check(st.PutResults(t.Context(), c, section(stdout), section(stderr), protocol.GFSAuto))
	}
	turn.Slots, turn.Ended = 0, []protocol.Ending{{Claim: c, Status: plan.Succeeded, Log: log}}
	_, err = st.Turn(t.Context(), turn)
	check(err)
	return st, task.ID
}

// on returns a function that types a command on a store, and returns its output. The command has to
// succeed.
func on(t *testing.T, st store.Store) func(args ...string) (string, string) {
	return func(args ...string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := runOn(t, st, &stdout, &stderr, args...); code != 0 {
			t.Errorf("sluice %s ends with %d: %s", args, code, stderr.String())
		}
		return stdout.String(), stderr.String()
	}
}

func runOn(t *testing.T, st store.Store, stdout, stderr io.Writer, args ...string) int {
	opens := func(context.Context, string) (store.Store, error) { return st, nil }
	return Program{
		Open: opens, Existing: opens, Private: open.Private, DefaultStore: func() (string, bool) { return "sqlite:x", false }, Redact: func(u string) string { return u },
		Plugins: plugins.NewRegistry(), Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Getenv: func(string) string { return "" },
	}.Run(t.Context(), args)
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
		run := on(t, st)
		args := append([]string{"task", "logs", id.String()}, strings.Fields(c.args)...)
		if out, note := run(args...); out != c.want || !strings.HasSuffix(note, c.note) {
			t.Errorf("%q and %q, %s: printed is %q, noted %q; want %q, and %q", c.stdout, c.stderr, c.args, out, note, c.want, c.note)
		}
		out, _ := run("task", "show", id.String())
		for stream, text := range map[string]string{"stdout": c.stdout, "stderr": c.stderr} {
			if want := fmt.Sprintf("\n%s             %s\n", stream, view.Number(len(text), "byte")); !strings.Contains(out, want) {
				t.Errorf("task show says\n%s, want %q", out, want)
			}
		}
	}
}

// A foreign task runner that a node of ours has started prints things of its own, which are in the log.
func TestLogsTellWhatATaskRunnerPrintedFromWhatItsTaskDid(t *testing.T) {
	log := func(s plan.Stream, text string) plan.LogEntry {
		return plan.LogEntry{At: time.Now(), Attempt: 1, Stream: s, Text: text}
	}
	chatter := []plan.LogEntry{log(plan.Runner, "connected\n"), log(plan.Runner, "ended"), log(plan.System, "said by Sluice\n")}
	for _, c := range []struct {
		name, stdout, args, want, note string
		log                            []plan.LogEntry
	}{
		{"the task's alone", "one\n", "", "one\nerr\nsaid by Sluice\n", "what its task runner printed itself, 2 lines, is shown with --runner\n", chatter},
		{"both", "one\n", "--runner", "one\nerr\n[task runner]\nconnected\nendedsaid by Sluice\n", "and after it its standard error\n", chatter},
		{"both in the order in which they come", "one\n", "--follow --runner", "one\nerr\n[task runner]\nconnected\nendedsaid by Sluice\n", "error\n", chatter},
		{"the runner's, where the task's is not there", "null", "", "[task runner]\nconnected\nendedsaid by Sluice\n", "", chatter},
		{"one stream", "one\n", "--stderr", "err\n", "", chatter},
		{"a log of ours is what the task printed", "one\n", "", "ours\n", "", []plan.LogEntry{log(plan.Stdout, "ours\n")}},
		{"where nothing is kept beside the log, its part is one stream", "null", "--stdout", "ours\n", "first and the last 512 KiB\n",
			[]plan.LogEntry{log(plan.Stdout, "ours\n"), log(plan.Stderr, "not that\n")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, id := ranElsewhere(t, c.stdout, "err\n", c.log...)
			out, note := on(t, st)(append([]string{"task", "logs", id.String()}, strings.Fields(c.args)...)...)
			if out != c.want || !strings.HasSuffix(note, c.note) || c.note == "" && note != "" {
				t.Errorf("printed is %q, noted %q; want %q, and %q", out, note, c.want, c.note)
			}
		})
	}
	st, id := ranElsewhere(t, "one\n", "err\n", chatter...)
	out, _ := on(t, st)("task", "logs", id.String(), "-o", "json")
	for _, want := range []string{`"stdout",
    "text": "one\n"`, `"stderr",
    "text": "err\n"`, `"runner",
    "text": "connected\n"`} {
		if !strings.Contains(out, want) {
			t.Errorf("in JSON it is\n%s, want %s", out, want)
		}
	}
}

// large is a store whose tasks have printed very much, which is made as it is read.
type large struct {
	store.Store
	parts
	size int64
}

func (l *large) OpenResult(_ context.Context, _ plan.TaskID, s plan.Stream) (io.ReadCloser, int64, error) {
	if s == plan.Stderr {
		return io.NopCloser(strings.NewReader("")), -1, nil
	}
	return io.NopCloser(io.LimitReader(&lines{}, l.size)), l.size, nil
}

// lines are endless, of 1 KiB each.
type lines struct {
	n    int64
	left string
}

func (l *lines) Read(p []byte) (int, error) {
	if l.left == "" {
		l.left = fmt.Sprintf("%01023d\n", l.n)
		l.n++
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func TestWhatIsLargeIsPrintedWholeInBoundedMemory(t *testing.T) {
	const size = 128 << 20 // the heap may grow by some 30 MiB before it is collected
	st, id := ranElsewhere(t, "null", "")
	st = &large{Store: st, parts: st.(parts), size: size}
	var before, after runtime.MemStats
	var printed counter
	runtime.ReadMemStats(&before)
	if code := runOn(t, st, &printed, io.Discard, "task", "logs", "--stdout", id.String()); code != 0 || printed != size {
		t.Errorf("it ends with %d and has printed %d bytes, want all %d", code, printed, size)
	}
	runtime.ReadMemStats(&after)
	// Making the lines takes as much, but a little at a time.
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > size/2 {
		t.Errorf("printing %d bytes took %d bytes of memory", size, grown)
	}
	out, _ := on(t, st)("task", "logs", id.String())
	if len(out) > 2*keptHalf+1000 || !strings.HasPrefix(out, fmt.Sprintf("%01023d\n", 0)) || !strings.HasSuffix(out, fmt.Sprintf("%01023d\n", size>>10-1)) {
		t.Errorf("in its log are %d bytes, from %.20q on; want the beginning and the end", len(out), out)
	}
	if want := fmt.Sprintf("\n[%d bytes are left out here; all of it: sluice task logs --stdout %s]\n", size-2*keptHalf, id); !strings.Contains(out, want) {
		t.Errorf("it does not say %q", want)
	}
}

func TestBothEndsAreWholeLines(t *testing.T) {
	for _, c := range []struct {
		text, begin, end string
		dropped          int64
	}{
		{"", "", "", 0},
		{"ab\n", "ab\n", "", 0},
		{"a\nbcdefg\nhi\njkl\n", "a\n", "jkl\n", 10},
		{"ab\ncd\nef\n", "ab\ncd\n", "ef\n", 0},
		{"a\nbcdefg\nhijk\nl\n", "a\n", "l\n", 12},
		{"abcdefghijklmnopqrstuvw", "abcdef\n", "qrstuvw", 10},
	} {
		begin, end, dropped, err := bothEnds(iotest.OneByteReader(strings.NewReader(c.text)), 6)
		if begin != c.begin || end != c.end || dropped != c.dropped || err != nil {
			t.Errorf("of %q: %q, %q, %d, %v; want %q, %q, %d", c.text, begin, end, dropped, err, c.begin, c.end, c.dropped)
		}
	}
	broken := errors.New("broken")
	if _, _, _, err := bothEnds(iotest.ErrReader(broken), 6); err != broken {
		t.Errorf("of what cannot be read: %v", err)
	}
}
