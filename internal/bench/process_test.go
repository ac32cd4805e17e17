package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/dtr"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	execplugin "github.com/seed-1177d267/sluice/plugins/exec"
)

// The scenarios of this file run the sluice binary, which make bench builds.
var sluice = func() string {
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", "sluice"))
	check(err)
	return path
}()

// A process is a program that a scenario started.
type process struct {
	*exec.Cmd
	in   io.WriteCloser // of a part of this program
	out  *bufio.Reader  // of such a part, or of a server
	said bytes.Buffer   // output of any other program
	url  string         // of the API of a server
}

// start starts a program whose output is kept in case it fails.
func (m *measurement) start(dir, program string, args ...string) *process {
	p := &process{Cmd: exec.CommandContext(m.Context(), program, args...)}
	p.Dir, p.Stdout, p.Stderr = dir, &p.said, &p.said
	check(p.Start())
	return p
}

// await waits for the end of the process, with 0 or the code that is given.
func (p *process) await(code int) {
	if err := p.Wait(); err != nil && p.ProcessState.ExitCode() != code {
		text := p.said.String()
		failf("%s: %w: %s", strings.Join(p.Args, " "), err, text[max(0, len(text)-1000):])
	}
}

// stop ends the process as Ctrl-C does, or a part of this program by the end of its input, unless it has ended.
func (p *process) stop() {
	if p.ProcessState != nil {
		return
	}
	if p.in != nil {
		_ = p.in.Close() // it may have ended already
	} else {
		_ = p.Process.Signal(os.Interrupt)
	}
	p.await(130)
}

// used is the processor time, in milliseconds, of a process that has ended and of those that it
// waited for.
func (p *process) used() float64 {
	return milliseconds(p.ProcessState.UserTime() + p.ProcessState.SystemTime())
}

// mostMemory returns how much memory, in MiB, a running process had at most; 0 where the system has
// no /proc.
func (p *process) mostMemory() float64 {
	kib, _ := strconv.Atoi(strings.TrimSuffix(after(fmt.Sprintf("/proc/%d/status", p.Process.Pid), "VmHWM"), " kB"))
	return float64(kib) / 1024
}

// timed runs a program that must end with 0.
func (m *measurement) timed(dir, program string, args ...string) drive {
	settle()
	began := time.Now()
	p := m.start(dir, program, args...)
	p.await(0)
	return drive{took: time.Since(began), processor: p.ProcessState.UserTime() + p.ProcessState.SystemTime()}
}

// newFile writes a file into a folder of its own.
func (m *measurement) newFile(name string, text []byte) (dir string) {
	dir = m.TempDir()
	check(os.WriteFile(filepath.Join(dir, name), text, 0o700))
	return dir
}

// execJobs is how many commands run at once, here as there.
const execJobs = 8

// planIn runs a command of the binary with the plan file of a folder, and with a new database there.
func (m *measurement) planIn(dir, command string, more ...string) drive {
	args := append([]string{"plan", command, filepath.Join(dir, "plan.yaml"), "--store", "sqlite:" + filepath.Join(dir, "sluice.db")}, more...)
	return m.timed(dir, sluice, args...)
}

// planFile writes the graph as a plan file whose tasks have their needs and the given keys.
func planFile(g *graph, keys string) []byte {
	var out bytes.Buffer
	out.WriteString("plan: bench\ntasks:\n")
	for i, parents := range g.needs {
		needs := ""
		if len(parents) > 0 {
			needs = ", needs: [" + taskNames(parents, ", ") + "]"
		}
		fmt.Fprintf(&out, "  %s: {%s%s}\n", taskName(i), keys, needs)
	}
	return out.Bytes()
}

// execScenarios run commands that do nothing, by sluice plan run as a whole process and by ninja.
func execScenarios() (all []scenario) {
	for _, s := range []struct {
		shape string
		make  func(n int) *graph
	}{{"fan-out", fanOut}, {"chain", chain}, {"layered", func(n int) *graph { return layered(n, 40) }}} {
		all = append(all, scenario{"exec/" + s.shape, "", func(m *measurement) { againstNinja(m, s.make(size(2000, 100))) }})
	}
	return all
}

