//go:build browser

package webtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A plan of eight mailboxes. Six of them cannot be copied.
const mailboxes = `plan: mail
tasks:
  list: {run: 'echo "[\"ann\", \"bob\", \"cy\", \"dave\", \"eve\", \"fay\", \"gus\", \"hal\"]" > "$SLUICE_OUTPUT"'}
  copy:
    needs: [list]
    foreach: ${{ needs.list }}
    run: case $item in ann|bob) ;; *) echo "no such mailbox, $item"; exit 3;; esac
  report: {needs: [copy], when: all_done, run: 'true'}
`

func TestItemsAndTheirFailuresAreShownAsCommandsDo(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	p := s.submit(mailboxes)
	s.wait(p, "failed")
	b := s.browse(light)
	b.open("/ui/")
	b.sees(".plans .broken", "6 failed")
	b.sees(".plans .count", "10 of 10")
	for _, page := range []struct{ tab, selector, text string }{
		{"tasks", ".trow", "copy 6 of 8 items failed"},
		{"tasks", ".trow", "copy[3] (dave)"},
		{"failures", "main", "6 tasks failed, in 1 kind."},
		{"failures", ".groups a", "copy[7] (hal)"},
		{"failures", ".groups summary", "What copy[2] (cy) printed last"},
		{"timeline", ".drawing", "copy: failed, 8 items"},
		{"timeline", ".drawing", "copy[0] (ann)"},
	} {
		b.open("/ui/plans/" + p + "/" + page.tab)
		b.sees(".legend", "6 failed")
		b.until(`document.querySelector('.tabs a:nth-child(5) .n').innerText === '6'`)
		if page.tab == "tasks" && strings.Contains(page.text, "[") {
			b.sees(".trow", "copy 6 of 8 items failed")
			b.js(fold("copy"))
		}
		if page.tab == "timeline" {
			b.until(`document.querySelector('canvas.surface') !== null`)
			b.js(`document.querySelectorAll('.drawing details').forEach((d) => { d.open = true; })`)
			if strings.Contains(page.text, "[") {
				b.click(".drawing details:last-of-type button", "copy")
			}
		}
		b.sees(page.selector, page.text)
		b.shot("items-" + page.tab)
	}
	b.open("/ui/plans/" + p + "/graph")
	b.until(`[...document.querySelectorAll('.legend-states button')].some((e) => /^failed\s+6$/.test(e.innerText.trim()))`)
	b.js(`document.querySelector('.drawing details').open = true`)
	b.sees(".drawing details", "copy step 2; failed; 8 items: 2 succeeded, 6 failed")
	b.click(".drawing details button", "copy")
	b.js(`document.activeElement.blur()`)
	b.sees(".drawing details", "copy[3] (dave)")
	b.do(chromedp.SendKeys(".drawing input[type=search]", "dave"))
	b.sees(".draw-said", "copy[3] (dave), failed")
	b.shot("items-graph")
	b.open("/ui/tasks/" + s.task(p, "copy"))
	b.sees(".items .links", "copy[3] (dave)")
	b.shot("items-task")
}

// shown is the names of the rows of a table, from its top.
const shown = `[...document.querySelectorAll('.trow')].filter((e) => !e.hidden).sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((e) => e.querySelector('a').innerText).join(' ')`

