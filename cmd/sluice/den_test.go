//go:build unix

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/plan"
)

// A daemon is a running `sluice den` with its log.
type daemon struct {
	*exec.Cmd
	log  string // path
	done chan struct{}
}

func (s *site) daemon(env []string, args ...string) *daemon {
	s.Helper()
	c := s.command(append([]string{"den", "--threads", "2", "--allow", "exec"}, args...)...)
	c.Env = append(c.Env, env...)
	log, err := os.CreateTemp(s.dir, "daemon-*.log")
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	return s.runNode(c, log)
}

// runNode starts a node that logs to the file, and ends it with the test at the latest.
func (s *site) runNode(c *exec.Cmd, log *os.File) *daemon {
	s.Helper()
	d := &daemon{c, log.Name(), make(chan struct{})}
	d.Stdout, d.Stderr = log, log
	if err := d.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		_ = d.Wait()
		close(d.done)
	}()
	s.Cleanup(func() {
		_ = d.Process.Kill()
		<-d.done
	})
	return d
}

func (d *daemon) said() string {
	text, _ := os.ReadFile(d.log)
	return string(text)
}

// server starts a `sluice dci` on the store, and returns its URL.
func (s *site) server() string {
	s.Helper()
	log, err := os.CreateTemp(s.dir, "dci-*.log")
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	d := s.runNode(s.command("dci", "--listen", "127.0.0.1:0"), log)
	s.says(d, "/ui/\n")
	return regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(d.said())
}

// says waits until the log has the text.
func (s *site) says(d *daemon, text string) {
	s.Helper()
	if !polltest.Holds(patience, func() bool { return strings.Contains(d.said(), text) }) {
		s.Fatalf("the log has no %q:\n%s", text, d.said())
	}
}

// ends waits for the end and returns the exit code.
func (s *site) ends(d *daemon) int {
	s.Helper()
	select {
	case <-d.done:
	case <-time.After(patience):
		s.Fatalf("the node does not end; its log:\n%s", d.said())
	}
	return d.ProcessState.ExitCode()
}

type instance struct {
	Name, State string
	PID         int
	Runner      bool
	Version     string
	Age         float64 // seconds since it beat
}

func (s *site) nodes() (all []instance) {
	s.Helper()
	if err := json.Unmarshal([]byte(s.must("node", "list", "-o", "json")), &all); err != nil {
		s.Fatal(err)
	}
	return all
}

// beats waits until a process has beaten so many times from now on.
func (s *site) beats(pid, times int) {
	s.Helper()
	for range times {
		since := time.Now()
		s.until(fmt.Sprintf("process %d beats", pid), func() bool {
			asked := time.Now()
			return slices.ContainsFunc(s.nodes(), func(i instance) bool { return i.PID == pid && i.Age < asked.Sub(since).Seconds() })
		})
	}
}

// pause stops a process as Ctrl-Z does, and not while it writes to a SQLite file, which would keep everybody else from that.
func (s *site) pause(p *os.Process) {
	s.Helper()
	if !s.paused(p) {
		s.Fatalf("process %d has ended", p.Pid)
	}
}

// paused does what pause does, and reports whether the process was there.
func (s *site) paused(p *os.Process) bool {
	s.Helper()
	st, err := open.Open(s.Context(), s.store)
	if err != nil {
		s.Fatal(err)
	}
	defer st.Close()
	write := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(s.Context(), within)
		defer cancel()
		_, err := st.CreatePlan(ctx, plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "probe"})
		return err
	}
	for range 100 {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return false // it has ended
		}
		s.until("it stands still", func() bool { return still(p.Pid) })
		stopped := write(time.Second)
		if stopped == nil {
			return true
		}
		s.Logf("process %d is stopped at another instant: others cannot write (%v)", p.Pid, stopped)
		if err := p.Signal(syscall.SIGCONT); err != nil {
			s.Fatal(err)
		}
		if err := write(patience); err != nil { // it has ended its own write then
			s.Fatal(err)
		}
	}
	s.Fatalf("nothing can be written while process %d is stopped", p.Pid)
	return false
}

// still reports whether all threads of a process have stopped. A signal reaches them one after the other, and meanwhile another one may
// begin to write.
func still(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // only Linux has it
	return !slices.ContainsFunc(threads, func(thread string) bool {
		text, err := os.ReadFile(thread)
		_, state, _ := strings.Cut(string(text), ") ")
		return err == nil && !strings.HasPrefix(state, "T")
	})
}

func TestANodesNameBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		// If several start at once, one gets the name, and the others say which.
		const many = 4
		dens := make([]*daemon, many)
		for i := range dens {
			dens[i] = s.daemon(nil, "--name", "n1", "--lease", long) // nothing here waits for its end
		}
		logs := func() string {
			var all strings.Builder
			for i, d := range dens {
				fmt.Fprintf(&all, "node %d, process %d:\n%s", i, d.Process.Pid, d.said())
			}
			return all.String()
		}
		over := func() (n int) {
			for _, d := range dens {
				select {
				case <-d.done:
					n++
				default:
				}
			}
			return n
		}
		if !polltest.Holds(patience, func() bool { return over() >= many-1 }) {
			t.Fatalf("%d of %d ended, want all but one\n%s", over(), many, logs())
		}
		var first *daemon
		for _, d := range dens {
			select {
			case <-d.done:
			default:
				first = d
			}
		}
		if first == nil {
			t.Fatalf("none has the name\n%s", logs())
		}
		for _, d := range dens {
			if d == first {
				continue
			}
			if code := s.ends(d); code != 2 || !strings.Contains(d.said(), "a node named n1 runs already: process ") || !strings.Contains(d.said(), "another name with --name") {
				t.Errorf("ended with %d:\n%s", code, d.said())
			}
		}
		if all := s.nodes(); len(all) != 1 || all[0].PID != first.Process.Pid {
			t.Errorf("the nodes are %+v, want the one of process %d", all, first.Process.Pid)
		}

		file := filepath.Join(s.dir, "plan.yaml")
		if err := os.WriteFile(file, []byte("plan: long\ntasks:\n  a:\n    run: echo $SLUICE_ATTEMPT >> effects/a; [ $SLUICE_ATTEMPT != 1 ] || sleep 60\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.must("plan", "submit", file)
		began := func(attempts string) func() bool {
			return func() bool {
				text, _ := os.ReadFile(filepath.Join(s.dir, "effects", "a"))
				return string(text) == attempts
			}
		}
		s.until("the task begins", began("1\n"))

		// A new process follows a killed one at once, and its tasks run again. The next process
		// waits for a stopped one.
		_ = first.Process.Kill()
		<-first.done
		second := s.daemon(nil, "--name", "n1", "--lease", "6s")
		if !polltest.Holds(patience, began("1\n2\n")) { // long before the lease is over
			t.Fatalf("the task does not run again; the log:\n%s", second.said())
		}
		s.says(second, "rescued what an earlier process of this name had claimed")
		s.must("plan", "wait", "long", "--timeout", "5m")
		s.pause(second.Process)
		third := s.daemon(nil, "--name", "n1", "--lease", long)
		s.says(third, "waiting until it is known whether it lives")
		s.says(third, "node started")
		if err := second.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if code := s.ends(second); code != 2 || !strings.Contains(second.said(), "a node named n1 runs already") {
			t.Errorf("the one that was stopped ended with %d:\n%s", code, second.said())
		}
		_ = third.Process.Signal(syscall.SIGTERM)
		if code := s.ends(third); code != 0 {
			t.Errorf("the last one ended with %d:\n%s", code, third.said())
		}
		for _, wrong := range []string{"taken for dead", "start again", "result dropped", "refused by the store"} {
			if strings.Contains(third.said(), wrong) {
				t.Errorf("the last one says %q:\n%s", wrong, third.said())
			}
		}
	})
}

// A manager is a service manager's end of sd_notify.
type manager struct {
	*net.UnixConn
	mu    sync.Mutex
	heard []string
}

func (s *site) manager(name string) *manager {
	s.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		s.Fatal(err)
	}
	m := &manager{UnixConn: conn}
	s.Cleanup(func() { _ = conn.Close() })
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.heard = append(m.heard, string(b[:n]))
			m.mu.Unlock()
		}
	}()
	return m
}

// told returns how many messages begin so.
func (m *manager) told(state string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.heard {
		if strings.HasPrefix(h, state) {
			n++
		}
	}
	return n
}

func (m *manager) tells(s *site, state string, times int) {
	s.Helper()
	if !polltest.Holds(patience, func() bool { return m.told(state) >= times }) {
		m.mu.Lock()
		defer m.mu.Unlock()
		s.Fatalf("it heard %q, and not %s %d times", m.heard, state, times)
	}
}

