package v1_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// layered is n tasks in levels of the given width, each with three parents in the level before it.
func layered(name string, n, width int) *plan.Spec {
	s := plan.New(name)
	for i := range n {
		t := plan.TaskSpec{Name: fmt.Sprintf("t%d", i), Plugin: "demo"}
		if i >= width {
			above := (i/width - 1) * width
			for k := range min(3, width) {
				t.Needs = append(t.Needs, fmt.Sprintf("t%d", above+(i*7+k*31)%width))
			}
			slices.Sort(t.Needs)
			t.Needs = slices.Compact(t.Needs)
		}
		s.Add(t)
	}
	return s
}

func on(t testing.TB, st store.Store) *httptest.Server {
	srv := httptest.NewServer(v1.New(v1.Config{Store: st}))
	t.Cleanup(srv.Close)
	return srv
}

func submitted(t testing.TB, st store.Store, s *plan.Spec) plan.Plan {
	t.Helper()
	p, err := submit.Submit(t.Context(), st, s, false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fetch reads an answer, and returns how many bytes were sent, and when it was there.
func fetch(t testing.TB, url string, into any) (size int, took time.Duration) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	began := time.Now()
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	sent, err := io.ReadAll(a.Body)
	took = time.Since(began)
	if err != nil || a.StatusCode != 200 {
		t.Fatalf("GET %s: %d %.300s %v", url, a.StatusCode, sent, err)
	}
	plain := io.Reader(strings.NewReader(string(sent)))
	if a.Header.Get("Content-Encoding") == "gzip" {
		if plain, err = gzip.NewReader(plain); err != nil {
			t.Fatalf("GET %s: %v: %s", url, err, a.Header)
		}
	}
	if err := json.NewDecoder(plain).Decode(into); err != nil {
		t.Fatal(err)
	}
	return len(sent), took
}

// migration is the plan of the README, with two items.
func migration() *plan.Spec {
	s := plan.New("migrate")
	s.Add(plan.TaskSpec{Name: "list", Plugin: "demo"})
	s.Add(plan.TaskSpec{Name: "copy", Plugin: "demo", Needs: []string{"list"}, Foreach: &plan.Foreach{List: json.RawMessage(`["ann", "bob"]`)}})
	s.Add(plan.TaskSpec{Name: "verify", Plugin: "demo", Needs: []string{"copy"}})
	s.Add(plan.TaskSpec{Name: "report", Plugin: "demo", Needs: []string{"verify", "list"}, When: plan.AllDone})
	return s
}

func TestTasksOfFinallyAreDrawnBehindTheOthers(t *testing.T) {
	spec := migration()
	spec.Add(plan.TaskSpec{Name: "undo", Plugin: "demo", When: plan.AnyFailed, Finally: true, Foreach: &plan.Foreach{List: json.RawMessage(`[1, 2]`)}})
	spec.Add(plan.TaskSpec{Name: "tell", Plugin: "demo", When: plan.AllDone, Finally: true, Needs: []string{"undo"}})
	sketch, err := v1.Sketched(spec)
	if err != nil {
		t.Fatal(err)
	}
	onEachStore(t, func(t *testing.T, s *site) {
		p := submitted(t, s.st, spec)
		var g api.Graph
		fetch(t, s.url+"/plans/"+p.ID.String()+"/graph", &g)
		for _, g := range []*api.Graph{&g, sketch} {
			if len(g.Finally) != 4 {
				t.Fatalf("it has no frame: %+v", g)
			}
			for i, name := range g.Names {
				if in := g.X[i] >= g.Finally[0] && g.Y[i] < g.Finally[1]+g.Finally[3]; in != (name == "undo" || name == "tell") {
					t.Errorf("%s is at %d, %d, and the frame of finally is %v", name, g.X[i], g.Y[i], g.Finally)
				}
			}
		}
	})
}

func TestASmallGraphIsDrawnWhole(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		p := submitted(t, s.st, migration())
		w := worker{t, s.st, registered(t, s.st)}
		var g api.Graph
		fetch(t, s.url+"/plans/"+p.ID.String()+"/graph", &g)
		if len(g.Names) != 4 {
			t.Errorf("before its items are made there are %v", g.Names)
		}
		w.run(1)
		fetch(t, s.url+"/plans/migrate/graph", &g)
		if g.Tasks != 6 || len(g.Names) != 4 || len(g.Lane) != 4 {
			t.Fatalf("%+v", g)
		}
		for i, name := range g.Names {
			if aside := g.Y[i] >= g.Lane[1]; aside != (name == "report") {
				t.Errorf("%s is at %d, and the lane of handlers begins at %d", name, g.Y[i], g.Lane[1])
			}
		}
		var all api.Graph
		fetch(t, s.url+"/plans/migrate/graph?most=100", &all)
		if len(all.Names) != 6 || len(all.Groups) > 0 {
			t.Fatalf("%+v", all)
		}
		if a, b := slices.Index(all.Names, "copy[0]"), slices.Index(all.Names, "copy[1]"); all.Y[a] > all.Y[b] {
			t.Error("copy[1] is above copy[0]")
		}
		text, err := json.MarshalIndent(g, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		got := string(text) + "\n"
		for i, id := range g.IDs {
			got = strings.ReplaceAll(got, id, "ID OF "+g.Names[i])
		}
		got = strings.NewReplacer(p.ID.String(), "ID OF PLAN", g.Layout, "LAYOUT").Replace(got)
		golden(t, filepath.Join("testdata", "graph.json"), got)
	})
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what was got (-update writes it):\n%s", file, got)
	}
}

