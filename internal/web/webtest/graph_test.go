//go:build browser

package webtest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// migration is ten tasks of different sorts.
func migration() *plan.Spec {
	s := plan.New("migrate")
	for _, t := range []struct{ name, needs string }{
		{"check-source", ""}, {"check-target", ""}, {"list-mailboxes", "check-source"}, {"create-domain", "check-target"}, {"copy", "list-mailboxes create-domain"},
		{"copy-calendars", "list-mailboxes create-domain"}, {"verify", "copy"}, {"switch-mx", "verify copy-calendars"}, {"notify", "switch-mx"}, {"report", "switch-mx check-source"},
	} {
		spec := plan.TaskSpec{Name: t.name, Plugin: "demo", Needs: strings.Fields(t.needs)}
		if t.name == "copy" {
			spec.Foreach = &plan.Foreach{List: json.RawMessage(`["ann", "bob", "eve", "joe"]`)}
		}
		s.Add(spec)
	}
	return s
}

// layered is n tasks in levels, each with three parents near it in the level before.
func layered(n, width int) *plan.Spec {
	s := plan.New("layered")
	for i := range n {
		t := plan.TaskSpec{Name: fmt.Sprintf("t%d", i), Plugin: "demo"}
		if i >= width {
			for _, k := range []int{-1, 0, 2} {
				t.Needs = append(t.Needs, fmt.Sprintf("t%d", (i/width-1)*width+(i%width+k+width)%width))
			}
			slices.Sort(t.Needs)
			t.Needs = slices.Compact(t.Needs)
		}
		s.Add(t)
	}
	return s
}

func lasting() func(string) (time.Duration, bool) {
	dice := rand.New(rand.NewPCG(1, 2))
	ends := map[string]int{}
	return func(name string) (time.Duration, bool) {
		n, ok := ends[name]
		if !ok {
			n = dice.IntN(1000)
			ends[name] = n
		}
		return time.Duration(2+n%29) * time.Second, n == 999
	}
}

const state = `(name) => { const i = view.names.indexOf(name); return view.state[i] < 0 ? 'group' : ['held', 'queued', 'claimed', 'running', 'succeeded', 'failed'][view.state[i]]; }`

func TestASmallGraphIsShownWalkedAndLive(t *testing.T) {
	s := serve(t, 1280, 900)
	p := s.submit(migration())
	s.run(2, 5, lasting())
	s.show("graph", p, "")
	s.clean()
	s.picture("graph-10")
	if names := ask[[]string](s, "view.names"); len(names) != 10 {
		t.Errorf("it shows %q", names)
	}
	s.do(chromedp.Focus("canvas.surface"), chromedp.KeyEvent("/"))
	s.until("a slash goes to the search", "document.activeElement === view.search")
	ask[chromedp.Void](s, "view.search.value = ''") // a key that is sent is typed too, whatever the page makes of it
	s.do(chromedp.SendKeys("input[type=search]", "switch"))
	s.until("search", `view.names[view.chosen] === 'switch-mx'`)
	s.do(chromedp.Focus("canvas.surface"))
	for _, c := range []struct{ key, name string }{
		{kb.ArrowLeft, ""}, {kb.ArrowRight, "switch-mx"}, {kb.ArrowRight, ""}, {kb.ArrowLeft, "switch-mx"},
	} {
		s.do(chromedp.KeyEvent(c.key))
		if c.name != "" {
			s.until("key", `view.names[view.chosen] === '`+c.name+`'`)
		}
	}
	if said := ask[string](s, "document.querySelector('.draw-said').textContent"); !strings.HasPrefix(said, "switch-mx, waiting; needs 2, needed by 2") {
		t.Errorf("it says %q", said)
	}
	s.picture("graph-10-chosen")
	s.do(chromedp.KeyEvent(kb.Enter))
	s.until("enter", "opened.length === 1 && opened[0] === view.ids[view.chosen]")
	s.do(chromedp.KeyEvent(kb.Escape))
	s.until("escape", "view.chosen === -1")

	s.run(20, 100, lasting())
	s.until("live", "("+state+")('report') === 'succeeded'")
	if asked := ask[[]string](s, "asked.filter((a) => a.includes('/graph'))"); len(asked) > 4 { // at first, a moment later, at the plan's end, now and then
		t.Errorf("states of tasks that are shown were asked for: %q", asked)
	}
	s.until("the page listens no more when it is destroyed", "(mounted.destroy(), document.querySelector('.drawing') === null)")
	s.clean()
}