// fold opens a foreach in the table, or closes it.
func fold(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('.trow')].find((e) => !e.hidden && e.querySelector('a').innerText === %q).querySelector('.fold').click()`, name)
}

func TestTheTableHasItemsBelowTheirForeachAsTheyAreMade(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := s.submit(strings.Replace(mailboxes, "list: {", `held: {foreach: [0, 1], run: 'true'}
  list: {`, 1))
	b := s.browse(light)
	b.open("/ui/plans/" + p + "/tasks")
	b.until(shown + ` === 'held list copy report'`)
	b.sees(".trow", "held 0 of 2 items done")
	b.js(fold("held"))
	b.until(shown + ` === 'held held[0] held[1] list copy report'`)
	b.js(fold("copy")) // which has none yet
	b.js(`window.row = document.querySelector('.trow')`)
	s.node()
	s.wait(p, "failed")
	b.until(shown + ` === 'held held[0] held[1] list copy copy[0] copy[1] copy[2] copy[3] copy[4] copy[5] copy[6] copy[7] report'`)
	b.sees(".toolbar", "12 tasks, and 2 foreach tasks")
	if !eval[bool](b, `window.row.isConnected`) {
		t.Error("the table was made anew")
	}
	b.shot("items-table")
	b.js(fold("held"))
	b.until(shown + ` === 'held list copy copy[0] copy[1] copy[2] copy[3] copy[4] copy[5] copy[6] copy[7] report'`)
	b.sees(".toolbar", "12 tasks, and 2 foreach tasks")
	b.click(".legend a", "6 failed")
	b.until(shown + ` === 'copy copy[2] copy[3] copy[4] copy[5] copy[6] copy[7]'`)
	b.sees(".toolbar", "6 tasks, and 1 foreach task")
	b.shot("items-table-failed")

	// The row under the reader's eyes stays in place while items come in above it.
	enough := filepath.Join(s.dir, "enough")
	file := "plan: many\ntasks:\n  list: {run: 'until test -e " + enough + "; do sleep 0.1; done; echo [" + strings.Repeat("0, ", 59) + "0] > \"$SLUICE_OUTPUT\"'}\n" +
		"  copy: {needs: [list], foreach: '${{ needs.list }}', run: 'true'}\n"
	for i := range 60 {
		file += fmt.Sprintf("  t%d: {needs: [copy], run: 'true'}\n", i)
	}
	many := s.submit(file)
	b.open("/ui/plans/" + many + "/tasks")
	b.sees(".trow", "t5")
	b.js(fold("copy"))
	b.until(`document.querySelector('.fold[aria-expanded=true]') !== null`)
	b.js(`document.getElementById('tasks').scrollTop = 32 * 34`) // t30 is the first row
	const first = `(() => {
		const top = document.querySelector('.thead').getBoundingClientRect().bottom;
		return [...document.querySelectorAll('.trow')].find((e) => !e.hidden && Math.abs(e.getBoundingClientRect().top - top) < 17)?.querySelector('a').innerText;
	})()`
	b.until(first + ` === 't30'`)
	if err := os.WriteFile(enough, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.wait(many, "succeeded")
	b.sees(".toolbar", "121 tasks, and 1 foreach task")
	b.until(`document.getElementById('tasks').scrollTop === 92 * 34 && ` + first + ` === 't30'`)
}

func TestATaskTookWhatItsLastAttemptDid(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	// again submits a plan of one task, which fails, and succeeds after the pause.
	again := func(pause string) string {
		return s.submit("plan: again\ntasks:\n  flaky: {run: 'echo \"attempt $SLUICE_ATTEMPT\"; sleep 0.1; test \"$SLUICE_ATTEMPT\" -gt 1', retry: {attempts: 2, delay: " + pause + ", max: 1h}}\n")
	}
	over, waits := again("5s"), again("1h")
	b := s.browse(light)
	const took = `((state) => {
		const m = document.querySelector('.trow .took').innerText.match(/^([\d.]+) (ms|s)$/);
		const ms = m && Number(m[1]) * (m[2] === 's' ? 1000 : 1);
		return document.querySelector('.trow .badge').dataset.state === state && ms >= 100 && ms < 5000;
	})`
	b.open("/ui/plans/" + waits + "/tasks")
	b.until(`document.querySelector('.trow .badge').dataset.state === 'held' && document.querySelector('.trow .extra').innerText.includes('exit status 1')`)
	first := b.text(".trow .took")
	time.Sleep(1500 * time.Millisecond) // it would be written again
	if cell := b.text(".trow .took"); first != "" && cell != first {
		t.Errorf("while it waits to be tried again it is said to take %q, and then %q", first, cell)
	}
	s.wait(over, "succeeded")
	b.open("/ui/plans/" + over + "/tasks")
	b.until(took + `('succeeded')`)
	if title := eval[string](b, `document.querySelector('.trow .took').title`); !strings.HasPrefix(title, "attempt 2, ") {
		t.Errorf("the time that the last attempt took is explained by %q", title)
	}
	b.open("/ui/tasks/" + s.task(over, "flaky"))
	b.until(`/took [\d.]+ m?s in attempt 2/.test(document.querySelector('.meta').innerText)`)
	b.until(`/^[\d.]+ s from the first line of the first one to the end/.test(document.querySelector('.attempts + p').innerText)`) // and this is the whole
	b.shot("took-task")
}

// A running attempt does not show the exit of the attempt before.
func TestARunningAttemptHasNotEndedAsTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	p := s.submit("plan: again\ntasks:\n  flaky: {run: 'test \"$SLUICE_ATTEMPT\" -gt 1 || exit 7; sleep 60', retry: {attempts: 2, delay: 10ms}}\n")
	b := s.browse(light)
	b.open("/ui/plans/" + p + "/tasks")
	b.until(`document.querySelector('.trow .badge').dataset.state === 'running' && document.querySelector('.trow .extra').innerText.includes('attempt 2')`)
	if text := b.text(".trow .extra"); strings.Contains(text, "exit") {
		t.Errorf("the running second attempt is said to be %q", text)
	}
	b.open("/ui/tasks/" + s.task(p, "flaky"))
	b.until(`document.querySelector('.meta').innerText.includes('running for')`)
	if text := b.text(".meta"); strings.Contains(text, "exit") {
		t.Errorf("the page of the task has %q", text)
	}
}

// A foreach that is folded has the state of what of it has come farthest, and says how many of its items are done.
func TestAFoldedForeachHasOneStateInTheTable(t *testing.T) {
	t.Parallel()
	s := serve(t)
	enough := filepath.Join(s.dir, "enough")
	p := s.submit("plan: fan\ntasks:\n  copy: {foreach: [0, 1, 2, 3, 4, 5], run: 'test $item = 0 || until test -e " + enough + "; do sleep 0.1; done'}\n  after: {needs: [copy], run: 'true'}\n")
	b := s.browse(light)
	b.open("/ui/plans/" + p + "/tasks")
	state := func(state, extra string) {
		t.Helper()
		b.until(fmt.Sprintf(`document.querySelector('.trow .badge').dataset.state === %q && document.querySelector('.trow .extra').innerText.includes(%q)`, state, extra))
	}
	state("queued", "0 of 6 items done")
	s.node()
	state("running", "1 of 6 items done")
	b.shot("items-table-folded")
	b.do(chromedp.Focus("#tasks"))
	b.press("j")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.until(shown + ` === 'copy copy[0] copy[1] copy[2] copy[3] copy[4] copy[5] after'`)
	b.do(chromedp.KeyEvent(kb.ArrowLeft))
	b.until(shown + ` === 'copy after'`)
	if err := os.WriteFile(enough, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state("succeeded", "6 items")
}

// On a phone the names of items in the time line are cut, and still told apart.
func TestItemsOfANarrowTimeLineKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	id := s.submit("plan: fan\ntasks:\n  count: {foreach: [data/customer-one.txt, data/customer-two.txt], run: 'true'}\n")
	s.wait(id, "succeeded")
	b := s.browse(phone)
	b.open("/ui/plans/" + id)
	b.js(`window.drawn = []; { const was = CanvasRenderingContext2D.prototype.fillText; CanvasRenderingContext2D.prototype.fillText = function (t, ...r) { window.drawn.push(t); return was.call(this, t, ...r); } }`)
	b.click(".tabs a", "Time line")
	b.until(`document.querySelectorAll('.drawing details').length === 2`)
	b.js(`document.querySelectorAll('.drawing details').forEach((d) => { d.open = true; })`)
	b.click(".drawing details:last-of-type button", "count")
	b.until(`window.drawn.some((t) => t.startsWith('count[0]…')) && window.drawn.some((t) => t.startsWith('count[1]…'))`)
	b.shot("narrow-items")
}

// A plan whose stages go over groups of inputs. Any plugin may.
const grouped = `plan: words
params:
  inputs: [{label: 1, urls: ["disco://a/x"]}, {label: 2, urls: ["disco://b/y"]}, {label: 1, urls: ["disco://b/z"]}]
tasks:
  shrink: {foreach: {group: group_node_label, of: "${{ params.inputs }}"}, run: 'true'}
  reduce: {foreach: {group: group_label, of: "${{ params.inputs }}"}, needs: [shrink], run: 'true'}
`

func TestStagesShowTheirGroups(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	p := s.submit(grouped)
	s.wait(p, "succeeded")
	b := s.browse(light)
	b.open("/ui/plans/" + p + "/tasks")
	b.sees(".trow", "shrink 3 items")
	b.js(fold("shrink"))
	b.sees(".trow", "shrink[0] (1 a)")
	b.sees(".trow", "shrink[1] (1 b)")
	b.open("/ui/tasks/" + s.task(p, "reduce"))
	b.sees("main", "Items 2 group_label")
	b.sees("main", "reduce[1] (2)")
}
