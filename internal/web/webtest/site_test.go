//go:build browser

package webtest_test

import (
	"container/heap"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seed-1177d267/sluice/den/protocol"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/internal/web/webtest"
	"github.com/seed-1177d267/sluice/plan"
)

// A site serves a store whose clock is the test's.
type site struct {
	*testing.T
	st   *model.Store
	now  atomic.Int64 // nanoseconds since 1970
	url  string
	node plan.InstanceID
	page context.Context

	running actives
}

func serve(t *testing.T, width, height int) *site {
	t.Helper()
	s := &site{T: t}
	s.now.Store(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixNano())
	s.st = model.New(model.Options{Now: func() time.Time { return time.Unix(0, s.now.Load()) }})
	rest := v1.New(v1.Config{Store: s.st})
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); rest.Run(ctx) }()
	srv := httptest.NewServer(webtest.Drawings(rest))
	t.Cleanup(func() { stop(); <-ran; srv.CloseClientConnections(); srv.Close() })
	s.url = srv.URL
	s.node = plan.InstanceID{ID: plan.NewID(time.Now())}
	if err := s.st.Register(ctx, plan.Instance{ID: s.node, Node: "n", Host: "h", Threads: 1000, Lease: time.Hour, Plugins: []string{"demo"}}); err != nil {
		t.Fatal(err)
	}
	page, end, err := webtest.Browser(t.Context(), width, height)
	if errors.Is(err, webtest.ErrNoBrowser) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	s.page = page
	return s
}

func (s *site) submit(spec *plan.Spec) plan.Plan {
	s.Helper()
	p, err := submit.Submit(s.Context(), s.st, spec, false)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

type active struct {
	ends time.Time
	task protocol.ClaimedTask
}

type actives []active

func (a actives) Len() int { return len(a) }

func (a actives) Less(i, j int) bool { return a[i].ends.Before(a[j].ends) }

func (a actives) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a *actives) Push(x any) { *a = append(*a, x.(active)) }

func (a *actives) Pop() any {
	x := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return x
}

// run lets time pass on so many threads, until so many tasks have ended. lasts returns the duration
// of a task and whether it fails.
func (s *site) run(threads, tasks int, lasts func(name string) (time.Duration, bool)) {
	s.Helper()
	var ended []protocol.Ending
	running := &s.running
	for done := 0; ; {
		r, err := s.st.Turn(s.Context(), protocol.Turn{Instance: s.node, Ended: ended, Slots: threads - len(*running), Plugins: []string{"demo"}, Start: true})
		if err != nil {
			s.Fatal(err)
		}
		ended = nil
		for _, c := range r.Claimed {
			d, _ := lasts(c.Name)
			heap.Push(running, active{time.Unix(0, s.now.Load()).Add(d), c})
		}
		if r.More {
			continue
		}
		if len(*running) == 0 || done >= tasks {
			return
		}
		at := (*running)[0].ends
		s.now.Store(at.UnixNano())
		for len(*running) > 0 && !(*running)[0].ends.After(at) {
			x := heap.Pop(running).(active)
			e := protocol.Ending{Claim: x.task.Claim, Status: plan.Succeeded}
			if _, fails := lasts(x.task.Name); fails {
				e.Status = plan.Failed
			}
			ended = append(ended, e)
			done++
		}
	}
}

func (s *site) do(actions ...chromedp.Action[chromedp.Void]) {
	s.Helper()
	ctx, done := context.WithTimeout(s.page, 30*time.Second)
	defer done()
	if err := chromedp.Do(ctx, actions...); err != nil {
		s.Fatal(err)
	}
}

func ask[T any](s *site, script string) T {
	s.Helper()
	ctx, done := context.WithTimeout(s.page, 30*time.Second)
	defer done()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		s.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits for a script to be true.
func (s *site) until(what, script string) {
	s.Helper()
	if !polltest.Holds(time.Minute, func() bool { return ask[bool](s, script) }) {
		s.Fatalf("%s: %s is not so; the page says %s", what, script, ask[string](s, "String(window.failed)"))
	}
}

func (s *site) show(module string, p plan.Plan, more string) {
	s.Helper()
	_, err := webtest.Show(s.page, s.url+"/drawing?module="+module+"&plan="+p.ID.String()+more)
	if err != nil {
		s.Fatal(err)
	}
	s.until("listening", "window.listening === true")
}

// pan drags the drawing until it moves. internal/bench measures how fast.
func (s *site) pan() {
	s.Helper()
	polltest.Until(s, time.Minute, "the drawing is panned", func() bool {
		_, moved, err := webtest.Pan(s.page, 200*time.Millisecond)
		if err != nil {
			s.Fatal(err)
		}
		return moved > 0
	})
}

func (s *site) resize(width, height int, ratio float64) {
	s.Helper()
	if err := webtest.Resize(s.page, width, height, ratio); err != nil {
		s.Fatal(err)
	}
}

// picture keeps a screenshot where SLUICE_SCREENSHOTS names a folder.
func (s *site) picture(name string) {
	s.Helper()
	dir := os.Getenv("SLUICE_SCREENSHOTS")
	if dir == "" {
		return
	}
	time.Sleep(400 * time.Millisecond) // for what glides, and refreshes: no test asks what is in a picture
	png, err := chromedp.Run(s.page, chromedp.FullScreenshot(100))
	if err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		s.Fatal(err)
	}
}

// clean checks that the page met no error, and broke no rule of its policy.
func (s *site) clean() {
	s.Helper()
	if said := ask[[]string](s, "[window.failed, window.violated].filter(Boolean)"); len(said) > 0 {
		s.Errorf("the page says %q", said)
	}
}
