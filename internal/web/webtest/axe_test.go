//go:build browser

package webtest

import (
	"os"
	"strings"

	"github.com/chromedp/chromedp"
)

// axe returns what axe-core finds on the page, a line for each kind, where SLUICE_AXE names its script
// axe.min.js, which npm has. It includes the rule that a name has the text which is seen.
func (b *tab) axe() []string {
	b.Helper()
	path := os.Getenv("SLUICE_AXE")
	if path == "" {
		return nil
	}
	script, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	b.js(string(script))
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`axe.run(document, {rules: {'label-content-name-mismatch': {enabled: true}}}).then((r) =>
		r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 4).map((n) => n.target.join(' ') + ' ' + n.html.slice(0, 160)).join(' | ')))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	if len(found) > 0 {
		b.Logf("axe: %s", strings.Join(found, "\n"))
	}
	return found
}
