package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/web/webtest"
	"github.com/seed-1177d267/sluice/plugins"
)

func pagesScenarios() []scenario {
	return []scenario{
		{"pages/sqlite/graph", "a browser draws the graphs of plans of 10,000 and 100,000 tasks, and is panned", pagesGraph},
		{"pages/sqlite/timeline", "the same of their time lines", pagesTimeline},
	}
}

// A drawn is one measurement of a page.
type drawn struct {
	module string
	tasks  int
	most   int // nodes; 0: as many as the page asks for
	what   string
	within float64 // ms
}

func pagesGraph(ctx context.Context, b *bench, add func(result)) error {
	return pages(ctx, b, add, []drawn{
		{"graph", 10_000, 0, "10,000 tasks", 1000}, {"graph", 10_000, 10_000, "10,000 tasks, none folded", 0}, {"graph", largeTasks, 0, "100,000 tasks", 3000},
	})
}

func pagesTimeline(ctx context.Context, b *bench, add func(result)) error {
	return pages(ctx, b, add, []drawn{{"timeline", 10_000, 0, "10,000 tasks", 1000}, {"timeline", largeTasks, 0, "100,000 tasks", 3000}})
}

// pages measures how long after a navigation a drawing is there and answers, on a server that has
// not seen the plan before. It also measures how many frames a second the browser draws while a
// mouse drags the drawing. The browser has no screen and no graphics card.
func pages(ctx context.Context, b *bench, add func(result), all []drawn) (err error) {
	page, end, err := webtest.Browser(ctx, 1280, 900)
	if errors.Is(err, webtest.ErrNoBrowser) {
		add(result{What: "drawn", Skipped: err.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	defer end()
	db, err := b.open(ctx, onSQLite)
	if err != nil {
		return err
	}
	defer closing(ctx, db, &err)
	plans := map[int]string{}
	for _, d := range all {
		n := d.tasks
		if b.quick {
			n /= 10
		}
		if plans[n] == "" {
			name := fmt.Sprintf("pages%d", n)
			if _, err := runPlan(ctx, db, layered(n, 100).spec(name, "noop"), registry(map[string]plugins.Plugin{"noop": &counting{}}), mostThreads); err != nil {
				return err
			}
			plans[n] = name
		}
		var shown, frames []float64
		for range b.repetitions(5) {
			took, fps, err := pageOnce(ctx, page, db, d, plans[n])
			if err != nil {
				return err
			}
			shown, frames = append(shown, milliseconds(took)), append(frames, fps)
		}
		note := fmt.Sprintf("%s; chromium without a screen, software canvas, server and browser on this machine", d.module)
		r := result{What: d.what + " drawn", Value: median(shown), Unit: "ms", Note: note}
		if d.within > 0 {
			r.Floor = atMost(d.within)
		}
		add(r)
		add(result{What: d.what + " panned", Value: median(frames), Unit: "frames/s", Floor: atLeast(30), Note: "by requestAnimationFrame, dragged for 2 s"})
	}
	return nil
}

func pageOnce(ctx context.Context, page context.Context, db *database, d drawn, plan string) (time.Duration, float64, error) {
	rest := v1.New(v1.Config{Store: db})
	serving, stop := context.WithCancel(ctx)
	ran := make(chan struct{})
	go func() { defer close(ran); rest.Run(serving) }()
	srv := httptest.NewServer(webtest.Drawings(rest))
	defer func() {
		stop()
		<-ran
		srv.CloseClientConnections()
		srv.Close()
	}()
	most := ""
	if d.most > 0 {
		most = fmt.Sprintf("&most=%d", d.most)
	}
	settle()
	took, err := webtest.Show(page, srv.URL+"/drawing?module="+d.module+"&plan="+plan+most)
	if err != nil {
		return 0, 0, err
	}
	if d.module == "timeline" { // all of its time is seen at first
		if err := webtest.Enlarge(page, 4); err != nil {
			return 0, 0, err
		}
	}
	fps, moved, err := webtest.Pan(page, 2*time.Second)
	if err == nil && moved == 0 {
		err = fmt.Errorf("%s was dragged, and did not move", d.what)
	}
	return took, fps, err
}