// A worker runs tasks, in no time.
type worker struct {
	t  testing.TB
	st store.Store
	id plan.InstanceID
}

func registered(t testing.TB, st store.Store) plan.InstanceID {
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	err := st.Register(t.Context(), plan.Instance{ID: id, Node: "worker", Host: "h", Threads: 100, Lease: time.Minute, Plugins: []string{"demo"}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// turn ends tasks as succeeded, and claims and starts up to slots.
func (w *worker) turn(slots int, ended ...protocol.ClaimedTask) []protocol.ClaimedTask {
	w.t.Helper()
	turn := protocol.Turn{Instance: w.id, Slots: slots, Start: true, Plugins: []string{"demo"}}
	for _, c := range ended {
		turn.Ended = append(turn.Ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded})
	}
	done, err := w.st.Turn(w.t.Context(), turn)
	if err != nil {
		w.t.Fatal(err)
	}
	return done.Claimed
}

// fail ends tasks as failed.
func (w *worker) fail(tasks ...protocol.ClaimedTask) {
	w.t.Helper()
	turn := protocol.Turn{Instance: w.id, Plugins: []string{"demo"}}
	for _, c := range tasks {
		turn.Ended = append(turn.Ended, protocol.Ending{Claim: c.Claim, Status: plan.Failed})
	}
	if _, err := w.st.Turn(w.t.Context(), turn); err != nil {
		w.t.Fatal(err)
	}
}

// run claims and ends so many tasks, one after another.
func (w *worker) run(n int) {
	w.t.Helper()
	for range n {
		claimed := w.turn(1)
		for len(claimed) == 0 {
			claimed = w.turn(1)
		}
		w.turn(0, claimed...)
	}
}

func TestTasksOfFinallyAreDrawnBehindAllOthers(t *testing.T) {
	st := model.New(model.Options{})
	s := plan.New("release")
	for _, t := range []plan.TaskSpec{
		{Name: "alone"}, {Name: "copy"}, {Name: "switch", Needs: []string{"copy"}},
		{Name: "rollback", Finally: true, When: plan.AnyFailed}, {Name: "tidy", Finally: true}, {Name: "tell", Finally: true, Needs: []string{"rollback"}},
	} {
		t.Plugin = "demo"
		s.Add(t)
	}
	p := submitted(t, st, s)
	var g api.Graph
	fetch(t, on(t, st).URL+"/api/v1/plans/"+p.ID.String()+"/graph", &g)
	x := map[string]int{}
	for i, name := range g.Names {
		x[name] = g.X[i]
	}
	if len(x) != 6 || x["rollback"] <= x["switch"] || x["tidy"] != x["rollback"] || x["tell"] <= x["rollback"] || x["alone"] >= x["rollback"] || len(g.Lane) > 0 {
		t.Errorf("the tasks are drawn at %v, with the lane %v", x, g.Lane)
	}
}

func TestALargeGraphIsFoldedAndOpened(t *testing.T) {
	st := openSQLite(t, nil)
	s := layered("wide", 3000, 1000)
	s.Add(plan.TaskSpec{Name: "report", Plugin: "demo", Needs: []string{"t2999"}})
	p := submitted(t, st, s)
	url := on(t, st).URL + api.Root + "/plans/" + p.ID.String() + "/graph"
	var g api.Graph
	fetch(t, url, &g)
	if want := []string{"t*", "t*", "t*", "report"}; !slices.Equal(g.Names, want) {
		t.Fatalf("%v, want %v", g.Names, want)
	}
	if len(g.Edges) != 3*3 || g.Weights[0] < 2900 || g.Weights[2] != 1 {
		t.Errorf("edges %v, weights %v", g.Edges, g.Weights)
	}
	if c := g.Counts[1]; c[0] != 1 || c[1] != 1000 {
		t.Errorf("the second group counts %v; all of it is held", c)
	}
	if c := g.Counts[0]; c[2] != 1000 {
		t.Errorf("the first group counts %v; all of it is queued", c)
	}

	opened := api.Graph{}
	fetch(t, url+"?from=300&open="+g.Groups[1].Key, &opened)
	var singles, left int
	for i, id := range opened.IDs {
		if id != "" && strings.HasPrefix(opened.Names[i], "t") {
			singles++
		}
	}
	for _, gr := range opened.Groups {
		if gr.Key == g.Groups[1].Key {
			left += gr.Count
		}
	}
	if singles != 200 || left != 800 || len(opened.Groups) != 4 {
		t.Errorf("open, there are %d tasks and %d left in groups %+v", singles, left, opened.Groups)
	}

	found := api.Graph{}
	if fetch(t, url+"?find=t1950", &found); !slices.Contains(found.Names, "t1950") || found.Open != g.Groups[1].Key || found.From != 800 {
		t.Errorf("t1950 is not among what is shown of %q from %d on", found.Open, found.From)
	}

	whole := api.Graph{}
	if fetch(t, url+"?most=5000", &whole); len(whole.Names) != 3001 || len(whole.Groups) != 0 {
		t.Errorf("unfolded there are %d nodes", len(whole.Names))
	}
}

func TestAForeachIsOneBoxUntilItIsOpened(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		spec := plan.New("fan")
		for name, n := range map[string]int{"copy1": 25, "copy2": 230, "few": 20} {
			list, _ := json.Marshal(make([]int, n))
			spec.Add(plan.TaskSpec{Name: name, Plugin: "demo", Foreach: &plan.Foreach{List: list}})
		}
		for i := range 30 { // alike, and no items
			spec.Add(plan.TaskSpec{Name: fmt.Sprintf("task-%d", i), Plugin: "demo"})
		}
		p := submitted(t, s.st, spec)
		s.run(t, p.ID, func(name string, e *protocol.Ending) {
			if name == "copy1[3]" || name == "copy1[24]" {
				e.Status = plan.Failed
			}
		})
		drawn := func(query string) (api.Graph, map[string]int) {
			t.Helper()
			var g api.Graph
			s.must("GET", "/plans/fan/graph"+query, "", &g)
			groups := map[string]int{}
			for i, c := range g.Counts {
				groups[fmt.Sprintf("%s from %d", g.Names[c[0]], g.Groups[i].From)] = g.Groups[i].Count
			}
			return g, groups
		}
		g, groups := drawn("")
		if want := map[string]int{"copy1 from 0": 25, "copy2 from 0": 230, "few from 0": 20}; !maps.Equal(groups, want) || len(g.Names) != 3+30 {
			t.Fatalf("there are %d nodes with the groups %v, want 33 with %v", len(g.Names), groups, want)
		}
		for i, c := range g.Counts {
			if failed := c[1+slices.Index(g.States, "failed")]; g.Groups[i].Count == 25 && failed != 2 {
				t.Errorf("of the items of copy1 %d failed, want 2", failed)
			}
			if want := map[string]string{"copy1": "failed"}[g.Names[c[0]]]; want != "" && g.States[g.State[c[0]]] != want || g.IDs[c[0]] == "" {
				t.Errorf("%s is %s, want %s; its id is %q", g.Names[c[0]], g.States[g.State[c[0]]], want, g.IDs[c[0]])
			}
		}
		if len(g.Edges) != 0 {
			t.Errorf("there are %d lines, want none", len(g.Edges)/3)
		}

		g, groups = drawn("?open=" + url.QueryEscape("of:copy2"))
		if want := map[string]int{"copy1 from 0": 25, "copy2[*] from 200": 30, "few from 0": 20}; !maps.Equal(groups, want) || slices.Index(g.Names, "copy2[0]") > slices.Index(g.Names, "copy2[199]") {
			t.Errorf("opened it has the groups %v, want %v", groups, want)
		}
		if g, _ = drawn("?find=" + url.QueryEscape("copy1[7]")); !slices.Contains(g.Names, "copy1[7]") || g.Open != "of:copy1" {
			t.Errorf("a task that is found in a group opens %q", g.Open)
		}
		if g, groups = drawn("?most=20000"); len(g.Names) != 3+275+30 || len(groups) > 0 {
			t.Errorf("unfolded it has %d nodes and the groups %v", len(g.Names), groups)
		}
	})
}

