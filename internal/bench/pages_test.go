package bench

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
		{"pages/sqlite/graph", onSQLite, func(m *measurement) {
			pages(m, "graph", []drawing{{"100-tasks", 100, 0}, {"10000-tasks", 10_000, 0}, {"10000-tasks-unfolded", 10_000, 10_000}, {"100000-tasks", largeTasks, 0}})
		}},
		{"pages/sqlite/timeline", onSQLite, func(m *measurement) {
			pages(m, "timeline", []drawing{{"100-tasks", 100, 0}, {"10000-tasks", 10_000, 0}, {"100000-tasks", largeTasks, 0}})
		}},
	}
}

// A drawing is of one plan.
type drawing struct {
	what        string
	tasks, most int // nodes at most; 0: as many as the page asks for
}

// pages measures how long after a navigation a drawing is there and answers, on a server that has
// not seen the plan before. It also measures how many frames a second the browser draws while a
// mouse drags the drawing. The peer is the first drawing, which is small. The browser has no screen
// and no graphics card.
func pages(m *measurement, module string, all []drawing) {
	page, end, err := webtest.Browser(m.Context(), 1280, 900)
	if errors.Is(err, webtest.ErrNoBrowser) {
		m.skip(err.Error())
	}
	check(err)
	defer end()
	db := m.open()
	defer db.close()
	plans := map[int]string{}
	for _, d := range all {
		if plans[d.tasks] == "" {
			plans[d.tasks] = fmt.Sprintf("pages%d", d.tasks)
			m.runPlan(db, &meter{Node: db}, layered(size(d.tasks, max(100, d.tasks/10)), 100).spec(plans[d.tasks], "noop"), mostThreads, named{"noop": &counting{}})
		}
	}
	m.repeat(func() {
		var small, smooth float64
		for i, d := range all {
			took, fps := pageOnce(m, page, db, d, module, plans[d.tasks])
			if i == 0 {
				small, smooth = milliseconds(took), fps
				continue
			}
			m.pair(d.what+"-drawn", "ms", milliseconds(took), all[0].what, small)
			m.pair(d.what+"-panned", "frames/s", fps, all[0].what, smooth)
		}
		m.note("chromium without a screen, software canvas, server and browser on this machine; dragged for 2 s")
	})
}

func pageOnce(m *measurement, page context.Context, db *database, d drawing, module, plan string) (time.Duration, float64) {
	rest := v1.New(v1.Config{Store: db})
	serving, stop := context.WithCancel(m.Context())
	ran := make(chan struct{})
	go func() { defer close(ran); rest.Run(serving) }()
	srv := httptest.NewServer(webtest.Drawings(rest))
	defer func() {
		stop()
		<-ran
		srv.CloseClientConnections()
		srv.Close()
	}()
	url := srv.URL + "/drawing?module=" + module + "&plan=" + plan
	if d.most > 0 {
		url += fmt.Sprintf("&most=%d", d.most)
	}
	settle()
	took := must(webtest.Show(page, url))
	if module == "timeline" { // all of its time is seen at first
		check(webtest.Enlarge(page, 4))
	}
	fps, moved, err := webtest.Pan(page, 2*time.Second)
	check(err)
	if moved == 0 {
		failf("%s was dragged, and did not move", d.what)
	}
	return took, fps
}