// againstNinja runs the graph by both, in turn, each time from nothing: a new database for one, no
// log for the other. For a line of plain words Sluice starts the program itself, as for a list of
// arguments, whereas ninja starts a shell. The other line needs a shell in both.
func againstNinja(m *measurement, g *graph) {
	command := must(exec.LookPath("true"))
	m.repeat(func() {
		var used []string
		for _, w := range []struct{ what, run, line string }{{"shell", "'true'", "true"}, {"plain", command, command}} {
			ours := m.planIn(m.newFile("plan.yaml", planFile(g, "run: "+w.run)), "run", "--threads", fmt.Sprint(execJobs))
			theirs := m.runNinja(g, w.line)
			m.pair(w.what, "ms", milliseconds(ours.took), fmt.Sprintf("ninja -j%d", execJobs), milliseconds(theirs.took))
			used = append(used, fmt.Sprintf("%s %.0f, ninja %.0f", w.what, milliseconds(ours.processor), milliseconds(theirs.processor)))
		}
		m.note("%d tasks, %d needs; ms of processor with the commands: %s", g.tasks(), g.edges(), strings.Join(used, "; "))
	})
}

// runNinja returns how long ninja takes for the graph, nothing if it is not installed. The outputs
// of its edges are never made, so that it runs all of them.
func (m *measurement) runNinja(g *graph, command string) drive {
	ninja, err := exec.LookPath("ninja")
	if err != nil {
		return drive{}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "rule run\n  command = %s\n", command)
	for i, parents := range g.needs {
		fmt.Fprintf(&out, "build %s: run %s\n", taskName(i), taskNames(parents, " "))
	}
	return m.timed(m.newFile("build.ninja", out.Bytes()), ninja, fmt.Sprintf("-j%d", execJobs))
}

// runners claims tasks as a node does and has sluice runner run each. It measures the time from a
// claim to the first command of the task's shell.
func runners(m *measurement) {
	n := size(100, 3)
	m.repeat(func() {
		ctx, db := m.Context(), m.open()
		defer db.close()
		s := plan.New("runner")
		for i := range n {
			s.Add(plan.TaskSpec{Name: taskName(i), Plugin: execplugin.Name, Params: json.RawMessage(`{"run": "date +%s%N > $SLUICE_OUTPUT"}`)})
		}
		p, host := must(submit.Submit(ctx, db, s, false)), must(os.Hostname())
		me := plan.Instance{
			ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: plan.NodeName(host), Host: host, Process: plan.Process{PID: os.Getpid()}, Lease: time.Hour,
			Plugins: []string{execplugin.Name},
		}
		check(db.Register(ctx, me))
		all := &dtr.Runners{
			Executable: sluice, Node: me.Node, Default: dtr.Sluice, Args: []string{"--allow", execplugin.Name}, Env: []string{"SLUICE_STORE=" + db.uri},
		}
		var starts, bare []float64
		for range n {
			turned, err := db.Turn(ctx, protocol.Turn{Instance: me.ID, Slots: 1, Plugins: me.Plugins, Plan: p.ID})
			if err != nil || len(turned.Claimed) != 1 {
				check(errors.Join(err, fmt.Errorf("%d tasks were claimed", len(turned.Claimed))))
			}
			c, claimed := &turned.Claimed[0], time.Now()
			check(all.Run(ctx, c, plan.InstanceID{ID: plan.NewID(claimed)}, nil))
			began := must(strconv.ParseInt(strings.TrimSpace(string(must(db.Task(ctx, c.Task)).Output)), 10, 64)) // as the task printed it
			starts = append(starts, milliseconds(time.Unix(0, began).Sub(claimed)))
			bare = append(bare, milliseconds(m.timed("", sluice, "version").took))
		}
		m.pair("start-p50", "ms", median(starts), "sluice version", median(bare))
		m.pair("start-p99", "ms", quantile(starts, 0.99), "sluice version", quantile(bare, 0.99))
		m.note("%d tasks, one after the other", n)
	})
}

// watched submits a plan of n no-op tasks to a new database, and calls do with that.
func (m *measurement) watched(n int, do func(*database)) {
	db := m.open()
	defer db.close()
	m.submitted(db, flat(n).spec("watched", "demo"))
	do(db)
}

// beside runs the watched plan in sluice worker, and returns the processor time of both processes.
// The worker ends after watch.
func (m *measurement) beside(db *database, watcher *process, watch func()) (watching, working float64) {
	defer watcher.stop()
	node := m.start("", sluice, "worker", "--allow", "demo", "--threads", strconv.Itoa(mostThreads), "--store", db.uri)
	defer node.stop()
	watch()
	node.stop()
	watcher.stop()
	return watcher.used(), node.used()
}

// waiting compares a process that waits for a plan with the one that runs it.
func waiting(m *measurement) {
	n := size(60_000, 500)
	m.repeat(func() {
		m.watched(n, func(db *database) {
			wait := m.start("", sluice, "plan", "wait", "watched", "--store", db.uri)
			waited, ran := m.beside(db, wait, func() { wait.await(0) })
			m.pair("plan-wait", "ms", waited, "sluice worker", ran)
			m.note("processor time, %d no-op tasks, %d threads", n, mostThreads)
		})
	})
}

