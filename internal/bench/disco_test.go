package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disco"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

func discoScenarios() []scenario {
	groups := onBoth("disco/groups", discoGroups)
	if runtime.GOOS == "windows" {
		return groups
	}
	return append(groups, []scenario{{"disco/message", "", discoMessages}, {"disco/tasks", "", discoTasks}, {"disco/http", "", discoFile}}...)
}

// A staged plugin stands for workers of two stages. Each task of the first has an output, and a task of
// the second begins when it is to.
type staged struct {
	output func(i int) json.RawMessage

	mu          sync.Mutex
	ended, next time.Time // of the first stage the last, and of the next the first
	made        int
}

// ReadsInputs implements plugins.InputReader, as the plugin disco does.
func (*staged) ReadsInputs() {}

// Run implements plugins.Plugin.
func (s *staged) Run(_ context.Context, t *plugins.Task) plan.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(t.Name, "map") {
		s.made++
		s.ended = time.Now()
		return plan.Result{Status: plan.Succeeded, Output: s.output(s.made)}
	}
	if s.next.IsZero() {
		s.next = time.Now()
	}
	return plan.Result{Status: plan.Succeeded}
}

// discoGroups compares the time between two stages, of tasks with outputs of many labels that are
// grouped by label, with that between the items of a foreach and the items of one over their outputs.
func discoGroups(m *measurement) {
	n := size(500, 50)
	if m.on == onMongoDB {
		n = size(200, 50)
	}
	index := func(i int) json.RawMessage {
		labels := make([][2]int, n)
		for label := range labels {
			labels[label] = [2]int{label, 100}
		}
		return must(json.Marshal(map[string]any{"labels": labels, "url": fmt.Sprintf("dir://node%d/disco/node%d/5c/count@6b0a689f63a83730eb0038c2/index/map-%d.results", i%4, i%4, i)}))
	}
	list := must(json.Marshal(make([]int, n)))
	between := func(output func(int) json.RawMessage, next plan.Foreach) (gap, grown float64) {
		db := m.open()
		s := &staged{output: output}
		spec := plan.New("stages")
		spec.Add(plan.TaskSpec{Name: "map", Plugin: "disco", Foreach: &plan.Foreach{List: list}})
		spec.Add(plan.TaskSpec{Name: "reduce", Plugin: "disco", Foreach: &next, Needs: []string{"map"}})
		p, _ := m.submitted(db, spec)
		before := db.bytes()
		check(must(den.New(db, den.Config{Plugins: named{"disco": s}.registry(), Name: "bench", Threads: 8, Plan: p.ID})).Run(m.Context()))
		m.succeeded(db, p.ID, 2*n)
		check(db.Close()) // which leaves no log beside the file
		grown = db.bytes() - before
		check(db.drop())
		return milliseconds(s.next.Sub(s.ended)), grown
	}
	m.repeat(func() {
		gap, grown := between(index, plan.Foreach{Value: "needs.map", Group: "group_label"})
		peer, small := between(func(i int) json.RawMessage { return must(json.Marshal(fmt.Sprint("file", i))) }, plan.Foreach{Value: "needs.map"})
		m.pair("between", "ms", gap, "a foreach over a list", peer)
		if m.on == onSQLite {
			m.pair("a-file", "bytes", max(0, grown-small)/float64(n*n), "40 bytes", 40)
		}
		m.note("%d tasks with %d labels each, 8 threads", n, n)
	})
}

// bytes is how large the files of a database on SQLite are.
func (d *database) bytes() (n float64) {
	path, is := strings.CutPrefix(d.uri, "sqlite:")
	if !is {
		return 0
	}
	for _, name := range must(filepath.Glob(path + "*")) {
		n += float64(must(os.Stat(name)).Size())
	}
	return n
}

// asksVariable makes this program a process that writes so many lines, and reads an answer to each.
// They are messages if ofWorker says so.
const (
	asksVariable = "SLUICE_BENCH_ASKS"
	ofWorker     = "worker:"
)

// asksMain is this program as such a process. It does not return then.
func asksMain() {
	text := os.Getenv(asksVariable)
	if text == "" {
		return
	}
	message := "a line and an answer\n"
	count, isWorker := strings.CutPrefix(text, ofWorker)
	if isWorker {
		message = "PING 2 \"\"\n"
	}
	n, _ := strconv.Atoi(count)
	in := bufio.NewReader(os.Stdin)
	for range n {
		_, _ = io.WriteString(os.Stdout, message)
		if _, err := in.ReadString('\n'); err != nil {
			os.Exit(1)
		}
	}
	if isWorker {
		_, _ = io.WriteString(os.Stdout, "DONE 2 \"\"\n")
		_, _ = in.ReadString('\n')
	}
	os.Exit(0)
}

