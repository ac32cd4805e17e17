//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed-1177d267/sluice/internal/jobpack"
)

// A worker of Disco that counts words in four stages. A task holds before it reads its inputs until its
// stage is let go.
const heldWorker = `#!/usr/bin/env python3
import collections, os, sys, time
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import disco

def hold(task):
    gate = os.environ["GATE"] + "/" + task["stage"]
    open("%s-%s-%d" % (gate, task["host"], task["taskid"]), "w").close()
    while not os.path.exists(gate):
        time.sleep(0.02)

def count(task):
    hold(task)
    parts = collections.defaultdict(collections.Counter)
    for _, lines in disco.inputs(task):
        for line in b"".join(lines).decode().split("\n"):
            for word in filter(None, line.split(",")):
                word, _, n = word.partition(" ")
                parts[0 if task["stage"] == "total" else ord(word[0]) % 4][word] += int(n or 1)
    for label, counts in sorted(parts.items()):
        yield label, "".join("%s %d\n" % of for of in sorted(counts.items())).encode()

disco.run(map=count, map_shuffle=count, reduce=count, total=count)
`

// TestAJobOfDiscoOutlivesItsNodes runs a job on two nodes that share no folder. In each stage a node is
// killed that has a task of it, and started again.
func TestAJobOfDiscoOutlivesItsNodes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the worker is in Python")
	}
	library, err := os.ReadFile("../../examples/disco/disco.py")
	if err != nil {
		t.Fatal(err)
	}
	onEachStore(t, func(t *testing.T, s *site) {
		t.Parallel() // each death takes a lease
		gate := filepath.Join(s.dir, "gate")
		if err := os.Mkdir(gate, 0o700); err != nil {
			t.Fatal(err)
		}
		hosts := []string{"127.0.0.1", "127.0.0.2"}
		port := freeOn(t, hosts)
		nodes := map[string]*daemon{}
		start := func(host string) {
			nodes[host] = s.daemon([]string{"PYTHONDONTWRITEBYTECODE=1"}, "--name", "n"+host, "--allow", "disco", "--lease", "3s",
				"--disco-data", filepath.Join(s.dir, host), "--disco-host", host, "--disco-listen", net.JoinHostPort(host, port))
			s.says(nodes[host], "node started")
		}
		stages := []string{"map", "map_shuffle", "reduce", "total"} // goworker knows the first two by these names
		job := jobpack.Pack{Version: 2, Prefix: "count", Worker: "bin/count", Envs: map[string]string{"GATE": gate}, MaxCores: 3}
		for i, grouping := range []string{"split", "group_node", "group_label", "group_all"} {
			job.Stages = append(job.Stages, jobpack.Stage{Name: stages[i], Grouping: grouping})
		}
		for range 6 {
			job.Inputs = append(job.Inputs, jobpack.Input{URLs: []string{"raw://apple,bean,corn,apple,dill"}})
		}
		pack, err := jobpack.Make(&job, fstest.MapFS{"bin/count": {Data: []byte(heldWorker)}, "bin/disco.py": {Data: library}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(s.dir, "count.pack")
		if err := os.WriteFile(file, pack, 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(s.store, "sqlite:") {
			s.must("disco", "submit", file)
		} else {
			answer := post(t, s.server()+"/disco/job/new", pack)
			if !strings.HasPrefix(answer, `["ok","count@`) {
				t.Fatalf("the job is answered %s", answer)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		for _, host := range hosts {
			start(host)
		}
		for _, stage := range stages {
			holder := ""
			s.until("a task of "+stage+" holds", func() bool {
				held, _ := filepath.Glob(filepath.Join(gate, stage+"-*"))
				if len(held) > 0 {
					holder = strings.Split(filepath.Base(held[0]), "-")[1]
				}
				return holder != ""
			})
			if err := nodes[holder].Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-nodes[holder].done
			start(holder)
			if err := os.WriteFile(filepath.Join(gate, stage), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, code := s.sluice("plan", "wait", "count"); code != 0 {
			t.Fatalf("the job ended with %d\n%s\n%s", code, out, s.must("plan", "status", "count"))
		}
		var last struct{ Output [][][]any }
		if err := json.Unmarshal([]byte(s.must("task", "show", "count", "total", "-o", "json")), &last); err != nil {
			t.Fatal(err)
		}
		url := strings.TrimPrefix(fmt.Sprint(last.Output[0][0][1]), "disco://")
		host, path, _ := strings.Cut(url, "/")
		answer, err := http.Get("http://" + net.JoinHostPort(host, port) + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if got, err := io.ReadAll(answer.Body); string(got) != "apple 12\nbean 6\ncorn 6\ndill 6\n" || err != nil {
			t.Errorf("the result is %q, %v", got, err)
		}
	})
}

// freeOn returns a port that is free on all of the hosts.
func freeOn(t *testing.T, hosts []string) (port string) {
	t.Helper()
	for range 100 {
		port = "0"
		var open []net.Listener
		for _, host := range hosts {
			l, err := net.Listen("tcp", net.JoinHostPort(host, port))
			if err != nil {
				break
			}
			open = append(open, l)
			_, port, _ = net.SplitHostPort(l.Addr().String())
		}
		for _, l := range open {
			_ = l.Close()
		}
		if len(open) == len(hosts) {
			return port
		}
		if len(open) == 1 {
			t.Skip("this machine has one address of its own")
		}
	}
	t.Fatal("no port is free")
	return ""
}

func post(t *testing.T, url string, body []byte) string {
	t.Helper()
	answer, err := http.Post(url, "image/jpeg", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