// watchingEvents compares a server that tells a listener of a plan's counts with the node that runs the plan.
func watchingEvents(m *measurement) {
	n := size(60_000, 500)
	m.repeat(func() {
		m.watched(n, func(db *database) {
			s := m.serve(db)
			told, ran := m.beside(db, s, func() {
				check(fetch(http.DefaultClient, m.get(s.url+"/plans/watched/events?counts=true"))) // it ends with the plan
			})
			m.pair("server", "ms", told, "sluice worker", ran)
			m.note("processor time, %d no-op tasks, %d threads, one listener; the server's start counts", n, mostThreads)
		})
	})
}

// watchingRun compares runs of the same plan, which differ in what they show of it. The one that is quiet reads the plan's counts alone.
func watchingRun(m *measurement) {
	n := size(60_000, 500)
	run := func(more ...string) (used float64) {
		m.watched(n, func(db *database) {
			args := append([]string{"plan", "run", "--resume", "watched", "--threads", strconv.Itoa(mostThreads), "--store", db.uri}, more...)
			used = milliseconds(m.timed("", sluice, args...).processor)
		})
		return used
	}
	m.repeat(func() {
		m.pair("plan-run", "ms", run(), "--quiet", run("--quiet"))
		m.note("processor time, redirected, %d no-op tasks, %d threads; the node is in the process", n, mostThreads)
	})
}

func largeScenarios() []scenario {
	return []scenario{
		{"large/sqlite/submit", onSQLite, largeSubmit},
		{"large/sqlite/flat", onSQLite, largeCost(flat)},
		{"large/sqlite/layered", onSQLite, largeCost(func(n int) *graph { return layered(n, 100) })},
		{"large/sqlite/memory", onSQLite, largeMemory},
	}
}

// largeSubmit submits a large plan from memory, and from its file by sluice plan submit as a whole
// process.
func largeSubmit(m *measurement) {
	g := layers(size(largeTasks, 3000))
	m.repeat(func() {
		db := m.open()
		_, inside := m.submitted(db, g.spec("large", "noop"))
		db.close()
		raw, took := m.bareInserts(g)
		raw.close()
		bare := took.Seconds()
		m.pair("inside", "s", inside.Seconds(), "bare inserts", bare)
		m.pair("plan-submit", "s", m.planIn(m.newFile("plan.yaml", planFile(g, "run: ':'")), "submit").took.Seconds(), "bare inserts", bare)
		m.note("%d tasks, %d needs", g.tasks(), g.edges())
	})
}

// largeMemory compares the memory of sluice den while it runs a large plan with that for a small
// one.
func largeMemory(m *measurement) {
	ofPlan := func(g *graph) float64 {
		db := m.open()
		defer db.close()
		spec := g.spec("large", "demo")
		for i := range spec.Tasks {
			spec.Tasks[i].Params = map[string]any{"return": smallOutput}
		}
		p, _ := m.submitted(db, spec)
		node := m.start("", sluice, "den", "--threads", strconv.Itoa(mostThreads), "--store", db.uri)
		defer node.stop()
		for !must(db.Plan(m.Context(), p.ID)).State.Ended() {
			time.Sleep(50 * time.Millisecond)
		}
		m.succeeded(db, p.ID, g.tasks())
		return node.mostMemory()
	}
	small, large := layers(size(1000, 300)), layers(size(largeTasks, 3000))
	m.repeat(func() {
		m.pair("den", "MiB", ofPlan(large), fmt.Sprintf("for %d tasks", small.tasks()), ofPlan(small))
		m.note("VmHWM of sluice den --threads %d; %d tasks, %d needs", mostThreads, large.tasks(), large.edges())
	})
}

func servedScenarios() []scenario {
	return []scenario{
		{"served/get", onSQLite, servedGets},
		{"served/submit/sqlite", onSQLite, servedSubmit},
		{"served/submit/mongodb", onMongoDB, servedSubmit},
		{"served/events", onSQLite, servedEvents},
	}
}

var servedAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve starts a server over a database, on a port of its own.
func (m *measurement) serve(db *database) *process {
	p := &process{Cmd: exec.CommandContext(m.Context(), sluice, "dci", "--store", db.uri, "--listen", "127.0.0.1:0")}
	p.out = bufio.NewReader(must(p.StderrPipe()))
	check(p.Start())
	line, err := p.out.ReadString('\n')
	at := servedAt.FindString(line)
	if at == "" {
		failf("sluice dci: %w: %s", errors.Join(err, p.Process.Kill(), p.Wait()), line)
	}
	go func() { _, _ = io.Copy(&p.said, p.out) }() // it ends with the process
	p.url = at + api.Root
	return p
}

