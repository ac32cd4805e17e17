//go:build browser

package webtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A file with params of all kinds. One of them has to be given, and the file has a note.
const checked = `plan: checked
params: {user: , password: , domain: example.com, dry: true, limits: {most: 3}}
secrets: [password]
queues: {exec: {threads: 4}}
tasks:
  list:
    run: echo "$user@$domain with $password in $PWD, dry $dry"
  alter: {needs: [list], run: 'test ${#password} = 8'}
  check: {needs: [alter], run: 'true'}
  undo: {needs: [check], when: any_failed, run: 'true'}
`

func (b *tab) paste(text string) {
	b.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		b.Fatal(err)
	}
	b.js(`{ const t = document.getElementById('file'); t.focus(); t.select(); document.execCommand('insertText', false, ` + string(quoted) + `); }`)
}

func TestAPlanIsCheckedAndItsParamsAreFields(t *testing.T) {
	for _, l := range []struct {
		name string
		look
	}{{"light", light}, {"dark", dark}, {"phone", phone}} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.ask("POST", "/queues", "application/json", `{"name": "exec", "plugin": "exec", "threads": 2}`)
			s.node()
			b := s.browse(l.look)
			b.expect("status of 422")
			b.open("/ui/submit")
			b.until(`document.activeElement.id === 'file'`)

			// A mistake is shown with its place, its line and a caret, and leads there.
			b.paste(strings.Replace(checked, "needs: [list]", "needs: [lst]", 1))
			b.click("button", "Check")
			b.sees("#mistakes", "1 mistake")
			b.sees("#mistakes .place", "8:19")
			b.until(`document.querySelector('.excerpt').textContent.split('\n')[1].indexOf('^') === 18`)
			b.until(`document.querySelectorAll('.gutter .wrong').length === 1`)
			b.shot("check-mistake-" + l.name)

			// A submission that lacks params has fields for them, as a check has; by keys alone.
			b.paste(checked)
			b.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
			b.sees("#mistakes", "To be given: user, password")
			b.until(`document.activeElement.id === 'param-user'`)
			b.sees("#mistakes .noted", "2 notes")
			b.sees("#mistakes .noted .place", "10:32")
			b.sees("#mistakes .noted code", "sluice queue set exec --threads 4 --server "+s.url)
			b.shot("check-missing-" + l.name)
			b.press("ann")
			b.do(chromedp.SendKeys("#param-password", "hunter22"))
			b.do(chromedp.SetValue("#dir", s.dir))
			b.js(`{ const s = document.getElementById('param-dry'); s.value = 'false'; s.dispatchEvent(new Event('change')); }`)
			b.do(chromedp.Focus("#param-domain"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl|chromedp.ModifierShift)))
			b.sees("#mistakes", "It can be submitted")
			b.sees("#mistakes", "4 tasks, 3 needs, at most 4 one after the other")
			if typed := eval[string](b, `document.getElementById('param-password').type + ' ' + document.getElementById('param-user').value + ' ' + document.getElementById('param-password').value`); typed != "password ann hunter22" {
				t.Errorf("after a check the fields are %q", typed)
			}
			b.js(`scrollTo(0, document.body.scrollHeight)`)
			b.shot("check-passed-" + l.name)
			if wide := eval[[]int](b, `[document.documentElement.scrollWidth, innerWidth]`); wide[0] > wide[1] {
				t.Errorf("it scrolls sideways: it is %d wide on %d", wide[0], wide[1])
			}
			for what, js := range map[string]string{"too little contrast": contrast, "what has no name": nameless} {
				if bad := eval[[]string](b, js); len(bad) > 0 {
					t.Errorf("it has %s: %s", what, strings.Join(bad, "; "))
				}
			}
			if kept := eval[string](b, `JSON.stringify({...sessionStorage, ...localStorage})`); strings.Contains(kept, "hunter22") {
				t.Errorf("a secret is kept in the browser: %s", kept)
			}

			b.click("button[type=submit]", "Submit")
			b.sees("h1", "checked #1")
			b.sees(".noted", "2 notes")
			b.sees("h1", "succeeded")
			b.shot("check-submitted-" + l.name)
			b.click(".noted button", "✕")
			b.until(`document.querySelector('.noted') === null`)
			b.click(".tabs a", "Params")
			b.sees(".code", `"password": "***"`)
			b.sees(".facts", "Never shown")
			b.shot("check-params-" + l.name)
			id := eval[string](b, `location.pathname.split('/')[3]`)
			b.open("/ui/tasks/" + s.task(id, "list"))
			b.sees(".log", "ann@example.com with *** in "+s.dir+", dry false")
			if strings.Contains(b.text("body"), "hunter22") {
				t.Error("the secret is on the page of the task")
			}
		})
	}
}