func TestAWideFanBeginsWithItsRootAndAStateIsGoneTo(t *testing.T) {
	s := serve(t, 1280, 900)
	spec := plan.New("fan")
	spec.Add(plan.TaskSpec{Name: "find", Plugin: "demo"})
	for i := range 60 {
		spec.Add(plan.TaskSpec{Name: fmt.Sprintf("resize-%d", i), Plugin: "demo", Needs: []string{"find"}})
	}
	p := s.submit(spec)
	s.run(1000, 61, func(name string) (time.Duration, bool) { return time.Second, name == "resize-3" })
	s.show("graph", p, "")
	const seen = `(name) => {
		const i = view.names.indexOf(name), v = view.surface.view, { width, height } = view.surface.size;
		return view.x[i] >= v.x && view.x[i] + view.w <= v.x + width / v.kx && view.y[i] >= v.y && view.y[i] + view.h <= v.y + height / v.ky;
	}`
	if !ask[bool](s, "("+seen+")('find')") || ask[bool](s, "("+seen+")('resize-3')") {
		t.Error("it does not begin with its root")
	}
	s.picture("graph-fan")
	ask[chromedp.Void](s, `[...document.querySelectorAll('.legend-states button')].find((b) => b.textContent.includes('failed')).click()`)
	s.until("what failed is seen", "("+seen+")('resize-3')")
	s.picture("graph-fan-failed")
	s.clean()

	s.show("timeline", p, "")
	if y, rows := ask[float64](s, "view.surface.view.y"), ask[int](s, "view.rows.length"); y > -28 || rows != 61 {
		t.Errorf("the time line of %d rows begins %v pixels below the first", rows, y+28)
	}
	s.clean()
}

func TestHandlersLieInALaneOfTheirOwn(t *testing.T) {
	s := serve(t, 1280, 900)
	spec := migration()
	for name, needs := range map[string]string{"undo-the-switch": "switch-mx", "mail-what-failed": "check-source verify", "tidy-up": "notify report"} {
		spec.Add(plan.TaskSpec{Name: name, Plugin: "demo", Needs: strings.Fields(needs), When: plan.AnyFailed})
	}
	for name, needs := range map[string]string{"rollback": "", "tell": "rollback"} {
		spec.Add(plan.TaskSpec{Name: name, Plugin: "demo", Needs: strings.Fields(needs), When: plan.AllDone, Finally: true})
	}
	p := s.submit(spec)
	s.run(3, 8, lasting())
	s.show("graph", p, "")
	last := ask[[]string](s, "view.names.filter((_, i) => view.x[i] >= view.last[0] && view.y[i] >= view.last[1] && view.y[i] < view.last[1] + view.last[3])")
	slices.Sort(last)
	if want := []string{"rollback", "tell"}; !slices.Equal(last, want) {
		t.Errorf("in the frame of finally there are %q, want %q", last, want)
	}
	lane := ask[[]string](s, "view.names.filter((_, i) => view.y[i] >= view.lane[1] && view.y[i] + view.h <= view.lane[1] + view.lane[3])")
	slices.Sort(lane)
	if want := []string{"mail-what-failed", "tidy-up", "undo-the-switch"}; !slices.Equal(lane, want) {
		t.Errorf("in the lane there are %q, want %q", lane, want)
	}
	s.picture("graph-handlers")
	s.show("graph", p, "&theme=dark")
	s.picture("graph-handlers-dark")
	s.clean()
}

func TestAFailureThatThePlanAllowsIsShownSo(t *testing.T) {
	s := serve(t, 1280, 900)
	spec := plan.New("lenient")
	spec.Add(plan.TaskSpec{Name: "may-fail", Plugin: "demo", ContinueOnError: true})
	spec.Add(plan.TaskSpec{Name: "after", Plugin: "demo", Needs: []string{"may-fail"}})
	spec.Add(plan.TaskSpec{Name: "long", Plugin: "demo"})
	p := s.submit(spec)
	s.show("graph", p, "")
	s.run(2, 2, func(name string) (time.Duration, bool) {
		return map[string]time.Duration{"long": time.Minute}[name] + time.Second, name == "may-fail"
	})
	s.until("it is allowed as soon as it happens", "view.urgent(view.names.indexOf('may-fail')) === 'allowed' && view.words(view.names.indexOf('may-fail')).startsWith('allowed')")
	s.until("and counted so", "[...document.querySelectorAll('.legend-states button')].filter((b) => !b.parentElement.hidden).some((b) => /^allowed\\s+1$/.test(b.textContent.trim()))")
	s.picture("graph-allowed")
	s.clean()
}

