//go:build browser

package webtest

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// asking is a plan whose release waits for a person.
const asking = `plan: release
tasks:
  check: {run: 'true'}
  ask: {needs: check, approve: "Switch the mailboxes?"}
  switch: {needs: ask, run: 'true'}
`

func TestAQuestionIsAnsweredOnItsPage(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.submit(asking)
	s.node()
	for _, view := range []look{light, dark, phone} {
		b := s.browse(view)
		b.open("/ui/")
		b.sees(".inbox", "Waiting for you (1)")
		b.sees(".inbox", "release #1")
		b.click(".inbox a", "Switch the mailboxes?")
		b.sees(".question", "Switch the mailboxes?")
		if wide := eval[[]int](b, `[document.documentElement.scrollWidth, innerWidth]`); wide[0] > wide[1] {
			t.Errorf("it scrolls sideways: it is %d wide on %d", wide[0], wide[1])
		}
		if view == phone {
			b.do(chromedp.SendKeys(".question input", "checked with ops"))
			b.click(".question button", "Approve")
			b.sees("h1", "succeeded")
			b.sees("main", "checked with ops")
		}
	}
	s.wait(id, "succeeded")
	b := s.browse(light)
	b.open("/ui/")
	b.until(`document.querySelector('.inbox').hidden`)
}
