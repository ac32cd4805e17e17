package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/plan"
)

func servedScenarios() []scenario {
	return []scenario{
		{"served/get", "requests for a plan of 10,000 tasks, to sluice dci as a process of its own: SQLite", onSQLite, servedGets},
		{"served/submit/sqlite", "a plan of 100,000 tasks and 300,000 needs in one request: SQLite", onSQLite, servedSubmit},
		{"served/submit/mongodb", "the same on MongoDB", onMongoDB, servedSubmit},
		{"served/events", "from a change to all of 1,000 listeners having seen it: SQLite", onSQLite, servedEvents},
	}
}

// A served is a `sluice dci` that runs.
type served struct {
	*process
	url string // of the API
}

var servedAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve starts a server over a database, on a port of its own.
func (t *trial) serve(ctx context.Context, db *database) *served {
	connect := func(p *process) { p.out = bufio.NewReader(must(p.StderrPipe())) }
	p := startWith(ctx, "", connect, must(t.binary()), "dci", "--store", db.uri, "--listen", "127.0.0.1:0")
	line, err := p.out.ReadString('\n')
	at := servedAt.FindString(line)
	if at == "" {
		p.kill()
		failf("sluice dci: %w: %s", err, line)
	}
	go func() { _, _ = io.Copy(&p.said, p.out) }() // it ends with the process
	return &served{p, at + api.Root}
}

// serving runs do with a server over a new database.
func (t *trial) serving(ctx context.Context, do func(*database, *served)) {
	db := t.open(ctx)
	defer db.close(ctx)
	s := t.serve(ctx, db)
	defer s.stop()
	do(db, s)
}

// getters is how many ask at once.
const getters = 8

func servedGets(ctx context.Context, t *trial) {
	t.serving(ctx, func(db *database, s *served) {
		g := layered(t.size(10_000, 500), 100)
		p, _ := submitted(ctx, db, g.spec("nightly", "demo"))
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: getters}}
		defer client.CloseIdleConnections()
		var all []time.Duration
		t.again(5, func() {
			n := t.size(10_000, 200)
			took := make([]time.Duration, n)
			var next atomic.Int64
			var asking errgroup.Group
			start := time.Now()
			for range getters {
				asking.Go(func() error {
					for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
						began := time.Now()
						if err := get(ctx, client, s.url+"/plans/"+p.ID.String()); err != nil {
							return err
						}
						took[i] = time.Since(began)
					}
					return nil
				})
			}
			check(asking.Wait())
			t.sample("rate", perSecond(n, time.Since(start)))
			all = append(all, took...)
		})
		t.line("rate", "", result{
			What: "GET " + api.Root + "/plans/ID", Unit: "/s",
			Note: fmt.Sprintf("a plan of %d tasks, %d connections, p99 %.1f ms; the clients are on the same cores", g.tasks(), getters, milliseconds(quantile(all, 0.99))),
		})
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

func servedSubmit(ctx context.Context, t *trial) {
	g := layers(t.size(largeTasks, 3000))
	file := planFile(g, "plugin: demo")
	t.again(3, func() {
		t.serving(ctx, func(_ *database, s *served) {
			start := time.Now()
			a := must(http.Post(s.url+"/plans", "application/yaml", bytes.NewReader(file)))
			defer a.Body.Close()
			if text := must(io.ReadAll(a.Body)); a.StatusCode != http.StatusCreated {
				failf("%s: %s", a.Status, text)
			}
			t.sample("took", time.Since(start).Seconds())
			if m, err := mostMemory(s.Process.Pid); err == nil {
				t.sample("memory", m)
			}
		})
	})
	t.line("took", "", result{
		What: "POST " + api.Root + "/plans", Unit: "s",
		Note: fmt.Sprintf("%d tasks, %d needs, %.1f MB of YAML; %s", g.tasks(), g.edges(), float64(len(file))/1e6, t.kind.durability()),
	})
	r := result{What: "most memory of the server", Unit: "MiB"}
	if t.median("memory") == 0 {
		r.Skipped = "this system has no /proc to read it from"
	}
	t.line("memory", "", r)
}

// listeners is how many connections get each change.
const listeners = 1000

func servedEvents(ctx context.Context, t *trial) {
	t.serving(ctx, func(db *database, s *served) {
		ctx, stop := context.WithCancel(ctx)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		n := t.size(listeners, 50)
		seen := make(chan string, 100*n)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		for range n {
			a := must(client.Do(must(http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/events", nil))))
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
		for i := range t.size(50, 3) {
			name := fmt.Sprintf("seen-%d", i)
			_ = must(db.CreatePlan(ctx, plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: name}))
			start := time.Now()
			late := time.After(10 * time.Second)
			for left := n; left > 0; {
				select {
				case got := <-seen:
					if got == name {
						left--
					}
				case <-late:
					failf("%d of %d listeners did not see a change within 10 s", left, n)
				}
			}
			waits = append(waits, time.Since(start))
		}
		t.add(result{
			What: "a change to all listeners, the slowest", Value: milliseconds(quantile(waits, 1)), Unit: "ms",
			Note: fmt.Sprintf("%d listeners on the same cores, %d changes, median %.1f ms", n, len(waits), milliseconds(median(waits))),
		})
	})
}