// kept is where outputs go that nobody needs.
type kept struct{}

func (kept) Output(int64, string, int64) error { return nil }
func (kept) Done() error                       { return nil }

// discoMessages compares a message of a worker of Disco and its reply with a line and its answer
// between two processes.
func discoMessages(m *measurement) {
	n, program := size(50_000, 2_000), must(os.Executable())
	converse := func(asks string, talk func(*runner.Dialogue)) float64 {
		var took time.Duration
		_ = must(runner.Converse(m.Context(), runner.Command{Args: []string{program}, Env: append(os.Environ(), asksVariable+"="+asks), Grace: -1}, func(d *runner.Dialogue) {
			began := time.Now()
			talk(d)
			took = time.Since(began)
		}))
		return float64(took.Microseconds()) / float64(n)
	}
	m.repeat(func() {
		ours := converse(ofWorker+strconv.Itoa(n), func(d *runner.Dialogue) {
			s := host.Session{Inputs: host.NewList(), Outputs: kept{}}
			if e := s.Run(m.Context(), d); e.End != host.Done {
				failf("the worker ended as %v: %s", e.End, e.Detail)
			}
		})
		bare := converse(strconv.Itoa(n), func(d *runner.Dialogue) {
			in := bufio.NewReader(d)
			for range n {
				if _, err := in.ReadString('\n'); err != nil {
					failf("the lines ended: %w", err)
				}
				_ = must(d.Write([]byte("ok\n")))
			}
		})
		m.pair("message", "µs", ours, "a line and its answer", bare)
		m.note("%d of them, with the start of the process", n)
	})
}

// discoWorker says what it must, also if nobody answers.
const discoWorker = `#!/bin/sh
printf 'WORKER 28 {"version":"1.1","pid":1234}\nTASK 2 ""\nDONE 2 ""\n'
read -r a
exit 0
`

// discoTasks compares tasks of a worker with commands that start the same program.
func discoTasks(m *measurement) {
	n := size(2000, 100)
	run := func(keys string) float64 {
		dir := m.newFile("plan.yaml", planFile(fanOut(n), keys))
		check(os.WriteFile(filepath.Join(dir, "worker"), []byte(discoWorker), 0o700))
		m.Setenv("XDG_STATE_HOME", dir) // where the job home is
		return milliseconds(m.planIn(dir, "run", "--threads", fmt.Sprint(execJobs)).took)
	}
	m.repeat(func() {
		m.pair("tasks", "ms", run("plugin: disco, params: {worker: worker}"), "exec", run("run: [./worker]"))
		m.note("%d tasks and more, by sluice plan run as a whole process, %d threads", n, execJobs)
	})
}

// discoFile compares a large output over HTTP with http.FileServer.
func discoFile(m *measurement) {
	length := int64(size(1<<30, 16<<20))
	dir := m.newFile("worker", []byte("#!/bin/sh\nprintf 'OUTPUT 11 [0,\"big\",1]\\nDONE 2 \"\"\\n'\nread -r a\n"))
	data := must(disco.OpenData(filepath.Join(dir, "data"), "localhost", "bench"))
	home := must(data.Open("bench@1", ""))
	defer home.Close()
	check(os.WriteFile(filepath.Join(home.Path, "big"), nil, 0o600))
	check(os.Truncate(filepath.Join(home.Path, "big"), length))
	o := must((&disco.Attempt{Worker: filepath.Join(dir, "worker"), Env: os.Environ(), Home: home, Inputs: host.NewList()}).Run(m.Context()))
	if len(o.Outputs) != 1 || o.Outputs[0].Size != length {
		failf("the worker ended as %v with %v: %s", o.End, o.Outputs, o.Detail)
	}
	ours, bare := httptest.NewServer(data.Handler()), httptest.NewServer(http.FileServer(http.Dir(home.Path)))
	defer bare.Close()
	defer ours.Close()
	mebibytes := float64(length) / (1 << 20)
	rate := func(url string) float64 {
		settle()
		began := time.Now()
		answer := must(http.Get(url))
		defer answer.Body.Close()
		if got := must(io.Copy(io.Discard, answer.Body)); got != length {
			failf("%s has %d bytes, and answers with %d: %s", url, length, got, answer.Status)
		}
		return mebibytes / time.Since(began).Seconds()
	}
	heap := func() float64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return float64(s[0].Value.Uint64()) / (1 << 20)
	}
	m.repeat(func() {
		settle()
		before := heap()
		fast := rate(ours.URL + o.Outputs[0].Location[len("disco://localhost"):])
		m.pair("memory", "MiB", max(0, heap()-before), "the file", mebibytes)
		m.pair("output", "MiB/s", fast, "http.FileServer", rate(bare.URL+"/big"))
		m.note("one reader in this process; memory is of the server and its reader")
	})
}