func TestATallGraphHasTheHeightOfTheWindow(t *testing.T) {
	s := serve(t, 1280, 1500)
	spec := plan.New("tall")
	for i := range 60 {
		spec.Add(plan.TaskSpec{Name: fmt.Sprintf("task-%d", i), Plugin: "demo"})
		spec.Add(plan.TaskSpec{Name: fmt.Sprintf("after-%d", i), Plugin: "demo", Needs: []string{fmt.Sprintf("task-%d", i), "task-0"}[:1+min(i, 1)]})
	}
	p := s.submit(spec)
	const gap = "innerHeight - scrollY - view.surface.canvas.getBoundingClientRect().bottom"
	for _, height := range []int{1500, 1100} {
		s.resize(1280, height, 1)
		s.show("graph", p, "")
		s.until("it ends with the window", gap+" >= 0 && "+gap+" < 40")
		s.until("all of it is seen", "view.sees()")
	}
	s.resize(1280, 1300, 1)
	s.until("it grows with the window", gap+" >= 0 && "+gap+" < 40")
	s.until("all of it is seen still", "view.sees()")
	s.clean()
}

func TestWhatRunsShowsHowFarItIs(t *testing.T) {
	s := serve(t, 1280, 900)
	p := s.submit(migration())
	s.run(1, 1, lasting()) // and the next task runs
	runs := s.running[0].task
	say := func(fraction float64) {
		t.Helper()
		said := []protocol.Reached{{Claim: runs.Claim, Progress: plan.Progress{Fraction: fraction, Text: "read 3 of 5"}}}
		if _, err := s.st.Beat(t.Context(), protocol.Beat{Instance: s.node, Progress: said}); err != nil {
			t.Fatal(err)
		}
	}
	say(0.62)
	s.show("graph", p, "")
	s.until("the graph tells it", "view.words(view.names.indexOf('"+runs.Name+"')).startsWith('running; 62% read 3 of 5')")
	s.picture("graph-progress")
	say(0.75)
	s.until("it is asked again", "view.words(view.names.indexOf('"+runs.Name+"')).startsWith('running; 75% ')")
	s.show("timeline", p, "")
	s.until("the time line tells it", "view.bars.some((b) => b.name === '"+runs.Name+"' && view.words(b).startsWith('running; 75% read 3 of 5'))")
	s.picture("timeline-progress")
	s.clean()
}

func TestTheTimeLineFoldsAndOpensAForeach(t *testing.T) {
	s := serve(t, 1280, 900)
	p := s.submit(migration())
	s.run(2, 100, lasting())
	s.show("timeline", p, "")
	const rows = "view.rows.map((r) => r.name)"
	if names := ask[[]string](s, rows); len(names) != 10 || !slices.Contains(names, "copy") {
		t.Errorf("it has the rows %q", names)
	}
	at := ask[[]float64](s, `(() => { const r = view.rows.findIndex((r) => r.name === 'copy'), box = view.surface.canvas.getBoundingClientRect();
		return [box.x + 40, box.y + r * 24 + 12 - view.surface.view.y]; })()`)
	s.do(chromedp.MouseClickXY(at[0], at[1]))
	s.until("its items have rows", rows+".includes('copy[3] (joe)') && !"+rows+".includes('copy')")
	s.picture("timeline-opened")
	ask[chromedp.Void](s, "view.close.click()")
	s.until("it is closed", "view.rows.length === 10")
	s.do(chromedp.Focus("canvas.surface"))
	ask[chromedp.Void](s, "view.choose(view.bars.findIndex((b) => b.name.startsWith('copy[')))")
	s.do(chromedp.KeyEvent("o"))
	s.until("a key opens it", "view.rows.length === 13")
	s.clean()
}