func TestWhatCannotBeFoldedByNameIsByLevel(t *testing.T) {
	for _, c := range []struct {
		about string
		name  func(i int) string
		needs func(i int) int // below 0: none
		most  int
		nodes int // at most
	}{
		{"names without numbers, side by side", letters, func(int) int { return -1 }, 100, 1},
		{"a long chain", letters, func(i int) int { return i - 1 }, 100, 100},
		{"a chain with numbers", func(i int) string { return fmt.Sprintf("t%d", i) }, func(i int) int { return i - 1 }, 100, 100},
	} {
		st := model.New(model.Options{})
		s := plan.New("p")
		for i := range 1000 {
			spec := plan.TaskSpec{Name: c.name(i), Plugin: "demo"}
			if n := c.needs(i); n >= 0 {
				spec.Needs = []string{c.name(n)}
			}
			s.Add(spec)
		}
		submitted(t, st, s)
		url := on(t, st).URL + api.Root + "/plans/p/graph?most=" + fmt.Sprint(c.most)
		var g, opened api.Graph
		fetch(t, url, &g)
		sum := 0
		for _, gr := range g.Groups {
			sum += gr.Count
		}
		for _, id := range g.IDs {
			if id != "" {
				sum++
			}
		}
		if len(g.Names) > c.nodes || sum != 1000 {
			t.Errorf("%s: %d nodes with %d tasks", c.about, len(g.Names), sum)
		}
		fetch(t, url+"&open="+g.Groups[0].Key, &opened) // an error if it were a cycle
		if want := min(200, g.Groups[0].Count); len(opened.Names) < want {
			t.Errorf("%s: opened, it has %d nodes", c.about, len(opened.Names))
		}
	}
}

