package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/cli"
	"github.com/seed-1177d267/sluice/internal/forsaken"
	"github.com/seed-1177d267/sluice/internal/hosttest"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/approval"
	"github.com/seed-1177d267/sluice/plugins/demo"
	"github.com/seed-1177d267/sluice/plugins/disbatchdemo"
	"github.com/seed-1177d267/sluice/plugins/disco"
	"github.com/seed-1177d267/sluice/plugins/exec"
	"github.com/seed-1177d267/sluice/plugins/http"
)

// The scripts in testdata/script type commands as a user does. Each "exec sluice" is a process of
// its own: this very test program, wired as cmd/sluice is.

func TestMain(m *testing.M) {
	runner.GuardMain()
	hosttest.Main()
	// Most of a script is waiting for processes: several of them keep the processors busy.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"sluice": func() {
		commands := exec.New(exec.Options{})
		reg := plugins.NewRegistry()
		reg.Register(exec.Name, commands)
		reg.Register(approval.Name, approval.Plugin)
		reg.Register(demo.Name, demo.Plugin)
		reg.Register(disbatchdemo.Name, disbatchdemo.Plugin)
		workers := disco.New(disco.Options{})
		reg.Register(disco.Name, workers)
		requests := http.New(http.Options{})
		reg.Register(http.Name, requests)
		code := cli.Program{
			Open: open.Open, Existing: open.Existing, Private: open.Private, DefaultStore: open.Default, StoreFiles: open.Files, Redact: open.Redact, Plugins: reg, Commands: commands, Requests: requests,
			Disco: workers, Version: "v1.2.3", Patience: time.Minute, // on a busy machine
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		}.Run(context.Background(), os.Args[1:])
		_ = commands.Close()
		os.Exit(code)
	}, "receive": receive})
}

// receive is a receiver of requests. It writes its address to the file that it is given, and answers
// with what it got. It is busy for the first try of each key under /busy, knows nothing under /no, and
// answers twice under /unasked.
func receive() {
	seen := map[string]bool{}
	var mu sync.Mutex
	s := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		switch {
		case strings.HasPrefix(r.URL.Path, "/busy") && !seen[key]:
			seen[key] = true
			w.Header().Set("Retry-After", "1")
			nethttp.Error(w, "come again", nethttp.StatusServiceUnavailable)
			return
		case strings.HasPrefix(r.URL.Path, "/unasked"): // a second answer, with what the request said
			if conn, _, err := nethttp.NewResponseController(w).Hijack(); err == nil {
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nX-Said: %s\r\n\r\n", r.Header.Get("Authorization"))
			}
			return
		case strings.HasPrefix(r.URL.Path, "/no"):
			nethttp.Error(w, "no such song", nethttp.StatusNotFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "path": r.RequestURI, "body": string(body), "key": key, "attempt": r.Header.Get("Sluice-Attempt"), "auth": len(r.Header.Get("Authorization")),
		})
	}))
	if err := os.WriteFile(os.Args[1]+".new", []byte(s.URL), 0o600); err == nil {
		_ = os.Rename(os.Args[1]+".new", os.Args[1]) // the script waits in vain for it
	}
	select {}
}

// behindAServer are the scripts that run behind a server too: each command that asks a server is in one of them. With SLUICE_TEST_WHOLE=1 all
// scripts run there.
var behindAServer = []string{
	"approve", "balance", "complete", "disco-submit", "failures", "groups", "half", "items", "logs", "names", "plan-logs", "plan-secrets", "queue", "resume", "retry", "retry-params",
	"schedules", "secret-params", "selection", "server", "server-restart", "shared", "show", "stalled", "stops", "subject", "submit-key", "task", "task-filter", "task-set", "usage", "wait",
}

func TestScripts(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) { // as by nohup: commands would inherit that, and scripts wait for them for ever
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		scripts(t, nil, func(e *testscript.Env) string { return "sqlite:" + filepath.Join(e.WorkDir, "sluice.db") })
	})
	// Commands that read and change ask a server; commands that run tasks open the store behind it.
	// So it is when SLUICE_SERVER and SLUICE_STORE are both set.
	t.Run("sqlite behind a server", func(t *testing.T) {
		files := behindAServer
		if os.Getenv("SLUICE_TEST_WHOLE") != "" {
			files = nil
		}
		scripts(t, files, func(e *testscript.Env) string {
			uri := "sqlite:" + filepath.Join(e.WorkDir, "sluice.db")
			url, stop := served(t, uri)
			e.Defer(stop)
			e.Setenv("SLUICE_SERVER", url)
			return uri
		})
	})
	server := os.Getenv("SLUICE_TEST_MONGODB")
	if server == "" {
		t.Log("SLUICE_TEST_MONGODB is not set: the scripts run on SQLite only")
		return
	}
	t.Run("mongodb", func(t *testing.T) {
		scripts(t, nil, func(e *testscript.Env) string {
			return fmt.Sprintf("%s/sluice-cli-%d-%s", strings.TrimSuffix(server, "/"), time.Now().UnixNano(), filepath.Base(e.WorkDir)[:8])
		})
	})
}

