package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/web/webtest"
)

func pagesScenarios() []scenario {
	return []scenario{
		{"pages/sqlite/graph", "a browser draws the graphs of plans of 10,000 and 100,000 tasks, and is panned", onSQLite, func(ctx context.Context, t *trial) {
			pages(ctx, t, []drawn{{"graph", 10_000, 0, "10,000 tasks"}, {"graph", 10_000, 10_000, "10,000 tasks, none folded"}, {"graph", largeTasks, 0, "100,000 tasks"}})
		}},
		{"pages/sqlite/timeline", "the same of their time lines", onSQLite, func(ctx context.Context, t *trial) {
			pages(ctx, t, []drawn{{"timeline", 10_000, 0, "10,000 tasks"}, {"timeline", largeTasks, 0, "100,000 tasks"}})
		}},
	}
}

// A drawn is one measurement of a page.
type drawn struct {
	module string
	tasks  int
	most   int // nodes; 0: as many as the page asks for
	what   string
}

// pages measures how long after a navigation a drawing is there and answers, on a server that has
// not seen the plan before. It also measures how many frames a second the browser draws while a
// mouse drags the drawing. The browser has no screen and no graphics card.
func pages(ctx context.Context, t *trial, all []drawn) {
	page, end, err := webtest.Browser(ctx, 1280, 900)
	if errors.Is(err, webtest.ErrNoBrowser) {
		t.add(result{What: "drawn", Skipped: err.Error()})
		return
	}
	check(err)
	defer end()
	db := t.open(ctx)
	defer db.close(ctx)
	plans := map[int]string{}
	for _, d := range all {
		n := t.size(d.tasks, d.tasks/10)
		if plans[n] == "" {
			plans[n] = fmt.Sprintf("pages%d", n)
			runPlan(ctx, db, &meter{Node: db}, layered(n, 100).spec(plans[n], "noop"), mostThreads, named{"noop": &counting{}})
		}
		t.again(5, func() {
			took, fps := pageOnce(ctx, page, db, d, plans[n])
			t.sample(d.what, milliseconds(took))
			t.sample(d.what+" panned", fps)
		})
		t.line(d.what, "", result{
			What: d.what + " drawn", Unit: "ms", Note: d.module + "; chromium without a screen, software canvas, server and browser on this machine",
		})
		t.line(d.what+" panned", "", result{What: d.what + " panned", Unit: "frames/s", Note: "by requestAnimationFrame, dragged for 2 s"})
	}
}

func pageOnce(ctx context.Context, page context.Context, db *database, d drawn, plan string) (time.Duration, float64) {
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
	url := srv.URL + "/drawing?module=" + d.module + "&plan=" + plan
	if d.most > 0 {
		url += fmt.Sprintf("&most=%d", d.most)
	}
	settle()
	took := must(webtest.Show(page, url))
	if d.module == "timeline" { // all of its time is seen at first
		check(webtest.Enlarge(page, 4))
	}
	fps, moved, err := webtest.Pan(page, 2*time.Second)
	check(err)
	if moved == 0 {
		failf("%s was dragged, and did not move", d.what)
	}
	return took, fps
}