// Names with a long common beginning stay distinct after they are cut.
func TestNamesThatAreCutKeepWhereTheyDiffer(t *testing.T) {
	s := serve(t, 390, 800)
	spec := plan.New("long")
	const begin = "migrate-customer-database-of-the-european-region-"
	for _, end := range []string{"north-read", "north-write", "south-read", "south-write-and-check"} {
		spec.Add(plan.TaskSpec{Name: begin + end, Plugin: "demo"})
	}
	p := s.submit(spec)
	s.run(4, 4, lasting())
	for _, module := range []string{"graph", "timeline"} {
		s.show(module, p, "")
		labels := ask[[]string](s, `(() => { const c = view.surface.c; c.font = '12.5px ' + view.surface.colours.font;
			return view.rows ? view.rows.map((r) => view.cut(c, r, view.gutter() - 34)) : view.names.map((_, i) => view.label(c, i, view.w - 40)); })()`)
		slices.Sort(labels)
		if len(slices.Compact(slices.Clone(labels))) != 4 {
			t.Errorf("the labels of the %s are %q", module, labels)
		}
		for _, l := range labels {
			if !strings.Contains(l, "…") || !strings.HasSuffix(l, "read") && !strings.HasSuffix(l, "write") && !strings.HasSuffix(l, "ck") {
				t.Errorf("the %s cuts a label as in %q", module, l)
			}
		}
		s.picture(module + "-long-names")
		s.clean()
	}
}

func TestItemsThatAreMadeAppear(t *testing.T) {
	s := serve(t, 1280, 900)
	p := s.submit(migration())
	s.show("graph", p, "")
	if n := ask[int](s, "view.n"); n != 10 {
		t.Errorf("it shows %d tasks", n)
	}
	s.run(4, 4, lasting())
	s.until("the items are there", "view.groups.get(view.names.indexOf('copy'))?.count === 4 && view.n === 10")
	ask[chromedp.Void](s, "view.enter(view.names.indexOf('copy'))")
	s.until("they are shown", "view.n === 14")
	s.until("all is seen still", "view.sees()")
	// An answer that was made before a change, and comes after it, does not take it back.
	ask[chromedp.Void](s, `{
		const report = view.ids[view.names.indexOf('report')], get = view.api.get;
		view.api = { get: async (path) => { const answer = await get(path); view.event({ task: report, state: 'running' }); return answer; } };
		view.load(true).then(() => { view.api = { get }; window.reported = true; });
	}`)
	s.until("the answer is there", "window.reported === true")
	if got := ask[string](s, "("+state+")('report')"); got != "running" {
		t.Errorf("the report is %s, and was told to run", got)
	}
	s.clean()
}

func TestALargeGraphIsFoldedOpenedAndPanned(t *testing.T) {
	s := serve(t, 1280, 900)
	wide := migration()
	wide.Tasks[4].Foreach.List = numbers(10_000)
	p := s.submit(wide)
	s.run(500, 4000, lasting())
	s.show("graph", p, "")
	s.picture("graph-foreach-10000")
	s.do(chromedp.Focus("canvas.surface"))
	ask[chromedp.Void](s, "view.choose(view.names.indexOf('copy'))")
	s.do(chromedp.KeyEvent(kb.Enter))
	s.until("a group is opened", "view.ids.filter(Boolean).length > 200 && view.names[view.chosen] === 'copy[0]'")
	s.picture("graph-foreach-opened")
	ask[chromedp.Void](s, `(() => { // an event of the plan overtakes the search
		const api = view.api;
		view.api = { ...api, get: (path) => {
			if (path.includes('find=')) { view.api = api; queueMicrotask(() => view.load(true)); } // as an event does: after load has begun
			return api.get(path);
		} };
	})()`)
	s.do(chromedp.SendKeys("input[type=search]", "copy[7777]"), chromedp.KeyEvent(kb.Enter))
	s.until("a task in a group is found", "view.names[view.chosen] === 'copy[7777]'")
	s.run(500, 2000, lasting())
	s.until("counts of groups are live", "view.totals[4] > 5500")
	ask[chromedp.Void](s, "view.whole.click()")
	s.until("all are shown", "view.n === 10010")
	s.picture("graph-foreach-unfolded")
	s.pan()
	s.clean()
}