// serving runs do with a server over a new database.
func (m *measurement) serving(do func(*database, *process)) {
	db := m.open()
	defer db.close()
	s := m.serve(db)
	defer s.stop()
	do(db, s)
}

func (m *measurement) get(url string) *http.Request {
	return must(http.NewRequestWithContext(m.Context(), http.MethodGet, url, nil))
}

// fetch makes a request and reads its answer.
func fetch(client *http.Client, r *http.Request) error {
	a, err := client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if a.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", r.Method, r.URL, a.Status, text)
	}
	return err
}

// servedGets compares requests for a plan with requests to a bare server of the same answer, in a
// process of the clients.
func servedGets(m *measurement) {
	const getters = 8
	m.serving(func(db *database, s *process) {
		g, n := layered(size(10_000, 500), 100), size(10_000, 200)
		p, _ := m.submitted(db, g.spec("nightly", "demo"))
		url := s.url + "/plans/" + p.ID.String()
		a := must(http.DefaultClient.Do(m.get(url)))
		text := must(io.ReadAll(a.Body))
		check(a.Body.Close())
		bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
		defer bare.Close()
		rate := func(url string) float64 {
			return perSecond(n, atOnce(getters, n, func(client *http.Client) error { return fetch(client, m.get(url)) }))
		}
		m.repeat(func() { m.pair("requests", "requests/s", rate(url), "bare net/http", rate(bare.URL)) })
		m.note("GET %s/plans/ID of %d tasks, %d connections; the clients are on the same cores", api.Root, g.tasks(), getters)
	})
}

// servedSubmit submits a large plan in one request.
func servedSubmit(m *measurement) {
	g := layers(size(largeTasks, 3000))
	file := planFile(g, "plugin: demo")
	m.repeat(func() {
		m.serving(func(_ *database, s *process) {
			r := must(http.NewRequestWithContext(m.Context(), http.MethodPost, s.url+"/plans", bytes.NewReader(file)))
			r.Header.Set("Content-Type", "application/yaml")
			start := time.Now()
			check(fetch(http.DefaultClient, r))
			took := time.Since(start)
			raw, bare := m.bareInserts(g)
			raw.close()
			m.pair("request", "s", took.Seconds(), "bare inserts", bare.Seconds())
			m.pair("memory", "MiB", s.mostMemory(), "the plan file", float64(len(file))/(1<<20))
			m.note("POST %s/plans, %d tasks, %d needs; memory is the server's VmHWM", api.Root, g.tasks(), g.edges())
		})
	})
}

// servedEvents measures the time from a change until the last of many listeners has seen it. The peer
// is one listener alone.
func servedEvents(m *measurement) {
	n, changes := size(1000, 50), size(50, 3)
	m.serving(func(db *database, s *process) {
		m.repeat(func() {
			alone, all := m.seen(db, s.url+"/events", 1, changes), m.seen(db, s.url+"/events", n, changes)
			m.pair("slowest", "ms", quantile(all, 1), "one listener", quantile(alone, 1))
			m.pair("median", "ms", median(all), "one listener", median(alone))
		})
		m.note("%d listeners on the same cores, %d changes", n, changes)
	})
}

// seen makes changes, and returns how many milliseconds after each all of n listeners have seen it.
func (m *measurement) seen(db *database, url string, n, changes int) (waits []float64) {
	ctx, stop := context.WithCancel(m.Context())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	names := make(chan string, 100*n) // a name for each listener that has seen it
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for range n {
		a := must(client.Do(m.get(url).WithContext(ctx)))
		in := bufio.NewScanner(a.Body)
		for in.Scan() && !strings.HasPrefix(in.Text(), "id:") { // from then on it misses nothing
		}
		wg.Go(func() {
			defer a.Body.Close()
			last := "" // the same change may come twice
			for in.Scan() {
				var c api.Change
				if data, ok := strings.CutPrefix(in.Text(), "data: "); ok && json.Unmarshal([]byte(data), &c) == nil && c.Name != last {
					last = c.Name
					names <- c.Name
				}
			}
		})
	}
	for i := range changes {
		id := plan.PlanID{ID: plan.NewID(time.Now())}
		name := fmt.Sprintf("seen-%d-%s", i, id)
		_ = must(db.CreatePlan(ctx, plan.Plan{ID: id, Name: name}))
		start := time.Now()
		late := time.After(10 * time.Second)
		for left := n; left > 0; {
			select {
			case got := <-names:
				if got == name {
					left--
				}
			case <-late:
				failf("%d of %d listeners did not see a change within 10 s", left, n)
			}
		}
		waits = append(waits, milliseconds(time.Since(start)))
	}
	return waits
}
