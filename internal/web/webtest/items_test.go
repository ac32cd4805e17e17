//go:build browser

package webtest

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// A plan of eight mailboxes, of which six cannot be copied.
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
	s := serve(t)
	s.node()
	p := s.submit(mailboxes)
	s.wait(p, "failed")
	b := s.browse(light)
	b.open("/ui/")
	b.sees(".plans .broken", "6 failed")
	b.sees(".plans .count", "11 of 11")
	for _, page := range []struct{ tab, selector, text string }{
		{"tasks", ".trow", "copy[3] (dave)"},
		{"tasks", ".trow", "copy 6 of 8 items failed"},
		{"failures", "main", "6 tasks failed, in 1 kind."},
		{"failures", ".groups a", "copy[7] (hal)"},
		{"failures", ".groups summary", "What copy[2] (cy) printed last"},
		{"timeline", ".drawing", "copy[0] (ann)"},
	} {
		b.open("/ui/plans/" + p + "/" + page.tab)
		b.sees(".legend", "6 failed")
		b.until(`document.querySelector('.tabs a:nth-child(5) .n').innerText === '6'`)
		if page.tab == "timeline" {
			b.until(`document.querySelector('canvas.surface') !== null`)
			b.js(`document.querySelectorAll('.drawing details').forEach((d) => { d.open = true; })`)
		}
		b.sees(page.selector, page.text)
		b.shot("items-" + page.tab)
	}
	b.open("/ui/plans/" + p + "/graph")
	b.until(`[...document.querySelectorAll('.legend-states button')].some((e) => /^failed\s+6$/.test(e.innerText.trim()))`)
	b.js(`document.querySelector('.drawing details').open = true`)
	b.sees(".drawing details", "copy[3] (dave)")
	b.do(chromedp.SendKeys(".drawing input[type=search]", "dave"))
	b.sees(".draw-said", "copy[3] (dave), failed")
	b.shot("items-graph")
	b.open("/ui/tasks/" + s.task(p, "copy"))
	b.sees("aside .links", "copy[3] (dave)")
	b.shot("items-task")
}
