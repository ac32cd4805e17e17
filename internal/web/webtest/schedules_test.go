//go:build browser

package webtest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestSchedulesAreShownPausedAndRun(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.browse(light)
	b.open("/ui/schedules")
	b.sees("main", "There are no schedules yet.")
	s.schedules()
	b.sees(".schedules", "starts a task in beats")
	b.click(".schedule button[aria-label='Pause nightly']", "Pause")
	b.do(chromedp.SendKeys("dialog input", "the archive is full"))
	b.click("dialog button", "Pause")
	b.sees(".schedules", "the archive is full")
	b.open("/ui/schedules/nightly")
	b.sees("main", "the archive is full")
	b.sees("main", "There was none yet.")
	b.sees("main", "plan: nightly") // the text of its file
	b.click(".head button", "Resume")
	b.until(`document.querySelector('.head .badge').innerText === 'active'`)
	b.click(".head button", "Run now")
	b.sees(".occurrences", "starting")
	s.node()
	b.sees(".occurrences", "succeeded")
	b.sees(".occurrences", "by run")
	b.click(".occurrences a", "20")
	b.sees("h1", "nightly #1")
	b.click(".meta a", "schedule nightly")
	b.sees(".occurrences", "succeeded")
	b.open("/ui/schedules/berlin")
	b.until(`[...document.querySelectorAll('table')].some((t) => t.innerText.includes('moved: the clock skips'))`) // this year's, or the next one's
	b.click(".head button", "Run now")
	b.sees(".occurrences", "failed")
	b.click(".occurrences a", "20")
	b.sees(".facts", "schedule berlin")
}

// schedules makes a schedule of a plan, and one of a task that fires at a time that the clock of a zone skips.
func (s *site) schedules() {
	s.Helper()
	s.ask("POST", "/queues", "application/json", `{"name": "beats", "plugin": "exec", "threads": 3}`)
	for _, body := range []string{
		`{"name": "nightly", "cron": "30 2 * * *", "plan": {"file": {"text": "plan: nightly\ntasks: {a: {run: 'true'}}\n", "dir": "DIR"}}}`,
		`{"name": "berlin", "cron": "30 2 25-31 3 *", "zone": "Europe/Berlin", "overlap": "queue", "task": {"queue": "beats", "params": {"run": "exit 3"}}}`,
	} {
		s.ask("POST", "/schedules", "application/json", strings.ReplaceAll(body, "DIR", s.dir))
	}
}
