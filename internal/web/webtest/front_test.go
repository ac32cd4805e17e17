//go:build browser

package webtest

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// One task fails first, in a way of its own, and three others fail alike.
const twoWays = `plan: two-ways
tasks:
  early: {run: 'echo the disk is full >&2; exit 1'}
  late: {needs: [wait], foreach: [1, 2, 3], retry: {attempts: 2, delay: 10ms}, run: 'echo "try $SLUICE_ATTEMPT"; sleep 0.1; echo "no route to $item" >&2; sleep 0.1; echo "given up"; exit 2'}
  wait: {run: sleep 0.3}
  tidy: {needs: [late], when: any_failed, run: 'true'}
  after: {needs: [late, wait], run: 'true'}
`

func TestTheFailuresOfMostTasksComeFirst(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	id := s.submit(twoWays)
	s.wait(id, "failed")
	b := s.browse(light)
	b.open("/ui/plans/" + id)
	b.sees(".cause", "late[0] (1): ")
	b.sees(".cause", "2 more tasks failed like it, and 1 task in 1 other way.")
	b.shot("front-cause")
	if text := b.text(".cause"); strings.Count(text, "(exit status 2)") != 1 {
		t.Errorf("the banner says %q", text)
	}

	// A failure has what the last attempt printed, in its order.
	b.click(".tabs a", "Failures")
	b.until(`[...document.querySelectorAll('.groups details .code')].some((e) => e.innerText.trim() === 'try 2\nno route to 1\ngiven up')`)
	b.shot("front-failures")

	// The table has the detail of a failure.
	b.click(".tabs a", "Tasks")
	b.sees(".trow .extra", "the disk is full (exit status 1)")
	b.shot("front-table")
}

func TestWhatHasNotStartedHasOneNumber(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.submit("plan: pending\ntasks:\n  one: {run: 'true'}\n  two: {run: 'true'}\n  three: {needs: [one], run: 'true'}\n")
	b := s.browse(light)
	b.open("/ui/plans/" + id + "/waiting")
	b.sees(".tab", "3 tasks have not started: 2 queued, 1 waiting.")
	b.sees(".tabs a", "Pending3")
	b.shot("front-pending")
	if text := b.text(".legend"); !strings.Contains(text, "2 queued") || !strings.Contains(text, "1 waiting") {
		t.Errorf("the legend says %q", text)
	}
}

func TestAFailedPlanOpensOnItsFailuresOnAPhone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	id := s.submit(twoWays)
	s.wait(id, "failed")
	b := s.browse(phone)
	b.open("/ui/plans/" + id)
	b.sees(".groups", "no route to")
	b.shot("front-phone-failures")

	// The graph is a list, and is drawn on demand.
	b.open("/ui/plans/" + id + "/graph")
	b.until(`[...document.querySelectorAll('.outline li')].map((e) => e.innerText.split(/\s/)[0] + parseInt(e.style.paddingLeft)).join(' ') === 'wait0 late16 after32 tidy32 early0'`)
	b.sees(".outline", "late 3 failed")
	b.shot("front-phone-outline")
	b.click("button", "Draw the graph")
	b.until(`document.querySelector('canvas.surface') !== null`)
	b.shot("front-phone-drawn")
	b.open("/ui/plans/" + id + "/file")
	b.sees(".file", "As it was submitted.")
	b.shot("front-phone-file")
}

func TestQueuesAndNodesLeadToTheirTasks(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.ask("POST", "/queues", "application/json", `{"name": "build", "plugin": "exec", "threads": 1}`)
	s.node()
	failed := s.submit("plan: broken\ntasks:\n  copy: {run: 'echo the target is gone >&2; exit 4'}\n")
	s.wait(failed, "failed")
	s.submit("plan: builds\ntasks:\n  one: {queue: build, run: sleep 60}\n  two: {queue: build, run: sleep 60}\n")
	b := s.browse(light)
	b.open("/ui/queues")
	b.sees(".heads", "Queue")
	b.sees(".queue a", "1 of 1 running")
	b.shot("front-queues")
	b.click(".queue a", "1 queued")
	b.sees(".tasks", "queued")
	b.until(`location.pathname + location.search === '/ui/tasks?queue=build&state=queued' && document.querySelectorAll('.tasks > li').length === 1`)
	b.sees(".tasks a", "builds #1")
	b.shot("front-tasks")
	b.js(`{ const s = document.querySelector('select[aria-label=State]'); s.value = ''; s.dispatchEvent(new Event('change')); }`)
	b.until(`document.querySelectorAll('.tasks > li').length === 2`)

	b.open("/ui/nodes")
	b.sees(".node", "up ")
	b.sees(".node .links .plan", "builds #1")
	b.sees(".node .last", "Last failure: copy of broken #1, just now: the target is gone (exit status 4)")
	b.shot("front-nodes")
	b.click(".node .last a", "broken #1")
	b.sees("h1", "broken #1")
}

func TestTheHeaderIsThereBeforeTheScripts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.browse(light)
	scripts := func(off bool) {
		b.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off})
			return chromedp.Void{}, err
		})
	}
	scripts(true)
	b.do(chromedp.Navigate(s.url + "/ui/queues"))
	b.sees("#top nav a", "Schedules")
	b.shot("front-header")
	scripts(false)
	b.open("/ui/queues")
	b.until(`document.querySelector('#top nav a[aria-current]').innerText === 'Queues'`)
}

func TestWhatIsNotThereIsSearchedFor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.submit("plan: nightly\ntasks: {a: {run: 'true'}}\n")
	b := s.browse(light)
	b.expect("status of 404")
	b.open("/ui/plans/nightlx")
	b.sees("h1", "No such plan")
	b.shot("front-404")
	b.do(chromedp.SendKeys(".lost input", "night"))
	b.click(".lost button", "Search")
	b.sees(".plans", "nightly #1")
}

func TestTheGraphOfAFileIsDrawnAsItIsTyped(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.browse(light)
	b.open("/ui/submit")
	b.paste("plan: drawn\ntasks:\n  list: {run: 'true'}\n  copy: {needs: [list], run: 'true'}\n")
	b.sees(".sketch summary", "The graph as text")
	b.until(`document.querySelector('.sketch .surface').getAttribute('aria-label').startsWith('Graph of the plan, 2 tasks.')`)
	b.shot("front-sketch")
	b.paste("plan: drawn\ntasks:\n  list: {run: 'true'}\n  copy: {needs: [lst], run: 'true'}\n")
	b.until(`document.querySelector('.sketch.old p').innerText.startsWith('4:18 ')`)
	b.paste("plan: drawn\ntasks:\n  list: {run: 'true'}\n  copy: {needs: [list], run: 'true'}\n  third: {needs: [copy], run: 'true'}\n")
	b.until(`document.querySelector('.sketch:not(.old) .surface').getAttribute('aria-label').startsWith('Graph of the plan, 3 tasks.')`)
	b.js(`document.querySelector('.sketch details').open = true`)
	b.click(".sketch details button", "third")
	b.until(`document.activeElement.id === 'file' && document.activeElement.selectionStart === document.activeElement.value.indexOf('  third')`)
}
