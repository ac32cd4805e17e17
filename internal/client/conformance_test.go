package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/den/protocol"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// A composite is a store for which nodes ask the database, and people ask a server in front of it.
// So the conformance suite shows that a command cannot tell a server from its store.
type composite struct {
	*Client
	direct store.Store
	stop   func()
}

func (c *composite) results() store.Results { return c.direct.(store.Results) }
func (c *composite) balance() store.Balance { return c.direct.(store.Balance) }

func (c *composite) Register(ctx context.Context, i plan.Instance) error {
	return c.direct.Register(ctx, i)
}
func (c *composite) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	return c.direct.Beat(ctx, b)
}
func (c *composite) Leave(ctx context.Context, i plan.InstanceID) error {
	return c.direct.Leave(ctx, i)
}
func (c *composite) Failures(ctx context.Context, id plan.TaskID) (json.RawMessage, error) {
	return c.direct.Failures(ctx, id)
}

func (c *composite) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	return c.direct.Turn(ctx, t)
}
func (c *composite) Start(ctx context.Context, claims []protocol.Claim) ([]plan.TaskID, error) {
	return c.direct.Start(ctx, claims)
}
func (c *composite) Take(ctx context.Context, t protocol.Take) (protocol.ClaimedTask, error) {
	return c.direct.Take(ctx, t)
}
func (c *composite) AppendLog(ctx context.Context, claim protocol.Claim, entries []plan.LogEntry) error {
	return c.direct.AppendLog(ctx, claim, entries)
}
func (c *composite) Sweep(ctx context.Context, s protocol.Sweep) (protocol.Swept, error) {
	return c.direct.Sweep(ctx, s)
}
func (c *composite) Rescue(ctx context.Context, i plan.InstanceID, beats int64) (int, error) {
	return c.direct.Rescue(ctx, i, beats)
}
func (c *composite) Expire(ctx context.Context, budget int) (protocol.Expired, error) {
	return c.direct.Expire(ctx, budget)
}
func (c *composite) Wakes(ctx context.Context) <-chan struct{} { return c.direct.Wakes(ctx) }
func (c *composite) Hold(ctx context.Context, role protocol.Role, i plan.InstanceID) (bool, error) {
	return c.balance().Hold(ctx, role, i)
}
func (c *composite) SetThreads(ctx context.Context, was plan.Queue, threads int) error {
	return c.balance().SetThreads(ctx, was, threads)
}
func (c *composite) PutResults(ctx context.Context, claim protocol.Claim, stdout, stderr *io.SectionReader, mode protocol.GFS) error {
	return c.results().PutResults(ctx, claim, stdout, stderr, mode)
}

func (c *composite) OpenPack(ctx context.Context, id plan.PlanID) (io.ReadCloser, int64, error) {
	return c.direct.(store.Packs).OpenPack(ctx, id)
}

func (c *composite) Close() error {
	c.stop()
	return errors.Join(c.Client.Close(), c.direct.Close())
}

// A lossy connection loses the answer to a request during which the store's hook ended the work. So
// the client meets the same as a process whose store dies.
type lossy struct {
	hook store.Hook
	mu   sync.Mutex
	lost error
}

func (l *lossy) around(written bool) error {
	err := l.hook(written)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lost = err
	}
	return err
}

// RoundTrip implements http.RoundTripper.
func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	l.lost = nil // of what a node did
	l.mu.Unlock()
	answer, err := http.DefaultTransport.RoundTrip(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil && err == nil {
		_ = answer.Body.Close()
		answer, err = nil, l.lost
	}
	return answer, err
}

// serve puts a server and a client before a store, which open opens with the hook.
func serve(t testing.TB, hook store.Hook, open func(store.Hook) store.Store) *composite {
	t.Helper()
	var way http.RoundTripper
	if hook != nil {
		l := &lossy{hook: hook}
		hook, way = l.around, l
	}
	st := open(hook)
	a := v1.New(v1.Config{Store: st})
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); a.Run(ctx) }()
	srv := httptest.NewServer(a)
	c, err := New(Config{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if way != nil {
		c.http.Transport = way
	}
	c.pause = backoff.Retry{Initial: time.Microsecond}
	return &composite{c, st, func() { stop(); <-ran; srv.Close() }}
}

func overMemory() storetest.Driver {
	return storetest.Driver{
		Served: true,
		Open: func(t testing.TB, o storetest.Options) store.Store {
			return serve(t, o.Hook, func(h store.Hook) store.Store { return model.New(model.Options{Now: o.Now, Hook: h}) })
		},
		Reopen: func(t testing.TB, s store.Store, o storetest.Options) store.Store {
			return serve(t, o.Hook, func(h store.Hook) store.Store {
				return s.(*composite).direct.(*model.Store).Reopen(model.Options{Hook: h})
			})
		},
		Sizes: storetest.Sizes{FanIn: 2000, FanOut: 6000, Items: 6000, Tasks: 200, Deaths: 20, Walks: 4, Steps: 60, Late: 20},
	}
}

func overSQLite() storetest.Driver {
	paths := map[store.Store]string{}
	open := func(t testing.TB, o storetest.Options, path string) store.Store {
		c := serve(t, o.Hook, func(h store.Hook) store.Store {
			st, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: o.Now, Hook: h})
			if err != nil {
				t.Fatal(err)
			}
			return st
		})
		paths[c] = path
		return c
	}
	return storetest.Driver{
		Served:    true,
		OneWriter: true,
		Open: func(t testing.TB, o storetest.Options) store.Store {
			return open(t, o, filepath.Join(t.TempDir(), "sluice.db"))
		},
		Reopen: func(t testing.TB, s store.Store, o storetest.Options) store.Store { return open(t, o, paths[s]) },
		Keep:   30 * 24 * time.Hour,
		Sizes:  storetest.Sizes{FanIn: 300, FanOut: 600, Items: 600, Tasks: 64, Deaths: 4, Walks: 2, Steps: 60, Late: 10},
	}
}

// The suite runs whole over the model. The store behind a server matters where answers are read: over SQLite these groups run, and
// all with SLUICE_TEST_WHOLE=1.
func TestAServerIsAStore(t *testing.T) {
	t.Run("model", func(t *testing.T) { storetest.Run(t, overMemory()) })
	t.Run("sqlite", func(t *testing.T) {
		d := overSQLite()
		if os.Getenv("SLUICE_TEST_WHOLE") == "" {
			d.Only = []string{"plans", "read", "changes"}
		}
		storetest.Run(t, d)
	})
}

func TestAServerHasResults(t *testing.T) {
	storetest.Results(t, storetest.ResultsDriver{Driver: overMemory()})
}

func TestAServerHasPacks(t *testing.T) {
	storetest.Packs(t, storetest.ResultsDriver{Driver: overMemory()})
}

func TestAServerHasABalanceDocument(t *testing.T) {
	d := overMemory()
	s := d.Open(t, storetest.Options{Now: time.Now}).(*composite)
	other := d.Reopen(t, s, storetest.Options{}).(*composite)
	defer func() { _ = errors.Join(s.Close(), other.Close()) }()
	storetest.Balances(t, s, other)
}
