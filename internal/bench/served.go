package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/plan"
)

func servedScenarios() []scenario {
	return []scenario{
		{"served/get", "requests for a plan of 10,000 tasks, to sluice dci as a process of its own: SQLite", servedGets},
		{"served/submit/sqlite", "a plan of 100,000 tasks and 300,000 needs in one request: SQLite",
			func(ctx context.Context, b *bench, add func(result)) error {
				return servedSubmit(ctx, b, onSQLite, 8, add)
			}},
		{"served/submit/mongodb", "the same on MongoDB",
			func(ctx context.Context, b *bench, add func(result)) error {
				return servedSubmit(ctx, b, onMongoDB, 20, add)
			}},
		{"served/events", "from a change to all of 1,000 listeners having seen it: SQLite", servedEvents},
	}
}

// A served is a `sluice dci` that runs.
type served struct {
	cmd *exec.Cmd
	out *bytes.Buffer // its output after the start
	url string        // of the API
}

var servedAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve starts a server over a database, on a port of its own.
func (b *bench) serve(ctx context.Context, db *database) (*served, error) {
	sluice, err := b.binary()
	if err != nil {
		return nil, err
	}
	s := &served{cmd: exec.CommandContext(ctx, sluice, "dci", "--store", db.uri, "--listen", "127.0.0.1:0"), out: &bytes.Buffer{}}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	at := servedAt.FindString(line)
	if at == "" {
		_ = s.cmd.Process.Kill()
		return nil, fmt.Errorf("sluice dci: %w: %s", errors.Join(err, s.cmd.Wait()), line)
	}
	go func() { _, _ = io.Copy(s.out, lines) }() // it ends with the process
	s.url = at + api.Root
	return s, nil
}

// stop ends the server, and reports if that was not well.
func (s *served) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 130) {
		return fmt.Errorf("sluice dci: %w: %s", err, lastLines(s.out.String(), 5))
	}
	return nil
}

// serving runs do with a server over a new database.
func (b *bench) serving(ctx context.Context, k kind, do func(*database, *served) error) (err error) {
	db, err := b.open(ctx, k)
	if err != nil {
		return err
	}
	defer closing(ctx, db, &err)
	s, err := b.serve(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return do(db, s)
}

// getters is how many ask at once.
const getters = 8

func servedGets(ctx context.Context, b *bench, add func(result)) error {
	return b.serving(ctx, onSQLite, func(db *database, s *served) error {
		g := layered(b.size(10_000, 500), 100)
		p, _, err := submitted(ctx, db, g.spec("nightly", "demo"))
		if err != nil {
			return err
		}
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: getters}}
		defer client.CloseIdleConnections()
		var rates []float64
		var all []time.Duration
		for range b.repetitions(5) {
			n := b.size(10_000, 200)
			took := make([]time.Duration, n)
			var next atomic.Int64
			var failed atomic.Pointer[error]
			var wg sync.WaitGroup
			start := time.Now()
			for range getters {
				wg.Go(func() {
					for {
						i := int(next.Add(1)) - 1
						if i >= n || failed.Load() != nil {
							return
						}
						began := time.Now()
						if err := get(ctx, client, s.url+"/plans/"+p.ID.String()); err != nil {
							failed.Store(&err)
						}
						took[i] = time.Since(began)
					}
				})
			}
			wg.Wait()
			if err := failed.Load(); err != nil {
				return *err
			}
			rates = append(rates, float64(n)/time.Since(start).Seconds())
			all = append(all, took...)
		}
		add(result{
			What: "GET " + api.Root + "/plans/ID", Value: median(rates), Unit: "/s", Floor: atLeast(2000),
			Note: fmt.Sprintf("a plan of %d tasks, %d connections, p99 %.1f ms; the clients are on the same cores", g.tasks(), getters, milliseconds(quantile(all, 0.99))),
		})
		return nil
	})
}

func get(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	a, err := client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		return err
	}
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, a.Status)
	}
	return nil
}

func servedSubmit(ctx context.Context, b *bench, k kind, seconds float64, add func(result)) error {
	if why := b.missing(k); why != "" {
		add(result{What: "a submission", Skipped: why})
		return nil
	}
	g := layers(b.size(largeTasks, 3000))
	file := planFile(g, "plugin: demo")
	var took, memory []float64
	for range b.repetitions(3) {
		err := b.serving(ctx, k, func(_ *database, s *served) error {
			start := time.Now()
			a, err := http.Post(s.url+"/plans", "application/yaml", bytes.NewReader(file))
			if err != nil {
				return err
			}
			defer a.Body.Close()
			if text, err := io.ReadAll(a.Body); err != nil || a.StatusCode != http.StatusCreated {
				return fmt.Errorf("%s: %s (%w)", a.Status, text, err)
			}
			took = append(took, time.Since(start).Seconds())
			if m, err := mostMemory(s.cmd.Process.Pid); err == nil {
				memory = append(memory, m)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	add(result{
		What: "POST " + api.Root + "/plans", Value: median(took), Unit: "s", Floor: atMost(seconds),
		Note: fmt.Sprintf("%d tasks, %d needs, %.1f MB of YAML; %s", g.tasks(), g.edges(), float64(len(file))/1e6, k.durability()),
	})
	if len(memory) == 0 {
		add(result{What: "most memory of the server", Skipped: "this system has no /proc to read it from"})
		return nil
	}
	r := result{What: "most memory of the server", Value: median(memory), Unit: "MiB"}
	if k == onSQLite {
		r.Floor = atMost(300 / 1.048576)
	}
	add(r)
	return nil
}

// listeners is how many connections get each change.
const listeners = 1000

func servedEvents(ctx context.Context, b *bench, add func(result)) error {
	return b.serving(ctx, onSQLite, func(db *database, s *served) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		n := b.size(listeners, 50)
		seen := make(chan string, 100*n)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		for range n {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/events", nil)
			if err != nil {
				return err
			}
			a, err := client.Do(r)
			if err != nil {
				return err
			}
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
						seen <- c.Name
					}
				}
			})
		}
		var waits []time.Duration
		for i := range b.size(50, 3) {
			name := fmt.Sprintf("seen-%d", i)
			if _, err := db.CreatePlan(ctx, plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: name}); err != nil {
				return err
			}
			start := time.Now()
			late := time.NewTimer(10 * time.Second)
			for left := n; left > 0; {
				select {
				case got := <-seen:
					if got == name {
						left--
					}
				case <-late.C:
					return fmt.Errorf("%d of %d listeners did not see a change within 10 s", left, n)
				}
			}
			waits = append(waits, time.Since(start))
		}
		add(result{
			What: "a change to all listeners, the slowest", Value: milliseconds(quantile(waits, 1)), Unit: "ms", Floor: atMost(200),
			Note: fmt.Sprintf("%d listeners on the same cores, %d changes, median %.1f ms", n, len(waits), milliseconds(median(waits))),
		})
		return nil
	})
}
