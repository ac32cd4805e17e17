package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"time"

	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/plugins/disco"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

func discoScenarios() []scenario {
	if runtime.GOOS == "windows" {
		return nil
	}
	return []scenario{
		{"disco/message", "a message of a worker of Disco and its reply, against a line and its answer between two processes", "", discoMessages},
		{"disco/tasks", "tasks of a worker that says WORKER, TASK and DONE, against commands that start the same program", "", discoTasks},
		{"disco/http", "a large output over HTTP, against http.FileServer", "", discoFile},
	}
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
	if len(text) > len(ofWorker) && text[:len(ofWorker)] == ofWorker {
		message, text = "PING 2 \"\"\n", text[len(ofWorker):]
	}
	n, _ := strconv.Atoi(text)
	in := bufio.NewReader(os.Stdin)
	for range n {
		_, _ = io.WriteString(os.Stdout, message)
		if _, err := in.ReadString('\n'); err != nil {
			os.Exit(1)
		}
	}
	if message[0] == 'P' {
		_, _ = io.WriteString(os.Stdout, "DONE 2 \"\"\n")
		_, _ = in.ReadString('\n')
	}
	os.Exit(0)
}

// kept is where outputs go that nobody needs.
type kept struct{}

func (kept) Output(int64, string, int64) error { return nil }
func (kept) Done() error                       { return nil }

func discoMessages(ctx context.Context, t *trial) {
	n := t.size(50_000, 2_000)
	program := must(os.Executable())
	converse := func(asks string, talk func(*runner.Dialogue)) float64 {
		var took time.Duration
		_ = must(runner.Converse(ctx, runner.Command{Args: []string{program}, Env: append(os.Environ(), asksVariable+"="+asks), Grace: -1}, func(d *runner.Dialogue) {
			began := time.Now()
			talk(d)
			took = time.Since(began)
		}))
		return float64(took.Microseconds()) / float64(n)
	}
	t.again(5, func() {
		t.sample("host", converse(ofWorker+strconv.Itoa(n), func(d *runner.Dialogue) {
			s := host.Session{Inputs: host.NewList(), Outputs: kept{}}
			if e := s.Run(ctx, d); e.End != host.Done {
				failf("the worker ended as %v: %s", e.End, e.Detail)
			}
		}))
		t.sample("bare", converse(strconv.Itoa(n), func(d *runner.Dialogue) {
			in := bufio.NewReader(d)
			for range n {
				if _, err := in.ReadString('\n'); err != nil {
					failf("the lines ended: %w", err)
				}
				_ = must(d.Write([]byte("ok\n")))
			}
		}))
	})
	t.line("host", "bare", result{What: "message and reply", Unit: "µs", Peer: "a line and its answer", Note: fmt.Sprintf("%d of them, with the start of the process", n)})
}

// discoWorker says what it must, also if nobody answers.
const discoWorker = `#!/bin/sh
printf 'WORKER 28 {"version":"1.1","pid":1234}\nTASK 2 ""\nDONE 2 ""\n'
read -r a
exit 0
`

func discoTasks(ctx context.Context, t *trial) {
	n := t.size(2000, 100)
	binary := must(t.binary())
	run := func(keys string) drive {
		dir := t.newFile("plan.yaml", planFile(fanOut(n), keys))
		defer os.RemoveAll(dir)
		check(os.WriteFile(filepath.Join(dir, "worker"), []byte(discoWorker), 0o700))
		check(os.Setenv("XDG_STATE_HOME", dir)) // where the job home is
		return timed(ctx, dir, binary, "plan", "run", filepath.Join(dir, "plan.yaml"), "--threads", fmt.Sprint(execJobs), "--store", "sqlite:"+filepath.Join(dir, "sluice.db"))
	}
	t.again(3, func() {
		t.sample("disco", milliseconds(run("plugin: disco, params: {worker: worker}").took))
		t.sample("exec", milliseconds(run("run: [./worker]").took))
	})
	t.line("disco", "exec", result{What: "tasks of a worker", Unit: "ms", Peer: "exec", Note: fmt.Sprintf("%d tasks and more, by sluice plan run as a whole process, %d threads; %s", n, execJobs, onSQLite.durability())})
}

func discoFile(ctx context.Context, t *trial) {
	size := int64(t.size(1<<30, 16<<20))
	dir := t.newFile("worker", []byte("#!/bin/sh\nprintf 'OUTPUT 11 [0,\"big\",1]\\nDONE 2 \"\"\\n'\nread -r a\n"))
	defer os.RemoveAll(dir)
	check(os.Chmod(filepath.Join(dir, "worker"), 0o700))
	data := must(disco.OpenData(filepath.Join(dir, "data"), "localhost", "bench"))
	home := must(data.Open("bench@1", ""))
	defer home.Close()
	check(os.WriteFile(filepath.Join(home.Path, "big"), nil, 0o600))
	check(os.Truncate(filepath.Join(home.Path, "big"), size))
	o := must((&disco.Attempt{Worker: filepath.Join(dir, "worker"), Env: os.Environ(), Home: home, Inputs: host.NewList()}).Run(ctx))
	if len(o.Outputs) != 1 || o.Outputs[0].Size != size {
		failf("the worker ended as %v with %v: %s", o.End, o.Outputs, o.Detail)
	}
	ours := httptest.NewServer(data.Handler())
	defer ours.Close()
	bare := httptest.NewServer(nethttp.FileServer(nethttp.Dir(home.Path)))
	defer bare.Close()
	path := o.Outputs[0].Location[len("disco://localhost"):]
	rate := func(url string) float64 {
		settle()
		began := time.Now()
		answer := must(nethttp.Get(url))
		defer answer.Body.Close()
		if got := must(io.Copy(io.Discard, answer.Body)); got != size {
			failf("%s has %d bytes, and answers with %d: %s", url, size, got, answer.Status)
		}
		return float64(size) / (1 << 20) / time.Since(began).Seconds()
	}
	heap := func() float64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return float64(s[0].Value.Uint64()) / (1 << 20)
	}
	t.again(5, func() {
		settle()
		before := heap()
		t.sample("ours", rate(ours.URL+path))
		t.sample("memory", max(0, heap()-before))
		t.sample("bare", rate(bare.URL+"/big"))
	})
	t.line("ours", "bare", result{What: "an output over HTTP", Unit: "MiB/s", Peer: "http.FileServer", Note: fmt.Sprintf("a file of %d MiB, one reader in this process", size>>20)})
	t.add(result{What: "more memory than before", Value: slices.Max(t.samples["memory"]), Unit: "MiB", Note: "of the server and its reader"})
}