func TestTheItemsOfAForeachAreFoldedAndOpenedByAClick(t *testing.T) {
	s := serve(t, 1280, 900)
	spec := migration()
	var users []string
	for i := range 400 {
		users = append(users, fmt.Sprintf("user-%d", i))
	}
	spec.Tasks[4].Foreach.List, _ = json.Marshal(users)
	p := s.submit(spec)
	s.run(20, 300, func(name string) (time.Duration, bool) { return time.Second, name == "copy[7]" || name == "copy[101]" })
	s.show("graph", p, "")
	if n, said := ask[int](s, "view.n"), ask[string](s, "view.note.textContent"); n != 10 || said != "A foreach is one box. Open it to see its items." {
		t.Errorf("it shows %d nodes, and says %q", n, said)
	}
	s.picture("graph-foreach-400")
	if words := ask[string](s, "view.words(view.names.indexOf('copy'))"); !strings.HasPrefix(words, "running; 400 items: ") || !strings.Contains(words, "2 failed") {
		t.Errorf("the items are said to be %q", words)
	}
	s.run(20, 50, func(string) (time.Duration, bool) { return time.Second, false })
	s.until("counts of items are live", "view.words(view.names.indexOf('copy')).includes('348 succeeded') || view.totals[4] > 340")
	click := func(node string) {
		t.Helper()
		at := ask[[]float64](s, `(() => {
			const i = view.names.indexOf('`+node+`'), v = view.surface.view, box = view.surface.canvas.getBoundingClientRect();
			return [box.x + (view.x[i] + view.w / 2 - v.x) * v.kx, box.y + (view.y[i] + view.h / 2 - v.y) * v.ky];
		})()`)
		s.do(chromedp.MouseClickXY(at[0], at[1]))
	}
	click("copy")
	s.until("a click chooses", "view.names[view.chosen] === 'copy' && view.tip.textContent.includes('Click once more to open its items')")
	click("copy")
	s.until("another one opens", "view.ids.filter(Boolean).length === 210 && view.names[view.chosen] === 'copy[0]'")
	if title := ask[string](s, "view.title(view.names.indexOf('copy[101]'))"); title != "copy[101] (user-101)" {
		t.Errorf("an item is called %q", title)
	}
	s.picture("graph-foreach-400-opened")
	if cut := ask[string](s, "(view.labels.delete(0), view.titles[0] = 'copy[0] (somebody-with-a-long-name@example.com)', view.names[0] = 'copy[0]', view.label(view.surface.c, 0, 150))"); !strings.HasPrefix(cut, "copy[0] (somebody") || !strings.HasSuffix(cut, "…)") {
		t.Errorf("a long label is cut as in %q", cut)
	}
	ask[chromedp.Void](s, "view.close.click()")
	s.until("it is closed", "view.n === 10")
	s.show("graph", p, "&theme=dark")
	s.picture("graph-foreach-400-dark")
	s.clean()
}

func numbers(n int) json.RawMessage {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	text, _ := json.Marshal(list)
	return text
}

// sizes are those up to which a test draws plans. SLUICE_TEST_WHOLE=1 draws the large ones as well, as internal/bench does, which measures that.
func sizes[T any](all ...T) []T {
	if os.Getenv("SLUICE_TEST_WHOLE") == "" {
		return all[:len(all)-1]
	}
	return all
}

func TestPlansOfAnySizeAreDrawnAndPanned(t *testing.T) {
	s := serve(t, 1280, 900)
	type size struct {
		tasks, width int
		unfold       bool
	}
	for _, c := range sizes(size{1000, 40, false}, size{10_000, 100, true}, size{100_000, 1000, false}) {
		name := fmt.Sprintf("graph-%d", c.tasks)
		p := s.submit(layered(c.tasks, c.width))
		s.run(1000, c.tasks/2, lasting())
		s.show("graph", p, "")
		if c.unfold {
			s.picture(name)
			name += "-unfolded"
			ask[chromedp.Void](s, "view.whole.click()")
			s.until("all are shown", fmt.Sprintf("view.n === %d", c.tasks))
		}
		s.picture(name)
		ask[chromedp.Void](s, "view.choose(-1), view.surface.zoom(1.2 / view.surface.view.kx)") // a whole graph may fit
		s.picture(name + "-in")
		s.pan()
		s.clean()
	}
}

func TestTheTimelineShowsWhatRanAndThePath(t *testing.T) {
	s := serve(t, 1280, 900)
	p := s.submit(migration())
	s.run(3, 8, lasting())
	s.show("timeline", p, "")
	s.picture("timeline-10-running")
	s.clean()
	s.run(3, 100, lasting())
	s.until("it is live", "view.t.ended && view.rows.some((r) => r.name === 'report')")
	s.picture("timeline-10")
	s.do(chromedp.Focus("canvas.surface"), chromedp.KeyEvent("c"))
	s.until("the path's first task is chosen", "view.bars[view.chosen].link === view.t.path[0]")
	s.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	s.until("a task is opened", "opened.length === 1")

	type size struct{ tasks, width int }
	for _, c := range sizes(size{300, 20}, size{10_000, 100}, size{100_000, 1000}) {
		p := s.submit(layered(c.tasks, c.width))
		s.run(500, c.tasks*3/4, lasting())
		s.show("timeline", p, "")
		s.picture(fmt.Sprintf("timeline-%d", c.tasks))
		ask[chromedp.Void](s, "view.surface.zoom(6)")
		s.picture(fmt.Sprintf("timeline-%d-in", c.tasks))
		s.pan()
		s.clean()
	}
}