// letters names a number without digits.
func letters(i int) string {
	return strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(1000+i))
}

func TestLookingOnTellsWhatChanged(t *testing.T) {
	defer v1.ReadStatesEachTime()()
	onEachStore(t, func(t *testing.T, s *site) {
		p := submitted(t, s.st, layered("live", 20, 10))
		url := s.url + "/plans/" + p.ID.String() + "/graph"
		w := worker{t, s.st, registered(t, s.st)}
		var g, again, more api.Graph
		fetch(t, url, &g)
		w.run(3)
		size, _ := fetch(t, url+"?since="+g.Layout, &again)
		succeeded := 0
		for _, state := range again.State {
			if again.States[state] == "succeeded" {
				succeeded++
			}
		}
		if succeeded != 3 || again.Names != nil || again.Layout != g.Layout || size > 1000 {
			t.Errorf("%d succeeded, in %d bytes: %+v", succeeded, size, again)
		}
		queue := queueOf(t, s.st)
		added := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "late", Queue: queue, Status: plan.Held}
		if err := s.st.AddTasks(t.Context(), p.ID, []plan.Task{added}); err != nil {
			t.Fatal(err)
		}
		if fetch(t, url+"?since="+g.Layout, &more); more.Layout == g.Layout || len(more.Names) != 21 {
			t.Errorf("after a task was added there are %v", more.Names)
		}
	})
}

func queueOf(t testing.TB, st store.Store) plan.QueueID {
	queues, err := st.Queues(t.Context())
	if err != nil || len(queues) == 0 {
		t.Fatal(queues, err)
	}
	return queues[0].ID
}

// TestLargePlansAreSmallAnswers tests the size of answers. It logs their times; make bench measures
// these.
func TestLargePlansAreSmallAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("it puts 110,000 tasks into a store")
	}
	onSQLite(t, func(t *testing.T, s *site) {
		for _, c := range []struct {
			tasks int
			query string
			bytes int
		}{
			{10_000, "/graph", 4_000},
			{10_000, "/graph?most=10000", 250_000},
			{10_000, "/timeline", 50_000},
			{100_000, "/graph", 40_000},
			{100_000, "/timeline", 50_000},
		} {
			n := fmt.Sprintf("n%d", c.tasks)
			if c.query == "/graph" {
				submitted(t, s.st, layered(n, c.tasks, 100))
			}
			url := s.url + "/plans/" + n + c.query
			var into struct{ Layout string }
			size, first := fetch(t, url, &into)
			_, again := fetch(t, url, &into)
			t.Logf("%s of %d tasks: %d bytes, %v, then %v", c.query, c.tasks, size, first.Round(time.Millisecond), again.Round(time.Millisecond))
			if size > c.bytes {
				t.Errorf("%s of %d tasks: %d bytes, want at most %d", c.query, c.tasks, size, c.bytes)
			}
		}
	})
}