// served serves the API over a store.
func served(t *testing.T, uri string) (url string, stop func()) {
	t.Helper()
	st, err := open.Open(context.Background(), uri)
	if err != nil {
		t.Fatal(err)
	}
	a := v1.New(v1.Config{Store: st, Version: "v1.2.3", End: func(ctx context.Context, p plan.Plan) error {
		_, _, err := forsaken.Config{Store: st}.End(ctx, p)
		return err
	}})
	ctx, end := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); a.Run(ctx) }()
	srv := httptest.NewServer(a)
	return srv.URL, func() {
		end()
		<-ran
		srv.Close()
		_ = st.Close()
	}
}

// scripts runs the scripts of those names, and all if there are none.
func scripts(t *testing.T, names []string, store func(*testscript.Env) string) {
	folder := filepath.Join("testdata", "script")
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts in %s: %v", folder, err)
	}
	if len(names) > 0 {
		files = nil
		for _, name := range names {
			files = append(files, filepath.Join(folder, name+".txt"))
		}
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			e.Setenv("SLUICE_STORE", store(e))
			e.Setenv("NO_COLOR", "1")
			examples, err := filepath.Abs("../../examples")
			e.Setenv("EXAMPLES", examples)
			return err
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "sqlite", "mongodb", "server":
				return strings.Contains(t.Name(), cond), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"cmpplain": cmpPlain, "capture": capture, "until": until, "outoftime": outOfTime, "half": half, "plain": plain, "fromdoc": fromDoc, "beats": beats},
	})
}

// varies has the parts that differ from run to run, with their replacements in the files that
// output is compared with.
var varies = []struct {
	is    *regexp.Regexp
	stand string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{24}\b`), "ID"},
	{regexp.MustCompile(`\b(\d+(\.\d)?ms|\d+\.\d+s|\d+m\d\ds)\b`), "T"},
	{regexp.MustCompile(`"seconds":[0-9.e-]+`), `"seconds":T`},
}

// cmpPlain compares a file (or stdout, or stderr) with another one. Parts that vary are written as
// TIME, ID, T and NODE there, and runs of blanks count as one.
func cmpPlain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cmpplain FILE WANT")
	}
	host, err := os.Hostname()
	ts.Check(err)
	text := ts.ReadFile(args[0])
	text = regexp.MustCompile(regexp.QuoteMeta(host)+`\.\d+`).ReplaceAllString(text, "NODE")
	text = strings.ReplaceAll(text, ts.Getenv("SLUICE_STORE"), "STORE")
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "$WORK")
	for _, v := range varies {
		text = v.is.ReplaceAllString(text, v.stand)
	}
	text = regexp.MustCompile(`  +`).ReplaceAllString(text, "  ")
	want := regexp.MustCompile(`  +`).ReplaceAllString(ts.ReadFile(args[1]), "  ")
	if text != want {
		ts.Fatalf("%s is\n%s\nwant\n%s", args[0], text, want)
	}
}

// capture puts what the last command printed into a variable.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// half submits a plan file up to some number of its tasks, and dies.
func half(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: half {run | submit} FILE N [NAME=VALUE]…")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	params := map[string]string{}
	for _, arg := range args[3:] {
		name, value, _ := strings.Cut(arg, "=")
		params[name] = value
	}
	spec, err := planfile.Load(ts.MkAbs(args[1]), params)
	ts.Check(err)
	st, err := open.Open(context.Background(), ts.Getenv("SLUICE_STORE"))
	ts.Check(err)
	defer st.Close()
	if _, err := submit.Submit(context.Background(), &dying{st, n}, spec, args[0] == "run"); !errors.Is(err, errDied) {
		ts.Fatalf("the submission ended with %v, want it dead before", err)
	}
}

// plain adds some number of tasks of no plan to a queue.
func plain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: plain QUEUE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx := context.Background()
	st, err := open.Open(ctx, ts.Getenv("SLUICE_STORE"))
	ts.Check(err)
	defer st.Close()
	q, err := st.EnsureQueue(ctx, plan.Queue{Name: args[0], Plugin: plan.DefaultPlugin})
	ts.Check(err)
	tasks := make([]plan.Task, n)
	for i := range tasks {
		tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Params: json.RawMessage(`{"run": "true"}`)}
	}
	ts.Check(st.AddTasks(ctx, plan.PlanID{}, tasks))
}

var errDied = errors.New("died")

// dying is the store of a submission that dies when so many tasks are in.
type dying struct {
	store.Store
	left int
}

func (d *dying) AddTasks(ctx context.Context, p plan.PlanID, tasks []plan.Task) error {
	if d.left >= len(tasks) {
		d.left -= len(tasks)
		return d.Store.AddTasks(ctx, p, tasks)
	}
	return errors.Join(d.Store.AddTasks(ctx, p, tasks[:d.left]), errDied)
}

func (d *dying) Ready(context.Context, plan.PlanID) error { return errDied }

// fromDoc writes a file that a page of docs/ has as an example: the block of code after a line that ends in "File `NAME`:".
func fromDoc(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fromdoc PAGE NAME")
	}
	text, err := example(args[0], args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

func example(page, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		return "", err
	}
	_, rest, there := strings.Cut(string(text), "File `"+name+"`:\n\n```")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !there || !closed {
		return "", fmt.Errorf("docs/%s has no block of code after: File `%s`:", page, name)
	}
	_, code, _ := strings.Cut(block, "\n") // after the language
	return code + "\n", nil
}

