//go:build browser

package webtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/polltest"
)

// Four items of six fail in two ways, and one task below cleans up.
func transfer(dir string) string {
	return `plan: transfer
secrets: [password]
params: {host: db-7.example.com, password: hunter2, verbose: false}
tasks:
  list: {run: echo listed}
  copy:
    needs: [list]
    foreach: [alice, bob, carol, dave, erin, frank]
    dir: ` + dir + `
    env: {MODE: fast}
    run: |
      echo "copying $item from $host with $password"
      test -e target || { test $item = alice || { test $item = bob && echo "disk full on volume data" || echo "permission denied for role loader"; exit 3; } >&2; }
  verify: {needs: [copy], run: echo verified}
  clean-up: {needs: [copy], when: any_failed, run: echo cleaned}
`
}

func TestAPlanIsRunAgainInEachWay(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first := s.submit(transfer(s.dir))
	s.node()
	s.wait(first, "failed")
	b := s.browse(light)

	// The failed tasks, and the tasks that run with them.
	b.open("/ui/plans/" + first)
	b.sees(".cause", "copy[")
	b.sees(".cause", "in 1 other way")
	b.shot("again-failed-plan")
	b.click("button", "Run again…")
	b.sees("dialog .preview", "will run.")
	b.sees("dialog .preview", "verify")
	b.sees("dialog .preview code", "sluice plan retry transfer#1 ")
	b.shot("again-dialog-failed")
	b.click("dialog button", "Cancel")
	b.until(`document.querySelector('dialog') === null`)

	if err := os.WriteFile(filepath.Join(s.dir, "target"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	b.click("button", "Run again…")
	b.sees("dialog .preview", "will run.")
	b.click("dialog .buttons button", "Run")
	b.sees("h1", "succeeded")
	b.until(`document.querySelector('.cause').innerText === ''`)

	// From a task on: what succeeded below it runs a second time.
	b.click("button", "Run again…")
	b.sees("dialog", "Everything from a task on")
	b.until(`!document.querySelector('dialog').innerText.includes('What did not succeed')`)
	b.click("dialog label", "Everything from a task on")
	b.js(`{ const i = document.querySelector('dialog input[list]'); i.value = 'verify'; i.dispatchEvent(new Event('input')); }`)
	b.sees("dialog .preview", "will run a second time: verify")
	b.shot("again-dialog-from")
	b.click("dialog .buttons button", "Run")
	b.until(`document.querySelector('dialog') === null`)
	if text := string(s.ask("GET", "/plans/"+first, "", "")); !strings.Contains(text, `"edits":2`) {
		t.Errorf("it was not retried twice: %s", text)
	}
	s.wait(first, "succeeded")

	// All of it, with another param. The secret is as it was, and shown nowhere.
	b.click("button", "Run again…")
	b.click("dialog label", "Everything, as a new run")
	b.sees("dialog .preview", "stays as it is")
	b.js(`{ const i = document.getElementById('again-host'); i.value = 'db-8.example.com'; i.dispatchEvent(new Event('input')); }`)
	b.shot("again-dialog-all")
	b.click("dialog .buttons button", "Run")
	b.sees("h1", "transfer #2")
	b.sees("h1", "succeeded")
	item := s.task("transfer%232", "copy[2]")
	b.open("/ui/tasks/" + item)
	b.sees(".log", "copying carol from db-8.example.com with ***")
	if strings.Contains(b.text("body"), "hunter2") {
		t.Error("the secret is shown")
	}

	// The runs lead to each other, and the list shows them together.
	b.open("/ui/plans/transfer%232")
	b.click(".runs a", "Previous run")
	b.sees("h1", "transfer #1")
	b.click(".runs a", "Next run")
	b.sees("h1", "transfer #2")
	b.until(`document.querySelectorAll('.runs .strip a').length === 2`)
	b.open("/ui/")
	b.until(`document.querySelectorAll('.plans .strip:not([hidden]) .icon').length === 2`)
	b.sees(".plans-head", "Started")
	b.click(".plans button", "⋯")
	b.sees(".plans .about", "db-8.example.com")
	b.shot("again-plans")
}

func TestTheFileOfAPlanIsShownAndEdited(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.submit(transfer("/srv"))
	b := s.browse(light)
	b.open("/ui/plans/" + id + "/file")
	b.sees(".code", "permission denied for role loader")
	b.sees(".code", `password: "***"`)
	if strings.Contains(b.text("body"), "hunter2") {
		t.Error("the secret is shown")
	}
	b.shot("file")
	b.click("a", "Edit a copy")
	b.until(`document.getElementById('file')?.value.startsWith('plan: transfer')`)
	b.until(`document.getElementById('param-password')?.type === 'password'`)

	// Typed values stay when the reader goes to another page and returns, except for secrets.
	b.js(`for (const [id, value] of [['param-host', 'db-9'], ['param-password', 'sesame'], ['dir', '/data']]) { const i = document.getElementById(id); i.value = value; i.dispatchEvent(new Event('input')); }`)
	b.open("/ui/queues")
	b.open("/ui/submit")
	b.until(`document.getElementById('param-host')?.value === 'db-9' && document.getElementById('dir').value === '/data'`)
	if got := eval[string](b, `document.getElementById('param-password').value + JSON.stringify(Object.values(sessionStorage)) + JSON.stringify(Object.values(localStorage))`); strings.Contains(got, "sesame") {
		t.Errorf("the secret is kept: %s", got)
	}
	b.shot("submit-kept")

	// A recent file is one choice away, and the example passes its check.
	b.until(`document.querySelectorAll('select[aria-label="An example"] option').length === 6`)
	b.js(`{ const r = document.querySelector('select[aria-label="An example"]'); r.value = 'hello'; r.dispatchEvent(new Event('change')); }`)
	b.until(`document.querySelector('.sketch .surface')?.getAttribute('aria-label') === 'Graph of the plan, 3 tasks. Enter chooses a task, arrows follow its lines.'`)
	b.shot("submit-example")
	b.click("button", "Check")
	b.sees("#mistakes", "hello: 3 tasks")
	b.js(`{ const r = document.querySelector('select[aria-label="A recent file"]'); r.value = [...r.options].find((o) => o.text === 'transfer #1').value; r.dispatchEvent(new Event('change')); }`)
	b.until(`document.getElementById('file').value.startsWith('plan: transfer')`)

	s.sluice("plan", "create", "built")
	b.open("/ui/plans/built/file")
	b.sees(".empty", "was not kept")
}

func TestATaskShowsItsCommandAndItsNeighbours(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.submit(transfer(s.dir))
	s.node()
	s.wait(id, "failed")
	b := s.browse(light)
	b.open("/ui/tasks/" + s.task(id, "copy[1]"))
	b.sees(".code", "cd "+s.dir)
	b.sees(".code", "item=bob")
	b.sees(".code", "host=db-7.example.com")
	b.sees(".code", "password=***")
	b.sees(".code", "MODE=fast")
	b.click(".siblings a", "Next item")
	b.sees("h1", "copy[2]")
	b.click(".siblings a", "Previous item")
	b.sees("h1", "copy[1]")
	b.sees(".log", "disk full")
	b.js(`{ const i = document.querySelector('.logbar input[type=search]'); i.value = 'DISK'; i.dispatchEvent(new Event('input')); }`)
	b.until(`document.querySelectorAll('.log .line.found').length === 1 && document.querySelector('.logbar').innerText.includes('1 of 1')`)
	b.shot("task-item")
	b.js(`window.saved = ''; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return 'blob:nothing'; }; HTMLAnchorElement.prototype.click = () => {}`)
	b.click(".logbar button", "Download")
	b.until(`window.saved.includes('copying bob from db-7.example.com with ***') && window.saved.includes('disk full on volume data')`)

	// Balance is offered where there is something to balance by, and groups where there are any.
	b.until(`[...document.querySelectorAll('#top nav a')].every((a) => a.hidden === ['Balance', 'Groups'].includes(a.textContent))`)
	s.ask("PATCH", "/balance", "application/json", `{"queues": [["exec"]], "max_tasks": {"* 07:00": 5}}`)
	b.open("/ui/")
	b.sees("#top nav", "Balance")
	b.press("?")
	b.until(`[...document.querySelectorAll('dialog kbd')].every((k) => k.offsetHeight < 30)`)
	b.shot("keys")
}

func TestACancellationNamesTheCleanUpsThatItLeavesOut(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	const file = `plan: switch
tasks:
  copy: {run: sleep 600}
  switch: {needs: [copy], run: 'true'}
  roll-back: {needs: [copy, switch], when: any_failed, run: echo rolled back}
  mail: {needs: [switch], when: all_done, run: echo mailed}
`
	b := s.browse(light)
	running := func(id string) {
		t.Helper()
		b.open("/ui/plans/" + id)
		b.until(`[...document.querySelectorAll('.legend a')].some((e) => e.innerText.includes('1 running'))`)
		b.click(".head button", "Cancel")
		b.sees("dialog .unrun", "2 clean-ups will not finish: roll-back, mail.")
	}

	// Only what runs is cancelled: the clean-ups run.
	first := s.submit(file)
	running(first)
	b.shot("cancel-dialog")
	b.click("dialog button", "Cancel only what runs (1)")
	b.sees(".said", "1 task is being cancelled. The plan goes on.")
	s.wait(first, "failed")
	b.sees("h1", "failed")
	b.open("/ui/tasks/" + s.task(first, "roll-back"))
	b.sees(".log", "rolled back")

	// The plan is cancelled: they do not.
	second := s.submit(file)
	running(second)
	b.click("dialog button", "Cancel the plan")
	b.sees("h1", "cancelled")
	b.open("/ui/tasks/" + s.task(second, "mail"))
	b.sees("h1", "cancelled")

	// Without clean-ups there is nothing to name, and nothing else to offer.
	third := s.submit("plan: plain\ntasks: {slow: {run: sleep 600}}\n")
	b.open("/ui/plans/" + third)
	b.click(".head button", "Cancel")
	b.sees("dialog", "Nothing more of it is started")
	b.until(`document.querySelectorAll('dialog .buttons button').length === 2 && document.querySelector('dialog .unrun') === null`)
	b.click("dialog button", "Let it run")

	narrow := s.browse(phone)
	narrow.open("/ui/plans/" + s.submit(file))
	narrow.until(`[...document.querySelectorAll('.legend a')].some((e) => e.innerText.includes('1 running'))`)
	narrow.click(".head button", "Cancel")
	narrow.sees("dialog .unrun", "2 clean-ups")
	narrow.shot("cancel-dialog-phone")
	if wide := eval[[]int](narrow, `[document.documentElement.scrollWidth, innerWidth]`); wide[0] > wide[1] {
		t.Errorf("it scrolls sideways: it is %d wide on %d", wide[0], wide[1])
	}
}

// A param with choices is a list in the dialog, too, which begins with the value that the plan has.
func TestAPlanIsRunAgainWithAnotherChoice(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	id := s.submit("plan: release\nchoices: {site: [test, prod], level: [1, 2]}\nparams: {site: prod, level: 1}\ntasks: {go: {run: 'echo $site $level'}}\n")
	s.wait(id, "succeeded")
	b := s.browse(light)
	b.open("/ui/plans/" + id)
	b.click("button", "Run again…")
	b.click("dialog label", "Everything, as a new run")
	b.until(`[...document.querySelectorAll('#again-site option')].map((o) => o.value).join() === 'test,prod' && document.getElementById('again-site').value === 'prod'`)
	b.js(`{ const i = document.getElementById('again-level'); i.value = '2'; i.dispatchEvent(new Event('change')); }`)
	b.shot("again-dialog-choices")
	b.click("dialog .buttons button", "Run")
	b.sees("h1", "release #2")
	if text := string(s.ask("GET", "/plans/release%232", "", "")); !strings.Contains(text, `"level":2`) {
		t.Errorf("the new run has other params: %s", text)
	}
}

// A plan whose file was not kept runs again as it is, all of it.
func TestAPlanWithoutAFileIsRunAgainAsItIs(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ran := filepath.Join(s.dir, "ran")
	s.sluice("plan", "create", "built")
	add := func(args ...string) { // what the helper adds goes to the command, which needs none of it
		t.Helper()
		s.sluice(append([]string{"plan", "add", "--store", s.store, "built"}, args...)...)
	}
	add("first", "--", "sh", "-c", "echo first >> "+ran)
	add("second", "--needs", "first", "--", "sh", "-c", "echo second >> "+ran)
	s.sluice("plan", "ready", "built")
	s.node()
	s.wait("built", "succeeded")
	b := s.browse(light)
	b.open("/ui/plans/built")
	b.sees("h1", "succeeded")
	b.click("button", "Run again…")
	b.click("dialog label", "Everything, in this run")
	b.sees("dialog .more", "The plan’s file was not kept, so its tasks run again here, as they are.")
	b.sees("dialog .preview", "2 tasks will run.")
	b.sees("dialog .preview", "2 of them succeeded, and will run a second time: ")
	b.shot("again-dialog-no-file")
	b.click("dialog .buttons button", "Run")
	b.until(`document.querySelector('dialog') === null`)
	b.until(`document.querySelector('.said').innerText === '2 tasks will run again.' || document.querySelector('.said').innerText === ''`)
	var text []byte
	if !polltest.Holds(patience, func() bool { text, _ = os.ReadFile(ran); return string(text) == "first\nsecond\nfirst\nsecond\n" }) {
		t.Errorf("there ran %q, want each of the two twice", text)
	}
	s.wait("built", "succeeded")
	if text := string(s.ask("GET", "/plans/built", "", "")); !strings.Contains(text, `"run":1`) || !strings.Contains(text, `"edits":`) {
		t.Errorf("it did not run again in its run: %s", text)
	}
}
