//go:build browser

package webtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/polltest"
)

func TestALogIsFollowedUntilOneScrollsUp(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	id := s.submit(`plan: chatty
tasks:
  lines:
    run: i=0; while [ $i -lt 8000 ]; do echo "line $i of a long log"; i=$((i+1)); done
  slow:
    run: i=0; while [ $i -lt 900 ]; do echo "line $i"; i=$((i+1)); [ $i -lt 400 ] || sleep 0.5; done
`)
	b := s.browse(light)
	b.open("/ui/tasks/" + s.task(id, "slow"))
	b.sees(".log", "line 405")
	const atEnd = `(() => { const v = document.querySelector('.log'); return v.scrollHeight - v.scrollTop - v.clientHeight < 24; })()`
	b.until(atEnd)
	b.js(`document.querySelector('.log').scrollTop = 100`)
	b.until(`!document.querySelector('.logframe .pill').hidden`)
	b.js(`window.lines = document.querySelectorAll('.log .line').length`)
	b.until(`document.querySelectorAll('.log .line').length > window.lines + 2`)
	if top := eval[int](b, `Math.round(document.querySelector('.log').scrollTop)`); top != 100 {
		t.Errorf("it was scrolled from 100 to %d while somebody read", top)
	}
	b.click(".logframe .pill", "To the end")
	b.until(atEnd)
	b.js(`window.lines = document.querySelectorAll('.log .line').length`)
	b.until(`document.querySelectorAll('.log .line').length > window.lines + 2 && ` + atEnd)
	b.click(".head button", "Cancel")
	b.click("dialog button", "Cancel the task")
	b.sees("h1", "stopped")

	b.open("/ui/tasks/" + s.task(id, "lines"))
	b.until(`document.querySelectorAll('.log .line').length === 8000 && ` + atEnd)
	b.sees(".logbar", "8,000 lines")
	b.shot("log-long")
}

func TestALogSaysWhereEachAttemptBegins(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	id := s.submit("plan: p\ntasks:\n  often: {run: 'echo try $SLUICE_ATTEMPT; exit 1', retry: {attempts: 2, delay: 10ms}}\n  once: {run: 'echo one'}\n")
	s.wait(id, "failed")
	b := s.browse(light)
	const seen = `[...document.querySelectorAll('.log .mark, .log .text')].filter((e) => e.checkVisibility()).map((e) => e.innerText).join('; ')`
	b.open("/ui/tasks/" + s.task(id, "often"))
	b.until(seen + ` === 'attempt 1; try 1; attempt 2; try 2'`)
	b.sees("aside", "2 of 2")
	b.js(`document.querySelector('.logbar select').value = '2'; document.querySelector('.logbar select').dispatchEvent(new Event('change'))`)
	b.until(seen + ` === 'try 2'`)
	s.ask("POST", "/plans/"+id+"/retry", "", "")
	s.wait(id, "failed")
	b.open("/ui/tasks/" + s.task(id, "often"))
	b.until(seen + ` === 'attempt 1; try 1; attempt 2; try 2; retried by a person: attempts count from 1 again; attempt 1, again; try 1; attempt 2; try 2'`)
	b.shot("log-attempts")
	b.open("/ui/tasks/" + s.task(id, "once"))
	b.until(seen + ` === 'one'`)
}

// A short attempt begins and ends between two looks of the page.
func TestTheLogOfAShortAttemptIsRead(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	id := s.submit("plan: short\ntasks:\n  brief: {run: 'echo once; exit 1'}\n")
	s.wait(id, "failed")
	b := s.browse(light)
	b.open("/ui/tasks/" + s.task(id, "brief"))
	b.until(`document.querySelectorAll('.log .line.stdout').length === 1`)
	s.ask("POST", "/plans/"+id+"/retry", "", "")
	s.wait(id, "failed")
	b.js(`document.dispatchEvent(new Event('visibilitychange'))`) // the next look, at once
	b.until(`document.querySelectorAll('.log .line.stdout').length === 2`)
}

func TestWhatOneReadsStaysAndIsCopied(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.node()
	id := s.submit(`plan: many
tasks:
  items: {foreach: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24], run: [sh, -c, 'test $0 != 23', "${{ item }}"]}
  slow: {run: sleep 600}
`)
	b := s.browse(light)
	b.open("/ui/plans/" + id + "/params")
	b.js(`Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})`)
	b.js(`document.querySelector('.copied .copy').click()`)
	b.until(fmt.Sprintf(`window.copied === %q && document.querySelector('.copied .copy').title === 'Copied'`, id))
	b.until(`document.querySelector('.copied .copy').title === 'Copy the id'`)

	// Durations are written each second, into elements that stay. So these keep their titles, which
	// have the exact time, and the focus.
	for _, p := range []struct{ path, stays, changes string }{
		{"/ui/plans/" + id, ".meta time", ".meta .num"},
		{"/ui/tasks/" + s.task(id, "slow"), ".meta .num", ".meta .num"},
		{"/ui/nodes", ".node .links a", ".node .links .num"},
	} {
		b.open(p.path)
		b.sees(p.changes, " s")
		b.js(fmt.Sprintf(`window.was = [document.querySelector(%q), document.querySelector(%q).innerText]`, p.stays, p.changes))
		b.until(fmt.Sprintf(`document.querySelector(%q).innerText !== window.was[1]`, p.changes))
		if !eval[bool](b, `window.was[0].isConnected`) {
			t.Errorf("%s: %s is made anew", p.path, p.stays)
		}
	}

	// Failed items are listed first. A foreach task, which prints nothing itself, shows no log.
	polltest.Until(t, patience, "its items have succeeded", func() bool { return strings.Contains(string(s.ask("GET", "/plans/"+id, "", "")), `"succeeded":23`) })
	b.open("/ui/tasks/" + s.task(id, "items"))
	b.until(`document.querySelector('.items .links .name')?.innerText === 'items[22] (23)'`)
	b.until(`document.querySelector('.logs').checkVisibility() === false`)

	b.open("/ui/plans/" + id + "/nowhere/else")
	b.sees("main code", "/ui/plans/"+id+"/nowhere/else")
}