// A param with choices is a list, which has its default first, and each param has its text for people.
func TestAParamWithChoicesIsAList(t *testing.T) {
	const release = `plan: release
params: {site: test, level: , note: ""}
choices: {site: [test, stage, prod], level: [1, 2, 3]}
about: {site: Where to, level: "How careful: 3 asks twice", note: For the log}
tasks: {a: {run: 'echo "to $site at $level"'}}
`
	for _, l := range []struct {
		name string
		look
	}{{"light", light}, {"dark", dark}, {"phone", phone}} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			b := s.browse(l.look)
			b.expect("status of 422")
			b.open("/ui/submit")
			b.paste(release)
			b.do(chromedp.SetValue("#dir", s.dir))
			b.click("button[type=submit]", "Submit")
			b.sees("#mistakes", "To be given: level")
			b.until(`document.activeElement.id === 'param-level'`)
			const lists = `[...document.querySelectorAll('.declared select')].map((s) => s.id + ': ' + [...s.options].map((o) => o.value + '=' + o.textContent).join(', ')).join('; ')`
			if got := eval[string](b, lists); got != "param-site: =test, as in the file, stage=stage, prod=prod; param-level: =Choose…, 1=1, 2=2, 3=3" {
				t.Errorf("the lists are %s", got)
			}
			b.sees("#param-site-note", "Where to")
			b.sees("#param-level-note", "How careful: 3 asks twice · it has to be given")
			b.sees("#param-note-note", "For the log")
			b.js(`scrollTo(0, document.body.scrollHeight)`)
			b.shot("submit-choices-" + l.name)
			if wide := eval[[]int](b, `[document.documentElement.scrollWidth, innerWidth]`); wide[0] > wide[1] {
				t.Errorf("it scrolls sideways: it is %d wide on %d", wide[0], wide[1])
			}
			for what, js := range map[string]string{"too little contrast": contrast, "what has no name": nameless} {
				if bad := eval[[]string](b, js); len(bad) > 0 {
					t.Errorf("it has %s: %s", what, strings.Join(bad, "; "))
				}
			}
			for id, value := range map[string]string{"site": "prod", "level": "2"} {
				b.js(`{ const s = document.getElementById('param-` + id + `'); s.value = '` + value + `'; s.dispatchEvent(new Event('change')); }`)
			}

			// A choice that the file no longer has is a mistake; the page keeps what was chosen.
			b.paste(strings.Replace(release, "stage, prod", "live", 1))
			b.click("button", "Check")
			b.sees("#mistakes", "site=prod: it is no choice")
			b.paste(release)
			b.click("button", "Check")
			b.sees("#mistakes", "It can be submitted")
			b.until(`document.getElementById('param-site').value === 'prod' && document.getElementById('param-level').value === '2'`)
			b.click("button[type=submit]", "Submit")
			b.sees("h1", "release #1")
			b.click(".tabs a", "Params")
			b.sees(".code", `"site": "prod"`)
			b.sees(".code", `"level": 2`)
		})
	}
}

// Params that are added by hand, before or without a check, are submitted. Mistakes in an opened
// file name that file.
func TestParamsThatAreAddedAndAFileThatIsOpened(t *testing.T) {
	t.Parallel()
	s := serve(t)
	path := filepath.Join(s.dir, "nightly.yaml")
	if err := os.WriteFile(path, []byte(checked+"  extra: {neds: [list]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := s.browse(light)
	b.expect("status of 422")
	b.open("/ui/submit")
	b.do(chromedp.SetUploadFiles("input[type=file]", []string{path}))
	b.until(`document.getElementById('file').value.includes('extra')`)
	b.click("button", "Check")
	b.sees("#mistakes .place", "nightly.yaml:11:11")
	b.click("button", "Add a param")
	b.press("user\tann")
	b.paste(checked)
	b.click("button", "Check")
	b.sees("#mistakes", "To be given: password")
	b.until(`document.getElementById('param-user').value === 'ann' && document.querySelectorAll('.params .row').length === 0`)
	b.click("button", "Add a param")
	b.press("other\tx")
	b.click("button", "Check")
	b.sees("#mistakes", "the plan has no such param")
	b.click(".params .row button", "✕")
	b.do(chromedp.SendKeys("#param-password", "hunter22"))
	b.do(chromedp.SetValue("#dir", "not/absolute"))
	b.click("button", "Check")
	b.sees("#mistakes", "is not an absolute path")
	b.js(`document.getElementById('dir').value = ''`)
	b.click("button[type=submit]", "Submit")
	b.sees("h1", "checked #1")
}

// A file that depends on a folder is not submitted by the way without one: the page asks for it, and takes no answer for one.
func TestAFolderIsAskedForWhereTheFileNeedsOne(t *testing.T) {
	const fan = "plan: fan\ntasks:\n  count: {foreach: {glob: 'data/*.txt'}, run: wc}\n"
	t.Parallel()
	s := serve(t)
	if err := os.Mkdir(filepath.Join(s.dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.node()
	b := s.browse(light)
	b.open("/ui/submit")
	b.paste(fan)
	b.click("button[type=submit]", "Submit")
	b.sees("#dir-note", "Give the folder")
	b.sees("#mistakes .noted .place", "3:20")
	b.until(`document.activeElement.id === 'dir'`)
	b.shot("folder-asked")
	b.press(s.dir)
	b.until(`document.getElementById('dir-note').className === 'muted'`)
	b.click("button[type=submit]", "Submit")
	b.sees("h1", "fan #1")
	b.sees("h1", "succeeded")
	b.open("/ui/tasks/" + s.task("fan%231", "count"))
	b.sees("main", "no items: nothing matches data/*.txt in "+s.dir)

	b.open("/ui/submit")
	b.paste(fan)
	b.click("button", "Check")
	b.sees("#dir-note", "Give the folder")
	b.click("button[type=submit]", "Submit")
	b.sees("#dir-note", "Submit again if that is meant")
	b.click("button[type=submit]", "Submit")
	b.sees("h1", "fan #2")
	b.sees(".noted", "the plan was given no folder")
}