func TestDrawingsTellHowFarTasksAre(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		spec := plan.New("far")
		spec.Add(plan.TaskSpec{Name: "quick", Plugin: "demo"})
		spec.Add(plan.TaskSpec{Name: "slow", Plugin: "demo"})
		submitted(t, s.st, spec)
		w := worker{t, s.st, registered(t, s.st)}
		claimed := w.turn(9)
		slow := claimed[slices.IndexFunc(claimed, func(c protocol.ClaimedTask) bool { return c.Name == "slow" })]
		said := plan.Progress{Fraction: 0.4, Text: "copied 400 of 1000"}
		if _, err := s.st.Beat(t.Context(), protocol.Beat{Instance: w.id, Progress: []protocol.Reached{{Claim: slow.Claim, Progress: said}}}); err != nil {
			t.Fatal(err)
		}
		var g api.Graph
		fetch(t, s.url+"/plans/far/graph", &g)
		if want := []api.GraphProgress{{Node: slices.Index(g.Names, "slow"), Progress: said}}; !slices.Equal(g.Progress, want) {
			t.Errorf("the graph tells %v, want %v", g.Progress, want)
		}
		var l api.Timeline
		fetch(t, s.url+"/plans/far/timeline", &l)
		if want := []api.GraphProgress{{Node: slices.Index(l.Names, "slow"), Progress: said}}; !slices.Equal(l.Progress, want) {
			t.Errorf("the time line tells %v, want %v", l.Progress, want)
		}
		w.turn(0, claimed...)
		g.Progress = nil
		if fetch(t, s.url+"/plans/far/graph?since="+g.Layout, &g); g.Progress != nil {
			t.Errorf("of what has ended the graph tells %v", g.Progress)
		}
	})
}

func TestATimelineTellsWhenTasksRan(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	st := openSQLite(t, func() time.Time { return now })
	p := submitted(t, st, migration())
	url := on(t, st).URL + api.Root + "/plans/migrate/timeline"
	w := worker{t, st, registered(t, st)}
	began := now
	step := func(seconds int) { now = now.Add(time.Duration(seconds) * time.Second) }
	list := w.turn(9)
	step(2)
	w.turn(0, list...)
	step(1)
	items := w.turn(9)
	step(3)
	if len(items) != 2 {
		t.Fatalf("%d items", len(items))
	}
	w.turn(0, items[0])
	step(1)
	var g api.Timeline
	fetch(t, url, &g)
	if want := []string{"list", "copy"}; !slices.Equal(g.Rows, want) || !slices.Equal(g.Keys, []string{"", "of:copy"}) || g.States[g.RowState[1]] != "running" || g.Size[1] != 2 {
		t.Fatalf("%+v", g)
	}
	opened := url + "?open=" + g.Keys[1]
	fetch(t, opened, &g)
	if want := []string{"list", "copy[0]", "copy[1]"}; !slices.Equal(g.Rows, want) || g.Ended || g.Now != 7000 || g.Begin != began.UnixMilli() {
		t.Fatalf("%+v", g)
	}
	if !slices.Equal(g.From, []float64{0, 3000, 3000}) || !slices.Equal(g.To, []float64{2000, 6000, -1}) || g.States[g.State[2]] != "running" {
		t.Errorf("%+v", g)
	}
	path := func() (path []string) {
		for _, l := range g.Path {
			path = append(path, fmt.Sprintf("%s row %d: %v+%v", l.Name, l.Row, l.Wait, l.To-l.From))
		}
		return path
	}
	if want := []string{"list row 0: 0+2000", "copy[1] row 2: 1000+4000"}; !slices.Equal(path(), want) {
		t.Errorf("the path up to now is %q, want %q", path(), want)
	}
	w.turn(0, items[1])
	w.turn(0, w.turn(9)...)
	step(5)
	report := w.turn(9)
	step(1)
	w.turn(0, report...)
	fetch(t, opened, &g)
	if want := []string{"list row 0: 0+2000", "copy[1] row 2: 1000+4000", "verify row 3: 0+0", "report row 4: 5000+1000"}; !slices.Equal(path(), want) {
		t.Errorf("the path is %q, want %q; the plan is %s", path(), want, p.ID)
	}
	if l := g.Path[3]; l.Queue != "demo" || l.Threads != nil || g.Path[0].Queue != "" {
		t.Errorf("report waited in queue %q with %v threads, and list in %q", l.Queue, l.Threads, g.Path[0].Queue)
	}
	if !g.Ended || g.End != 13_000 {
		t.Errorf("it ended at %v: %v", g.End, g.Ended)
	}
}