func TestANodeTellsItsServiceManagerHowItIs(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	file, log := filepath.Join(s.dir, "config.json"), filepath.Join(s.dir, "node.log")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "LOG", log)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const appender = `"appenders": {"f": {"type": "Log::Log4perl::Appender::File", "args": {"filename": "LOG"}}}`
	write(`{"mongohost": "a", "database": "b", "log4perl": {"level": "INFO", ` + appender + `}}`)
	said := func(text string) {
		t.Helper()
		if !polltest.Holds(patience, func() bool { b, _ := os.ReadFile(log); return strings.Contains(string(b), text) }) {
			b, _ := os.ReadFile(log)
			t.Fatalf("%s does not say %q:\n%s", log, text, b)
		}
	}
	names := []string{filepath.Join(s.dir, "notify")}
	if runtime.GOOS == "linux" {
		names = append(names, "@sluice-test-"+filepath.Base(s.dir)+strconv.Itoa(os.Getpid())) // an abstract one
	}
	for _, name := range names {
		m := s.manager(name)
		d := s.daemon([]string{"NOTIFY_SOCKET=" + name, "WATCHDOG_USEC=10000000"}, "--config", file, "--store", s.store)
		m.tells(s, "READY=1", 1)
		m.tells(s, "WATCHDOG=1", 3)
		said("msg=\"node started\"")
		if d.said() != "" {
			t.Errorf("beside its log file it says\n%s", d.said())
		}

		// After SIGHUP a new log file begins where the old one was moved away, and another level
		// holds.
		if err := os.Rename(log, log+".1"); err != nil {
			t.Fatal(err)
		}
		write(`{"mongohost": "other", "database": "b", "log4perl": {"level": "DEBUG", ` + appender + `}}`)
		hup := func() {
			if err := d.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
		hup()
		m.tells(s, "RELOADING=1\nMONOTONIC_USEC=", 1)
		m.tells(s, "READY=1", 2)
		said("log_level=DEBUG")
		said("restart the node to use it\" file=" + file + " key=mongohost")

		// A broken file changes nothing.
		write(`{"mongohost": "other", "database": "b", "log4perl": {"level": "LOUD"}}`)
		hup()
		m.tells(s, "READY=1", 3)
		said("level=ERROR msg=config file=" + file + " line=1")
		said("all stays as it was")
		write(`{"mongohost": "other", "database": "b", "log4perl": {"level": "INFO", "appenders": {"f": {"type": "File::File", "args": {"filename": "/nosuch/log"}}}}}`)
		hup()
		said("it stays where it was")
		var b []byte
		if !polltest.Holds(patience, func() bool {
			b, _ = os.ReadFile(log)
			return strings.Count(string(b), "configuration read") == 1 && strings.Contains(string(b), "stay as they were")
		}) {
			t.Errorf("it does not say of which configuration the log was taken over:\n%s", b)
		}
		if strings.Count(string(b), "log_level=DEBUG") != 2 {
			t.Errorf("a log that cannot be written changed the level:\n%s", b)
		}

		if err := d.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		m.tells(s, "STOPPING=1", 1)
		if code := s.ends(d); code != 0 {
			t.Errorf("it ended with %d", code)
		}
		write(`{"mongohost": "a", "database": "b", "log4perl": {"level": "INFO", ` + appender + `}}`)
	}

	// A log that cannot be written is refused at the start; a manager that is not there is no error.
	d := s.daemon([]string{"NOTIFY_SOCKET=/nosuch/socket"}, "--log-file", "/nosuch/log")
	if code := s.ends(d); code != 2 || !strings.Contains(d.said(), "/nosuch/log: no such file") {
		t.Errorf("it ended with %d:\n%s", code, d.said())
	}
	d = s.daemon([]string{"NOTIFY_SOCKET=/nosuch/socket"}, "--log-level", "warn")
	if !polltest.Holds(patience, func() bool { return len(s.nodes()) == 1 }) {
		t.Fatal("it does not start without its manager")
	}
	if err := d.Process.Signal(syscall.SIGHUP); err != nil { // no file to read: it ends
		t.Fatal(err)
	}
	if code := s.ends(d); code != 0 || d.said() != "" {
		t.Errorf("it ended with %d, and said\n%s", code, d.said())
	}
}