// TestTheGoPluginOfThePluginsPage runs the program that docs/plugins.md shows.
func TestTheGoPluginOfThePluginsPage(t *testing.T) {
	code, err := example("plugins.md", "main.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, letter := filepath.Join(dir, "main.go"), filepath.Join(dir, "letter.txt")
	if err := errors.Join(os.WriteFile(program, []byte(code), 0o600), os.WriteFile(letter, []byte("hello world\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	out, err := osexec.Command("go", "run", program, "sqlite:"+filepath.Join(dir, "s.db"), letter).CombinedOutput()
	if want := fmt.Sprintf("succeeded: {\"bytes\":12,\"file\":%q}\n", letter); err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

// beats waits until a node has beaten so many times from now on.
func beats(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: beats NODE N")
	}
	times, err := strconv.Atoi(args[1])
	ts.Check(err)
	st, err := open.Existing(context.Background(), ts.Getenv("SLUICE_STORE"))
	ts.Check(err)
	defer st.Close()
	first := map[plan.InstanceID]int64{}
	if !polltest.Holds(patience, func() bool {
		all, err := st.Instances(context.Background())
		ts.Check(err)
		for _, i := range all {
			before, seen := first[i.ID]
			if i.Node == plan.NodeName(args[0]) && seen && i.Beats >= before+int64(times) {
				return true
			}
			if !seen {
				first[i.ID] = i.Beats
			}
		}
		return false
	}) {
		ts.Fatalf("node %s has not beaten %d times in %v", args[0], times, patience)
	}
}

// patience is how long a test waits for what has to become true, also on a machine that has other things to do. Nothing is measured by it.
const patience = 2 * time.Minute

// outOfTime runs a command with a --timeout, which the command has to end with, and with what it has to say before. A busy machine may not
// let it read the store in the shortest time: it gets more then.
func outOfTime(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: outoftime REGEXP COMMAND [ARG…]")
	}
	says, err := regexp.Compile(args[0])
	ts.Check(err)
	for _, timeout := range []string{"300ms", "3s", "30s", patience.String()} {
		var exit *osexec.ExitError
		if err := ts.Exec(args[1], append(args[2:], "--timeout", timeout)...); !errors.As(err, &exit) || exit.ExitCode() != 3 {
			ts.Fatalf("%q ended with %v, want exit code 3", args[1:], err)
		}
		if says.MatchString(ts.ReadFile("stdout") + ts.ReadFile("stderr")) {
			return
		}
	}
	ts.Fatalf("%q does not say %q", args[1:], args[0])
}

// until runs a command again and again until it ends well.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: until COMMAND [ARG…]")
	}
	if !polltest.Holds(patience, func() bool { return ts.Exec(args[0], args[1:]...) == nil }) {
		ts.Fatalf("%q did not end well within %v", args, patience)
	}
}