// Failed items are bars, however short they are.
func TestATimelineShowsTheFailuresOfARow(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	st := openSQLite(t, func() time.Time { return now })
	submitted(t, st, layered("wide", 300, 300))
	w := worker{t, st, registered(t, st)}
	for i := range 30 {
		claimed := w.turn(10)
		now = now.Add(time.Second)
		if i == 7 {
			w.fail(claimed[:2]...)
			claimed = claimed[2:]
		}
		now = now.Add(9 * time.Second)
		w.turn(0, claimed...)
	}
	var g api.Timeline
	fetch(t, on(t, st).URL+api.Root+"/plans/wide/timeline?rows=100", &g)
	var failed []string
	for i, s := range g.State {
		if g.States[s] == "failed" {
			failed = append(failed, fmt.Sprintf("%v to %v", g.From[i], g.To[i]))
		}
	}
	if !slices.Equal(failed, []string{"70000 to 71000"}) || !slices.IsSorted(g.From) {
		t.Errorf("failed bars: %q; bars begin at %v", failed, g.From)
	}
}

// A night between a failure and its retry is no part of the axis.
func TestATimelineHasABreakBeforeARetry(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	st := openSQLite(t, func() time.Time { return now })
	p := submitted(t, st, layered("night", 300, 300))
	w := worker{t, st, registered(t, st)}
	claimed := w.turn(300)
	now = now.Add(time.Minute)
	w.fail(claimed[0])
	w.turn(0, claimed[1:]...)
	now = now.Add(9 * time.Hour)
	if _, err := st.Retry(t.Context(), p.ID, rules.Ask{}); err != nil {
		t.Fatal(err)
	}
	w = worker{t, st, registered(t, st)} // the node was away meanwhile
	again := w.turn(1)
	now = now.Add(time.Minute)
	w.turn(0, again...)
	var g api.Timeline
	fetch(t, on(t, st).URL+api.Root+"/plans/night/timeline?rows=100", &g)
	minute, night := float64(time.Minute.Milliseconds()), float64((9 * time.Hour).Milliseconds())
	if want := [][2]float64{{minute, minute + night}}; !slices.Equal(g.Breaks, want) || g.End != 2*minute+night {
		t.Fatalf("breaks %v, want %v; the end is %v", g.Breaks, want, g.End)
	}
	if d := g.Dense[0]; len(d) != 2+g.Bins || d[2] != 299 || d[len(d)-1] != 1 {
		t.Errorf("the density is %v", d)
	}
	if l := g.Path[len(g.Path)-1]; l.Wait != minute || l.From != minute+night {
		t.Errorf("the path ends with %+v", l)
	}
}

func TestATimelineOfManyTasksTellsHowManyRan(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	st := openSQLite(t, func() time.Time { return now })
	submitted(t, st, layered("wide", 300, 300))
	w := worker{t, st, registered(t, st)}
	for range 3 {
		claimed := w.turn(100)
		now = now.Add(10 * time.Second)
		w.turn(0, claimed...)
	}
	var g api.Timeline
	fetch(t, on(t, st).URL+api.Root+"/plans/wide/timeline?rows=100", &g)
	if !slices.Equal(g.Rows, []string{"t*"}) || !slices.Equal(g.Size, []int{300}) || len(g.Dense) != 1 || len(g.Dense[0]) != 2+g.Bins {
		t.Fatalf("%+v", g)
	}
	for i, n := range g.Dense[0][2:] {
		if n < 99 || n > 101 {
			t.Errorf("in bin %d of %d there ran %v, want 100", i, g.Bins, n)
			break
		}
	}
	if !slices.Equal(g.From, []float64{0, 10_000, 20_000}) {
		t.Errorf("bars begin at %v: they lie over each other", g.From)
	}
}