// A store that does not answer is that of a file that another process has locked.
func TestANodeWhoseStoreDoesNotAnswerGivesNoSignOfLife(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.must("plan", "create", "p") // makes the store
	name := filepath.Join(s.dir, "notify")
	m := s.manager(name)
	d := s.daemon([]string{"NOTIFY_SOCKET=" + name, "WATCHDOG_USEC=10000000"}, "--lease", "6s")
	m.tells(s, "WATCHDOG=1", 2)
	db, err := sqlite.OpenConn(strings.TrimPrefix(s.store, "sqlite:"), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetBusyTimeout(patience)
	if err := sqlitex.ExecuteTransient(db, "BEGIN EXCLUSIVE", nil); err != nil {
		t.Fatal(err)
	}
	// A socket keeps the order of what is sent to it: signs is how many the node had given when this was called.
	conn, err := net.Dial("unixgram", name)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	asked := 0
	signs := func() int {
		t.Helper()
		asked++
		if _, err := conn.Write([]byte("ASKED")); err != nil {
			t.Fatal(err)
		}
		m.tells(s, "ASKED", asked)
		return m.told("WATCHDOG=1")
	}
	s.says(d, "level=WARN msg=beat ") // none that got through before is on its way any more
	before := signs()
	s.says(d, "no beat got through")
	if after := signs(); after != before {
		t.Errorf("%d signs of life while its store was locked", after-before)
	}
	if err := sqlitex.ExecuteTransient(db, "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
	m.tells(s, "WATCHDOG=1", before+2)
	_ = d.Process.Signal(syscall.SIGTERM)
	if code := s.ends(d); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, d.said())
	}
}

// The units of examples/deploy/systemd, which the packages bring, are such that systemd takes. Their command lines are ours: the
// server and the worker get as far as the store, which is not there.
func TestTheUnitsAreSuchThatSystemdTakes(t *testing.T) {
	t.Parallel()
	const folder = "../../examples/deploy/systemd"
	units, err := os.ReadDir(folder)
	if err != nil || len(units) != 4 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	dir := t.TempDir()
	var verified []string
	for _, u := range units {
		text, err := os.ReadFile(filepath.Join(folder, u.Name()))
		if err != nil {
			t.Fatal(err)
		}
		verified = append(verified, filepath.Join(dir, strings.Replace(u.Name(), "@", "@nightly", 1)))
		if err := os.WriteFile(filepath.Join(dir, u.Name()), []byte(strings.ReplaceAll(string(text), "ExecStart=sluice ", "ExecStart="+binary+" ")), 0o644); err != nil {
			t.Fatal(err)
		}
		_, line, ok := strings.Cut(string(text), "ExecStart=sluice ")
		line, _, _ = strings.Cut(line, "\n")
		if ok && strings.Contains(line, "$OPTIONS") {
			s := newSite(t, "mongodb://127.0.0.1:1/x?serverSelectionTimeoutMS=100")
			options := map[string]string{"sluice-worker.service": "--allow exec --threads 16", "sluice-serve.service": "--listen 127.0.0.1:0"}[u.Name()]
			if out, code := s.sluice(strings.Fields(strings.ReplaceAll(line, "$OPTIONS", options))...); code != 4 {
				t.Errorf("%s ends with %d, want 4\n%s", line, code, out)
			}
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here")
	}
	verify := exec.Command(analyze, append([]string{"verify", "--man=no"}, verified...)...)
	verify.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
	if out, err := verify.CombinedOutput(); err != nil || strings.Contains(string(out), dir) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestANodeLooksItsStoreOverAsItStarts(t *testing.T) {
	t.Parallel()
	server := os.Getenv("SLUICE_TEST_MONGODB")
	if server == "" {
		t.Skip("SLUICE_TEST_MONGODB is not set")
	}
	name := fmt.Sprintf("sluice-den-%d-%d", os.Getpid(), time.Now().UnixNano())
	client, err := mongo.Connect(options.Client().ApplyURI(server))
	if err != nil {
		t.Fatal(err)
	}
	db := client.Database(name)
	t.Cleanup(func() {
		_ = db.Drop(context.Background())
		_ = client.Disconnect(context.Background())
	})
	keys := mongo.IndexModel{Keys: bson.D{{Key: "plugin", Value: -1}}, Options: options.Index().SetName("plugin_1")}
	if _, err := db.Collection("queues").Indexes().CreateOne(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	for _, plugin := range []string{"Disbatch::Plugin::Other", "rm -rf"} {
		if _, err := db.Collection("queues").InsertOne(t.Context(), bson.D{{Key: "name", Value: "q " + plugin}, {Key: "plugin", Value: plugin}}); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, strings.TrimSuffix(server, "/")+"/"+name)
	d := s.daemon(nil)
	s.says(d, "node started")
	for _, want := range []string{
		`level=ERROR msg="wrong index" what="index plugin_1 of queues is {\"key\":{\"plugin\":-1}}, and should be {\"key\":{\"plugin\":1}}`,
		`level=INFO msg="a queue is left to others: this node does not have its plugin" queue="q Disbatch::Plugin::Other"`,
		`level=WARN msg="a queue's plugin has an invalid name`,
	} {
		if !strings.Contains(d.said(), want) {
			t.Errorf("it does not say %s\n%s", want, d.said())
		}
	}
	_ = d.Process.Signal(syscall.SIGTERM)
	if code := s.ends(d); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}