// A plan of a few milliseconds fills the width at more pixels a millisecond than a long plan is ever enlarged to.
// The night between a failure and its retry is a break of the axis.
func TestTheTimeLineHasABreakBeforeARetry(t *testing.T) {
	s := serve(t, 1280, 700)
	spec := migration()
	p := s.submit(spec)
	broken := true
	lasts := func(name string) (time.Duration, bool) {
		d, _ := lasting()(name)
		return d, broken && name == "verify"
	}
	s.run(3, 100, lasts)
	s.now.Add(int64(9 * time.Hour))
	if _, err := s.st.Retry(s.Context(), p.ID, rules.Ask{}); err != nil {
		t.Fatal(err)
	}
	broken = false
	if err := s.st.Register(s.Context(), plan.Instance{ID: s.node, Node: "n", Host: "h", Threads: 1000, Lease: time.Hour, Plugins: []string{"demo"}}); err != nil {
		t.Fatal(err)
	}
	s.run(3, 100, lasts)
	s.show("timeline", p, "")
	s.until("a break", "view.breaks.length === 1 && view.end() < 3600e3 && view.at(view.end()) > 9 * 3600e3")
	s.picture("timeline-break")
	s.clean()
}

func TestTheTimeLineOfAShortPlanIsEnlarged(t *testing.T) {
	s := serve(t, 1280, 900)
	p := s.submit(migration())
	s.run(3, 100, func(string) (time.Duration, bool) { return time.Millisecond, false })
	s.show("timeline", p, "")
	const pixels = "view.surface.view.kx"
	whole := ask[float64](s, pixels)
	ask[chromedp.Void](s, "view.surface.zoom(4)")
	if large := ask[float64](s, pixels); large < 3.9*whole {
		t.Errorf("a millisecond has %v pixels, and %v when it is enlarged four-fold", whole, large)
	}
	s.pan()
	s.clean()
}

// pinch draws two fingers apart on what is drawn, and checks that it is larger then; then it moves it by one.
func (s *site) pinch() {
	s.Helper()
	touch := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
		s.Helper()
		if points == nil {
			points = []*input.TouchPoint{}
		}
		if _, err := chromedp.Call(s.page, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points}); err != nil {
			s.Fatal(err)
		}
	}
	at := func(id, x, y float64) *input.TouchPoint { return &input.TouchPoint{X: x, Y: y, ID: &id} }
	before := ask[float64](s, "view.surface.view.kx")
	touch("touchStart", at(1, 190, 220), at(2, 230, 220))
	for d := 5.0; d <= 60; d += 5 {
		touch("touchMove", at(1, 190-d, 220), at(2, 230+d, 220))
	}
	touch("touchEnd")
	s.until("two fingers enlarge", fmt.Sprintf("view.surface.view.kx > %v", before*2))
	x := ask[float64](s, "view.surface.view.x * view.surface.view.kx")
	touch("touchStart", at(1, 300, 220))
	for d := 5.0; d <= 60; d += 5 {
		touch("touchMove", at(1, 300-d, 220))
	}
	touch("touchEnd")
	s.until("a finger moves", fmt.Sprintf("Math.abs(view.surface.view.x * view.surface.view.kx - %v - 60) < 10", x))
}

func TestDrawingsAreReadOnAPhoneAndInTheDark(t *testing.T) {
	for _, module := range []string{"graph", "timeline"} {
		s := serve(t, 390, 800)
		p := s.submit(migration())
		s.run(3, 9, lasting())
		s.resize(390, 800, 2)
		s.show(module, p, "")
		s.picture(module + "-phone")
		if wide := ask[float64](s, "document.documentElement.scrollWidth"); wide > 390 {
			t.Errorf("%s is %v pixels wide on a phone", module, wide)
		}
		s.pinch()
		s.resize(1280, 900, 1)
		s.show(module, p, "&theme=dark")
		s.picture(module + "-dark")
		dark := ask[string](s, "view.surface.colours.text")
		ask[chromedp.Void](s, "document.documentElement.dataset.theme = 'light'")
		s.until("the colours follow the theme", "view.surface.colours.text !== '"+dark+"'")
		if light := ask[string](s, "view.surface.colours.text"); light == dark || dark == "" {
			t.Errorf("%s has text of %q, and of %q in the dark", module, light, dark)
		}
		s.clean()
	}
}
