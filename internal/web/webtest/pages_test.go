//go:build browser

package webtest

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	_ "modernc.org/sqlite"

	"github.com/seed-1177d267/sluice/internal/polltest"
)

// A file whose task "copy" fails until a file is there.
func nightly(dir string) string {
	return `plan: nightly
params: {domain: example.com}
tasks:
  list:
    run: echo '["alice", "bob"]' > "$SLUICE_OUTPUT"; echo listed "$domain"
  copy:
    needs: [list]
    description: copies what list found
    run: |
      printf 'copying \033[32malice\033[0m\n'
      echo 'the target is not there' >&2
      test -e ` + filepath.Join(dir, "target") + `
  verify:
    needs: [copy]
    run: |
      echo '{"copied": 2, "bytes": 12345678901234567890}' > "$SLUICE_OUTPUT"
  report:
    needs: [verify]
    run: echo done
`
}

func TestAPlanFromItsFileToItsEnd(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.browse(light)
	b.expect("status of 422") // the file with a mistake, below
	b.expect("/ui/graph.js")  // which may not be there
	b.open("/ui/")
	b.sees("main", "There are no plans yet")
	b.click("a", "Submit a plan")
	b.until(`document.activeElement.id === 'file'`)
	paste := func(text string) {
		quoted, _ := json.Marshal(text)
		b.js(`{ const t = document.getElementById('file'); t.focus(); t.select(); document.execCommand('insertText', false, ` + string(quoted) + `); }`)
	}
	paste(strings.Replace(nightly(s.dir), "needs: [copy]", "needs: [cpoy]", 1))
	b.click("button[type=submit]", "Submit")
	b.sees("#mistakes", "14:13")
	b.sees("#mistakes", "copy") // which it suggests
	b.until(`document.querySelectorAll('.gutter .wrong').length === 1`)
	b.shot("submit-mistake")
	paste(nightly(s.dir))
	b.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl))) // Ctrl
	b.until(`/^\/ui\/plans\/[0-9a-f]{24}$/.test(location.pathname)`)
	b.sees("h1", "nightly #1")
	b.sees(".advice", "Nobody runs it")
	b.shot("plan-stalled")
	b.click(".tabs a", "Pending")
	b.sees(".groups", "list")
	b.shot("plan-waiting")

	// The tab is watched from here on: it loads nothing again.
	b.js(`window.stayed = true`)
	b.click(".tabs a", "Tasks")
	b.sees(".trow", "copy")
	s.node()
	b.sees("h1", "failed")
	b.sees(".trow", "exit status 1")
	b.shot("plan-failed")
	b.click(".tabs a", "Failures")
	b.sees(".groups", "exit status 1")
	b.sees(".groups details", "the target is not there")
	b.shot("plan-failures")
	b.click(".groups a", "In the table")
	b.until(`[...document.querySelectorAll('.trow')].filter((e) => !e.hidden).length === 1`)
	b.click(".trow a", "copy")
	b.sees(".log", "the target is not there")
	b.sees(".log .fg-green", "alice")
	b.sees(".links", "list")
	b.sees(".links", "verify")
	b.shot("task-failed")

	if err := os.WriteFile(filepath.Join(s.dir, "target"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	b.click("button", "Run again…")
	b.sees("dialog .preview", "3 tasks will run.")
	b.sees("dialog .preview code", "sluice plan retry nightly#1 copy ")
	b.click("dialog .buttons button", "Run")
	b.sees(".said", "will run again")
	b.sees("h1", "succeeded")
	b.click(".crumbs a", "nightly #1")
	b.sees("h1", "succeeded")
	b.click(".tabs a", "Tasks")
	b.click(".trow a", "verify")
	b.sees(".code", "12345678901234567890") // every digit
	b.shot("task-output")
	if !eval[bool](b, `window.stayed === true`) {
		t.Error("the page was loaded anew on the way")
	}
	b.do(chromedp.Reload()) // what an address shows survives that
	b.sees("h1", "verify")
	b.open("/ui/")
	b.sees(".plans", "4 of 4")
}

// hostile is text that runs if anybody takes it for HTML.
const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`

func TestStoredScriptsDoNotRun(t *testing.T) {
	t.Parallel()
	s := serve(t)
	quoted, _ := json.Marshal(hostile)
	yaml := fmt.Sprintf(`plan: hostile
params: {what: %[1]s}
tasks:
  bad:
    description: %[1]s
    run: [sh, -c, 'printf "%%s" "$0" >&2; printf "%%s" "$1" > "$SLUICE_OUTPUT"', '%[2]s', '%[1]s']
  each:
    foreach: [%[1]s]
    run: [echo, "${{ item }}"]
  worse:
    run: [sh, -c, 'echo "$0"; exit 3', '%[2]s']
`, quoted, hostile)
	id := s.submit(yaml)
	var q struct{ ID string }
	if err := json.Unmarshal(s.ask("POST", "/queues", "application/json", `{"name": "renamed", "plugin": "nobody", "threads": 1}`), &q); err != nil {
		t.Fatal(err)
	}
	plain := strings.Repeat("a1", 12)
	s.ask("POST", "/tasks", "application/json", fmt.Sprintf(`{"tasks": [{"id": %q, "name": "renamed", "queue_id": %q, "params": {"x": %s}}]}`, plain, q.ID, quoted))
	// Sluice refuses such names, which only another program can have written.
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.store, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"queues", "tasks"} {
		if _, err := db.Exec("PRAGMA busy_timeout = 60000; UPDATE "+table+" SET name = ? WHERE name = 'renamed'", hostile); err != nil {
			t.Fatal(err)
		}
	}
	s.node()
	s.wait(id, "failed")
	b := s.browse(light)
	seen := func(selector string) {
		t.Helper()
		b.sees(selector, "<img src=x")
		if eval[bool](b, `Boolean(window.hacked) || document.querySelectorAll('main img, main script').length > 0`) {
			t.Errorf("what is shown in %s became HTML", selector)
		}
	}
	b.open("/ui/tasks/" + plain)
	seen("h1")
	b.open("/ui/tasks/" + s.task(id, "bad"))
	seen(".log")
	seen(".facts")
	seen(".folded, .code")
	b.open("/ui/plans/" + id + "/params")
	seen(".code")
	b.open("/ui/plans/" + id + "/tasks")
	b.sees(".trow", "worse")
	b.open("/ui/queues")
	seen(".queues")
	b.open("/ui/plans/" + id + "/failures")
	b.sees(".groups", "worse")
}

// contrast returns the texts of a page that stand out too little from what is behind them (WCAG 2.2, 1.4.3).
const contrast = `(() => {
  const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return [m[0], m[1], m[2], m.length > 3 ? m[3] : 1]; };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; if (c[3] > 0) return over(c, behind(e.parentElement)); } return [255, 255, 255]; };
  const bad = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) {
    const e = n.parentElement;
    if (!n.data.trim() || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const s = getComputedStyle(e), back = behind(e), front = over(parse(s.color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.add(e.className + ' "' + n.data.trim().slice(0, 40) + '" ' + ratio.toFixed(2));
  }
  return [...bad];
})()`

// nameless returns what can be pressed or filled in and has no name for who cannot see it.
const nameless = `[...document.querySelectorAll('main a, main button, main input, main select, main textarea, header a, header button')].filter((e) => e.checkVisibility({ visibilityProperty: true }) &&
  !(e.innerText?.trim() || e.getAttribute('aria-label') || e.labels?.length || e.getAttribute('aria-hidden'))).map((e) => e.outerHTML.slice(0, 120))`

// squeezed finds text that has no room beside what stands next to it.
const squeezed = `[...document.querySelectorAll('main *')].filter((e) => e.offsetWidth && e.offsetWidth < 90 && e.offsetHeight > 150 && (e.innerText || '').length > 30).map((e) => e.innerText.slice(0, 40))`

func TestEveryPageInLightAndDarkAndOnAPhone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.submit(nightly(s.dir))
	s.node()
	s.wait(id, "failed")
	long := s.submit(`plan: a-long-plan_with-a-name-that-goes-on-and-on
queues: {slow: {plugin: exec, threads: 2}}
tasks:
  mailbox:
    queue: slow
    foreach: ["alice@example.com", "bob@example.com", "carol@example.com", "dave@example.com", "erin@example.com", "frank@example.com"]
    run: [sh, -c, 'i=0; while [ $i -lt 600 ]; do echo "copied message $i of $0"; i=$((i+1)); sleep 1; done', "${{ item }}"]
  broken:
    run: echo "cannot connect to 10.0.0.17:993 after 3 attempts" >&2; exit 69
    retry: {attempts: 2, delay: 10ms}
    continue-on-error: true
  sum-up-of-all-that-was-copied-before-this:
    needs: [mailbox]
    run: echo all
  mail-what-became-of-it:
    needs: [mailbox, broken]
    when: all_done
    run: echo mailed
`)
	s.submit("plan: tidy-up\ntasks: {tidy: {run: 'true'}}\n")
	var running struct{ Tasks []struct{ ID, Name string } }
	polltest.Until(t, patience, "two mailboxes are copied", func() bool {
		if err := json.Unmarshal(s.ask("GET", "/plans/"+long+"/tasks?state=running", "", ""), &running); err != nil {
			t.Fatal(err)
		}
		running.Tasks = slices.DeleteFunc(running.Tasks, func(task struct{ ID, Name string }) bool { return !strings.HasPrefix(task.Name, "mailbox[") })
		return len(running.Tasks) >= 2
	})
	s.ask("PATCH", "/balance", "application/json", `{"queues": [["slow"], ["exec", "urgent"]], "max_tasks": {"* 07:00": 5, "6 07:00": 15}, "disabled": null}`)
	s.groups()
	s.schedules()
	asks := s.submit(asking)
	s.ask("POST", "/schedules/nightly/run", "application/json", "")
	dialogs := []struct{ name, path, press, sees string }{
		{"plan-cancel", "/ui/plans/" + long, "Cancel", "A clean-up will not finish: mail-what-became-of-it."},
		{"plan-again", "/ui/plans/" + id, "Run again…", "will run."},
		{"keys", "/ui/", "?", "Keys"},
	}
	pages := []struct{ name, path, sees string }{
		{"plans", "/ui/", "tidy-up"},
		{"plans-filtered", "/ui/?state=failed&q=NIGHT", "nightly #1"},
		{"plans-none", "/ui/?q=nosuch", "No plan is like that"},
		{"plan-graph", "/ui/plans/" + long, "Graph"},
		{"plan-timeline", "/ui/plans/" + long + "/timeline", "Time line"},
		{"plan-tasks", "/ui/plans/" + long + "/tasks", "broken"},
		{"plan-waiting", "/ui/plans/" + long + "/waiting", "wait"},
		{"plan-failures", "/ui/plans/" + long + "/failures", "exit status 69"},
		{"plan-failed", "/ui/plans/" + id, "No other task failed like it"},
		{"plan-file", "/ui/plans/" + id + "/file", "plan: nightly"},
		{"plan-params", "/ui/plans/" + id + "/params", "example.com"},
		{"task-running", "/ui/tasks/" + running.Tasks[0].ID, "copied message"},
		{"task-held", "/ui/tasks/" + s.task(long, "sum-up-of-all-that-was-copied-before-this"), "Why it is not running"},
		{"task-asks", "/ui/tasks/" + s.task(asks, "ask"), "Switch the mailboxes?"},
		{"task-failed", "/ui/tasks/" + s.task(id, "copy"), "the target is not there"},
		{"submit", "/ui/submit", "Params"},
		{"queues", "/ui/queues", "slow"},
		{"tasks", "/ui/tasks?queue=slow", "mailbox"},
		{"no-plan", "/ui/plans/nosuch", "No such plan"},
		{"task-items", "/ui/tasks/" + s.task(long, "mailbox"), "Items"},
		{"groups", "/ui/groups", "acme-mail-and-calendars-of-all-branches"},
		{"nodes", "/ui/nodes", "mailbox"},
		{"schedules", "/ui/schedules", "berlin"},
		{"schedule", "/ui/schedules/nightly", "plan: nightly"},
		{"balance", "/ui/balance", "Saturday"},
		{"login", "/ui/login?next=https://evil.example/", "Log in"},
		{"no-task", "/ui/tasks/000000000000000000000000", "No such task"},
		{"no-page", "/ui/nowhere", "No such page"},
	}
	for _, l := range []struct {
		name string
		look
	}{{"light", light}, {"dark", dark}, {"phone", phone}, {"phone-dark", look{width: 390, height: 844, phone: true, dark: true}}} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			mine := *s
			mine.T = t
			b := mine.browse(l.look)
			b.expect("000000000000000000000000") // which is not there
			b.expect("/ui/nowhere")
			b.expect("/plans/nosuch")
			look := func(name string) {
				b.shot(name + "-" + l.name)
				if wide := eval[[]int](b, `[document.documentElement.scrollWidth, innerWidth]`); wide[0] > wide[1] {
					t.Errorf("%s scrolls sideways: it is %d wide on %d", name, wide[0], wide[1])
				}
				if bad := eval[[]string](b, squeezed); len(bad) > 0 {
					t.Errorf("%s has text with a word or less to a line: %q", name, bad)
				}
				if bad := eval[[]string](b, contrast); len(bad) > 0 {
					t.Errorf("%s has too little contrast: %s", name, strings.Join(bad, "; "))
				}
				if bad := eval[[]string](b, nameless); len(bad) > 0 {
					t.Errorf("%s has what has no name: %s", name, strings.Join(bad, "; "))
				}
				if bad := b.axe(); len(bad) > 0 {
					t.Errorf("%s: axe finds\n%s", name, strings.Join(bad, "\n"))
				}
			}
			for _, p := range pages {
				b.open(p.path)
				b.sees("main", p.sees)
				b.until(`document.querySelector('.tab')?.innerText !== ''`) // what is drawn comes later
				look(p.name)
			}
			b.open("/ui/")
			b.click(".plans button", "⋯")
			b.sees(".plans .about", "Submitted")
			look("plans-about")
			for _, d := range dialogs {
				b.open(d.path)
				b.click("header button, .head button", d.press)
				b.sees("dialog", d.sees)
				look(d.name)
				if wide := eval[[]int](b, `[document.querySelector('dialog').scrollWidth, document.querySelector('dialog').clientWidth]`); wide[0] > wide[1] {
					t.Errorf("the dialog of %s scrolls sideways: it is %d wide on %d", d.name, wide[0], wide[1])
				}
			}
		})
	}
}

func TestTheThemeIsAsTheSystemsUntilItIsChosen(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.browse(dark)
	b.open("/ui/")
	back := func() string { return eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	night := back()
	b.press("t")
	b.sees("#theme", "Light")
	if day := back(); day == night {
		t.Errorf("it is %s in both themes", day)
	}
	b.do(chromedp.Reload())
	b.sees("#theme", "Light")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first, second := s.submit("plan: a\ntasks: {x: {run: 'true'}}\n"), s.submit("plan: b\ntasks: {y: {run: 'true'}, z: {run: 'true', needs: [y]}}\n")
	b := s.browse(light)
	at := func(path string) { t.Helper(); b.until(fmt.Sprintf(`location.pathname === %q`, path)) }
	b.open("/ui/")
	b.sees(".plans", "a #1")
	b.press("j")
	b.until(`document.activeElement.innerText.includes('b #1')`)
	b.press("j", kb.Enter)
	at("/ui/plans/" + first)
	b.sees("h1", "a #1")
	b.press("u")
	at("/ui/")
	b.sees(".plans", "b #1")
	b.press("/", "b", kb.Escape)
	b.until(`document.querySelectorAll('.plans > li').length === 1 && location.search === '?q=b'`)
	b.press("j", kb.Enter)
	at("/ui/plans/" + second)
	b.sees("h1", "b #1")
	b.press("3")
	at("/ui/plans/" + second + "/tasks")
	b.sees(".trow", "z")
	b.press("j", "j", kb.Enter)
	at("/ui/tasks/" + s.task(second, "z"))
	b.sees(".why", "it waits for y")
	for key, path := range map[string]string{"s": "/ui/submit", "c": "/ui/schedules", "q": "/ui/queues", "o": "/ui/groups", "n": "/ui/nodes", "b": "/ui/balance", "p": "/ui/"} {
		b.press("g", key)
		at(path)
		b.until(`document.querySelector('main h1') !== null`)
		b.js(`document.activeElement.blur()`) // out of the text of a plan file
	}
	b.press("?")
	b.sees("dialog", "Keys")
	b.press(kb.Escape)
	b.until(`document.querySelector('dialog') === null`)
}

func TestQueuesAndNodesAreSet(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.ask("POST", "/queues", "application/json", `{"name": "imap", "plugin": "exec", "threads": 3}`)
	s.node()
	b := s.browse(light)
	b.open("/ui/queues")
	b.sees(".queue", "0 of 3 running")
	b.click(".queue button", "Pause")
	b.sees(".queue", "paused")
	b.click(".queue button", "Resume")
	b.sees("dialog", "How many tasks of imap")
	b.until(`document.querySelector('dialog input[type=number]').value === '3'`) // which it had
	b.shot("queue-dialog")
	b.expect("status of 412")
	s.sluice("queue", "set", "imap", "--threads", "7") // meanwhile, by somebody else
	b.click("dialog button", "Save")
	b.sees("dialog .problem", "it has 7 now")
	b.click("dialog button", "Save")
	b.sees(".queue", "0 of 3 running")
	b.open("/ui/nodes")
	b.sees(".node", "0 of 4 threads")
	b.click(".node button", "Limit")
	b.do(chromedp.SendKeys("dialog input", "2"))
	b.click("dialog button", "Save")
	b.until(`document.querySelector('dialog') === null`)
	b.sees(".node", "0 of 4 threads, limited to 2")
	b.click(".node button", "Limit")
	b.until(`document.querySelector('dialog input').value === '2'`) // which it has
	b.press(kb.Escape)
	s.sluice("node", "set", "elsewhere", "--maxthreads", "3")
	b.sees("main", "not there now: elsewhere 3")
	b.shot("nodes-limits")
}

func TestATableOfManyTasks(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const many = 100_000
	var q struct{ ID string }
	if err := json.Unmarshal(s.ask("POST", "/queues", "application/json", `{"name": "demo", "plugin": "demo", "threads": null}`), &q); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("%024x", 0x65a)
	s.ask("PUT", "/plans/"+id, "application/json", `{"name": "large"}`)
	var tasks strings.Builder
	for i := range many {
		if i > 0 {
			tasks.WriteByte(',')
		}
		fmt.Fprintf(&tasks, `{"id": "%024x", "name": "task-%06d", "queue_id": %q}`, i+1, i, q.ID)
	}
	s.ask("POST", "/plans/"+id+"/tasks", "application/json", `{"tasks": [`+tasks.String()+`]}`)
	s.ask("POST", "/plans/"+id+"/ready", "", "")
	b := s.browse(light)
	b.open("/ui/plans/" + id)
	b.sees(".trow", "task-000000")
	b.until(`document.querySelectorAll('.trow').length < 80`)
	b.js(`{ const g = document.getElementById('tasks'); g.scrollTop = g.scrollHeight; }`)
	b.sees(".trow", "task-099999")
	b.shot("plan-many")
	b.until(`document.querySelectorAll('.trow').length < 80`) // the others only take up height
	b.do(chromedp.SendKeys(".toolbar input[type=search]", "98765"))
	b.until(`[...document.querySelectorAll('.trow')].filter((e) => !e.hidden).length === 1`)
	b.sees(".trow", "task-098765")
}

func TestUsersLogInAndAreOfferedWhatTheyMayDo(t *testing.T) {
	access := filepath.Join(t.TempDir(), "access.json")
	for user, role := range map[string]string{"vera": "viewer", "otto": "operator"} {
		add := exec.Command(program, "access", "user", "add", user, "--role", role, "--access", access)
		add.Stdin = strings.NewReader("correct horse " + user + "\n")
		if out, err := add.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Parallel()
	s := serve(t, "--access", access)
	file := filepath.Join(s.dir, "plan.yaml")
	if err := os.WriteFile(file, []byte("plan: secret\ntasks: {x: {run: 'true'}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.sluice("plan", "submit", file)
	login := func(b *tab, user, password string) {
		t.Helper()
		b.sees("h1", "Log in")
		b.js(`document.querySelectorAll('.login input').forEach((e) => { e.value = ''; })`)
		b.do(chromedp.SendKeys("input[name=user]", user), chromedp.SendKeys("input[name=password]", password))
		b.click("button[type=submit]", "Log in")
	}

	b := s.browse(light)
	b.expect("status of 401")
	b.open("/ui/?q=secret") // and is sent to the login page
	b.until(`location.pathname === '/ui/login'`)
	login(b, "vera", "something else")
	b.until(`document.querySelector('.problem').innerText !== ''`)
	b.shot("login-wrong")
	login(b, "vera", "correct horse vera")
	b.until(`location.pathname + location.search === '/ui/?q=secret'`)
	b.sees(".plans", "secret #1")
	if text := b.text("main"); strings.Contains(text, "Submit a plan") {
		t.Error("a viewer is offered to submit")
	}
	b.click(".plans a", "secret #1")
	b.sees("h1", "secret #1")
	if text := b.text(".head"); strings.Contains(text, "Cancel") {
		t.Error("a viewer is offered to cancel")
	}
	b.open("/ui/submit")
	b.sees("main", "You may look, and not submit")
	b.sees("#top .user", "vera")
	b.click("#top button", "Log out")
	b.until(`location.pathname === '/ui/login'`)

	login(b, "otto", "correct horse otto")
	b.sees(".plans", "secret #1")
	b.click(".plans a", "secret #1")
	b.click(".head button", "Cancel") // which is a request with the session's token
	b.click("dialog button", "Cancel the plan")
	b.sees("h1", "cancelled")
}

func TestAServerThatIsAwayIsSaidAndComesBack(t *testing.T) {
	s := serve(t)
	s.submit("plan: a\ntasks: {x: {run: 'true'}}\n")
	b := s.browse(light)
	b.expect("net::ERR_")
	b.open("/ui/")
	b.sees(".plans", "a #1")
	s.stop()
	b.click(".chips button", "Running")
	b.sees("#notice", "The server does not answer")
	b.js(`import('/ui/dom.js').then((m) => { const at = m.serverNow(); setTimeout(() => { window.stood = m.serverNow() === at; }, 300); })`)
	b.until(`window.stood`) // what runs is not counted on
	b.shot("away")
	s.start(regexp.MustCompile(`the pages`), "dci", "--listen", strings.TrimPrefix(s.url, "http://"))
	b.until(`document.querySelector('#notice').innerText === ''`)
	b.sees(".plans", "a #1")
	id := s.submit("plan: b\ntasks: {x: {run: 'true'}}\n") // the page hears of it again
	b.sees(".plans", "b #1")
	s.ask("POST", "/plans/"+id+"/cancel", "", "")
	b.sees(".plans", "cancelled")
	b.open("/ui/tasks/" + s.task(id, "x"))
	b.sees("main", "by a person")
}

func TestAProxyWhoseServerIsAwayIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.submit("plan: a\ntasks: {x: {run: 'true'}}\n")
	server, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() && strings.HasPrefix(r.URL.Path, "/api/") {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html><body><h1>502 Bad Gateway</h1></body></html>")
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	s.url = front.URL
	b := s.browse(light)
	b.expect("status of 502")
	b.open("/ui/")
	b.sees(".plans", "a #1")
	away.Store(true)
	b.click(".chips button", "Running")
	b.sees("#notice", "The server does not answer")
	b.sees(".error", "A proxy before it answered with 502")
	away.Store(false)
	b.until(`document.querySelector('#notice').innerText === ''`)
}

func TestAnItemSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := s.submit("plan: p\ntasks: {copy: {foreach: [alice, {name: bob}], run: 'true'}}\n")
	b := s.browse(light)
	for name, want := range map[string]string{"copy[0]": "copy[0] (alice)", "copy[1]": `copy[1] ({"name":"bob"})`} {
		b.open("/ui/tasks/" + s.task(p, name))
		b.sees("h1", want)
		b.until(`document.title.startsWith(` + strconv.Quote(want) + `)`)
	}
}

// The plan's page and the task's own page name a kept task whose inputs ran again, until the task
// has run again.
func TestOutdatedResultsAreNamedAndRunAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	began := filepath.Join(t.TempDir(), "began") // the first attempt fails
	id := s.submit("plan: sums\ntasks:\n  a: {run: 'test -e " + began + " || ! touch " + began + "', continue-on-error: true}\n  sum: {needs: [a], run: 'true'}\n  report: {needs: [sum], run: 'true'}\n")
	s.wait(id, "succeeded")
	for _, l := range []struct {
		name string
		look
	}{{"light", light}, {"phone", phone}} {
		b := s.browse(l.look)
		b.open("/ui/plans/" + id)
		if l.name == "light" {
			b.until(`document.querySelector('.outdated').textContent === ''`)
			s.ask("POST", "/plans/"+id+"/retry", "application/json", `{"tasks": ["`+s.task(id, "a")+`"]}`)
		}
		b.sees("h1", "succeeded")
		b.until(`document.querySelector('.said').textContent === ''`) // what was to run again has
		b.sees(".outdated", "sum was kept, and tasks that it needs ran again later.")
		b.sees(".outdated code", "sluice plan retry sums#1 sum --downstream --server "+s.url)
		b.until(`!/\bfailed\b/.test(document.querySelector('main').innerText)`) // nor does the graph say so any more
		b.shot("outdated-" + l.name)
		if wide := eval[[]int](b, `[document.documentElement.scrollWidth, innerWidth]`); wide[0] > wide[1] {
			t.Errorf("it scrolls sideways: it is %d wide on %d", wide[0], wide[1])
		}
		b.open("/ui/tasks/" + s.task(id, "report"))
		b.sees(".head", "succeeded")
		b.until(`document.querySelector('.why').hidden`)
		b.open("/ui/tasks/" + s.task(id, "sum"))
		b.sees(".why", "Its output comes from earlier inputs")
		b.sees(".why", "a retry kept it, and a, which it needs, ran again since")
		b.sees(".why code", "sluice plan retry sums#1 sum --downstream --server "+s.url)
	}
	b := s.browse(light)
	b.open("/ui/tasks/" + s.task(id, "sum"))
	b.click(".why button", "Run again, and what is below")
	b.sees(".said", "with it 1 task below")
	s.wait(id, "succeeded")
	b.open("/ui/plans/" + id)
	b.sees("h1", "succeeded")
	b.until(`document.querySelector('.outdated').textContent === ''`)
	b.until(`document.querySelector('.said').textContent === ''`)
}

// A command that a page hands out leads to the store of the server that the page is of, and does what the page says.
func TestCommandsOfPagesLeadToTheirStore(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.submit("plan: deploy\ntasks:\n  a: {run: 'echo bad; exit 1'}\n  b: {needs: [a], run: 'true'}\n")
	b := s.browse(light)
	run := func(line string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", strings.Replace(line, "sluice", program, 1))
		cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	b.open("/ui/plans/" + id)
	b.sees(".advice code", "sluice worker --store "+s.store)
	b.click(".tabs a", "Pending")
	b.sees(".group code", "--store "+s.store)
	if said := run("sluice plan run --resume deploy#1 --store " + s.store); !strings.Contains(said, "deploy#1 failed") {
		t.Errorf("it goes on with: %s", said)
	}
	b.open("/ui/tasks/" + s.task(id, "b"))
	b.sees(".why code", "--server "+s.url)
	line := b.text(".why code")
	if said := run(line); strings.Contains(said, "not found") || strings.Contains(said, "usage") {
		t.Errorf("%s: %s", line, said)
	}
	b.open("/ui/nodes")
	b.until(`document.querySelector('main').innerText.length > 20`)
	b.shot("commands-nodes")
}
