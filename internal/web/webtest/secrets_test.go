//go:build browser

package webtest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestSecretsOfAQueueAreOnNoPage(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.ask("POST", "/queues", "application/json", `{"name": "exec", "plugin": "exec", "threads": 4}`)
	b := s.browse(light)
	b.open("/ui/queues")
	b.click(".queue button", "Settings")
	b.sees("dialog", "Secret params")
	b.do(chromedp.SendKeys("dialog input[name=secrets]", "password, *_key"), chromedp.SendKeys("dialog input[name=keep]", "succeeded=36h, lost=30d"))
	b.shot("queue-settings")
	b.expect("status of 412")
	s.sluice("queue", "set", "exec", "--threads", "7") // meanwhile, by somebody else
	b.click("dialog button", "Save")
	b.sees("dialog .problem", "Somebody else set it meanwhile")
	b.click("dialog button", "Save")
	b.until(`document.querySelector('dialog') === null`)
	b.sees(".queue", "secret: *_key, password")
	b.sees(".queue", "kept: succeeded=36h, lost=30d")

	small := s.browse(look{width: 390, height: 844, phone: true, dark: true})
	small.open("/ui/queues")
	small.click(".queue button", "Settings")
	small.until(`document.querySelector('dialog input[name=secrets]')?.value === '*_key, password'`)
	small.shot("queue-settings-phone-dark")
	if wide := eval[[]int](small, `[document.documentElement.scrollWidth, innerWidth]`); wide[0] > wide[1] {
		t.Errorf("the queues scroll sideways: they are %d wide on %d", wide[0], wide[1])
	}
	for what, js := range map[string]string{"too little contrast": contrast, "what has no name": nameless} {
		if bad := eval[[]string](small, js); len(bad) > 0 {
			t.Errorf("the queues have %s: %s", what, strings.Join(bad, "; "))
		}
	}

	s.node()
	const file = `plan: hidden
params: {password: hunter22-of-the-plan, user: ann}
tasks:
  login:
    run: echo "it is $password"; echo "{\"password\":\"$password\",\"api_key\":\"$(printf hunt)er22-key\",\"said\":\"with $password\"}" > "$SLUICE_OUTPUT"
  fails:
    needs: [login]
    run: [sh, -c, 'echo "cannot log in with $0" >&2; exit 3', "${{ params.password }}"]
  each: {foreach: [{password: hunter22-of-an-item}], run: 'true'}
`
	id := s.submit(file)
	s.wait(id, "failed")
	clean := func(where string) {
		t.Helper()
		if page := eval[string](b, `document.documentElement.outerHTML`); strings.Contains(page, "hunter22") {
			t.Errorf("%s shows a secret: …%.300s", where, page[max(0, strings.Index(page, "hunter22")-150):])
		}
	}
	for _, p := range []struct{ path, sees string }{
		{"/ui/tasks/" + s.task(id, "login"), "it is ***"},
		{"/ui/tasks/" + s.task(id, "login"), `"said": "with ***"`},
		{"/ui/tasks/" + s.task(id, "fails"), "cannot log in with ***"},
		{"/ui/tasks/" + s.task(id, "each[0]"), `"password": "***"`},
		{"/ui/plans/" + id + "/tasks", "fails"},
		{"/ui/plans/" + id + "/failures", "cannot log in with ***"},
		{"/ui/plans/" + id + "/params", `"password": "***"`},
		{"/ui/plans/" + id + "/timeline", "Time line"},
		{"/ui/plans/" + id, "Graph"},
	} {
		b.open(p.path)
		b.sees("main", p.sees)
		clean(p.path)
	}
	b.open("/ui/tasks/" + s.task(id, "fails"))
	b.shot("task-secrets")

	// Nobody but an administrator takes one off: here everybody is one.
	b.open("/ui/queues")
	b.click(".queue button", "Settings")
	b.until(`document.querySelector('dialog input[name=secrets]').value === '*_key, password'`)
	b.js(`document.querySelector('dialog input[name=secrets]').value = 'password'`)
	b.click("dialog button", "Save")
	b.until(`document.querySelector('dialog') === null`)
	b.until(`document.querySelector('.queue').innerText.includes('secret: password')`)
}

func TestAnOperatorTakesNoSecretOff(t *testing.T) {
	access := filepath.Join(t.TempDir(), "access.json")
	for user, role := range map[string]string{"otto": "operator", "edda": "editor"} {
		add := exec.Command(program, "access", "user", "add", user, "--role", role, "--access", access)
		add.Stdin = strings.NewReader("correct horse " + user + "\n")
		if out, err := add.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Parallel()
	s := serve(t, "--access", access)
	s.sluice("queue", "create", "exec", "--secret", "password")
	login := func(b *tab, user string) {
		t.Helper()
		b.sees("h1", "Log in")
		b.do(chromedp.SendKeys("input[name=user]", user), chromedp.SendKeys("input[name=password]", "correct horse "+user))
		b.click("button[type=submit]", "Log in")
	}
	b := s.browse(light)
	b.expect("status of 401")
	b.expect("status of 403")
	b.open("/ui/queues")
	login(b, "otto")
	b.click(".queue button", "Settings")
	b.until(`document.querySelector('dialog input[name=secrets]').value === 'password'`)
	b.js(`document.querySelector('dialog input[name=secrets]').value = ''`)
	b.click("dialog button", "Save")
	b.sees("dialog .problem", "only an administrator takes that off")
	b.press(kb.Escape)
	b.click("#top button", "Log out")
	b.until(`location.pathname === '/ui/login'`)

	// The page of a plan says who submitted it: in a session, with its token, as a form.
	login(b, "edda")
	b.until(`location.pathname !== '/ui/login'`)
	b.open("/ui/submit")
	b.paste("plan: mine\ntasks: {a: {run: 'true'}}\n")
	b.click("button[type=submit]", "Submit")
	b.sees(".meta", "by edda")
}
