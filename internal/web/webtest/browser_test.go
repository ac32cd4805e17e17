//go:build browser

package webtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/polltest"
)

// patience is how long something that is expected may take: browsers on a loaded machine take their time.
const patience = 2 * time.Minute

var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sluice-browser")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "sluice")
	out, err := exec.Command("go", "build", "-o", program, "github.com/seed-1177d267/sluice/cmd/sluice").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// A site is a server over a store of its own.
type site struct {
	*testing.T
	dir, store, url string
	stop            func() // ends what was started last
}

// serve starts a server, with more arguments if they are given.
func serve(t *testing.T, args ...string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{T: t, dir: dir, store: "sqlite:" + filepath.Join(dir, "sluice.db")}
	line := s.start(regexp.MustCompile(`the pages: (\S+)/ui/`), append([]string{"dci", "--listen", "127.0.0.1:0"}, args...)...)
	s.url = line[1]
	return s
}

// start runs the program until the test ends, and returns the matching part of its output.
func (s *site) start(says *regexp.Regexp, args ...string) []string {
	s.Helper()
	cmd := exec.Command(program, append(args, "--store", s.store)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	said := make(chan []string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if found := says.FindStringSubmatch(lines.Text()); found != nil {
				select {
				case said <- found:
				default:
				}
			}
		}
	}()
	s.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		<-read
		_ = cmd.Wait()
		late.Stop()
	})
	s.Cleanup(s.stop)
	select {
	case found := <-said:
		return found
	case <-time.After(patience):
		s.Fatalf("sluice %s did not say %v", strings.Join(args, " "), says)
		return nil
	}
}

// node starts a node.
func (s *site) node() {
	s.start(regexp.MustCompile(`.`), "den", "--threads", "4", "--log-level", "debug")
}

// sluice runs a command on the store.
func (s *site) sluice(args ...string) string {
	s.Helper()
	out, err := exec.Command(program, append(args, "--store", s.store)...).CombinedOutput()
	if err != nil {
		s.Fatalf("sluice %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ask asks the API. A path is below api.Root, unless it begins with api.OSTERoot.
func (s *site) ask(method, path, kind, body string) []byte {
	s.Helper()
	if !strings.HasPrefix(path, api.OSTERoot) {
		path = api.Root + path
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", kind)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode/100 != 2 {
		s.Fatalf("%s %s: %d %s %v", method, path, a.StatusCode, text, err)
	}
	return text
}

// submit submits a plan file, and returns the plan's id.
func (s *site) submit(file string) string {
	s.Helper()
	var p struct{ ID string }
	if err := json.Unmarshal(s.ask("POST", "/plans", "application/yaml", file), &p); err != nil {
		s.Fatal(err)
	}
	return p.ID
}

// task returns the id of a plan's task.
func (s *site) task(plan, name string) string {
	s.Helper()
	var found struct{ Tasks []struct{ ID string } }
	if err := json.Unmarshal(s.ask("GET", "/plans/"+plan+"/tasks?name="+url.QueryEscape(name), "", ""), &found); err != nil || len(found.Tasks) != 1 {
		s.Fatalf("task %s: %v %v", name, found, err)
	}
	return found.Tasks[0].ID
}

// wait waits until a plan has ended.
func (s *site) wait(plan, state string) {
	s.Helper()
	for range 3 {
		var p struct{ State string }
		if err := json.Unmarshal(s.ask("GET", "/plans/"+plan+"/wait?timeout=50s", "", ""), &p); err != nil {
			s.Fatal(err)
		}
		if p.State == state {
			return
		}
	}
	s.Fatalf("plan %s did not become %s", plan, state)
}

// A tab is a page in a browser. Each complaint of the page fails the test.
type tab struct {
	*site
	ctx context.Context

	mu      sync.Mutex
	wrong   []string
	allowed []string // parts of complaints that a test expects
}

type look struct {
	width, height int64
	dark, phone   bool
}

var (
	light = look{width: 1280, height: 860}
	dark  = look{width: 1280, height: 860, dark: true}
	phone = look{width: 390, height: 844, phone: true}
)

// browse opens a browser.
func (s *site) browse(l look) *tab {
	s.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		s.Fatalf("%v: these tests need it; make test-browser installs it", err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("force-prefers-reduced-motion", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	s.Cleanup(stop)
	b := &tab{site: s}
	for _, drawn := range []string{"graph.js", "timeline.js"} { // a program may be without
		if _, err := os.Stat("../static/" + drawn); err != nil {
			b.expect("/ui/" + drawn)
		}
	}
	ctx, stop := chromedp.NewContext(alloc, chromedp.WithListener(b.hear))
	s.Cleanup(stop)
	b.ctx = ctx
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	b.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) { // the first call starts the browser, and has no time limit of its own
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return chromedp.Void{}, err
	})
	if l.phone {
		b.do(chromedp.EmulateViewport(l.width, l.height, chromedp.EmulateMobile, chromedp.EmulateTouch))
	} else {
		b.do(chromedp.EmulateViewport(l.width, l.height))
	}
	b.ctx, stop = context.WithTimeout(ctx, 4*time.Minute)
	s.Cleanup(stop)
	s.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, w := range b.wrong {
			s.Errorf("the browser complains: %s", w)
		}
	})
	return b
}

// hear notes what a page should not do: complain, break the policy, ask another host.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	complain := func(text string) {
		if !slices.ContainsFunc(b.allowed, func(part string) bool { return strings.Contains(text, part) }) {
			b.wrong = append(b.wrong, text)
		}
	}
	switch e := event.(type) {
	case *log.EventEntryAdded: // refusals of the policy are here, too
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			complain(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			complain("console: " + strings.Join(words, " "))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		complain("exception: " + text)
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, b.url+"/") && !strings.HasPrefix(u, "data:") && u != "about:blank" {
			complain("request to another host: " + u)
		}
	}
}

// expect says that complaints with a part of this text are none.
func (b *tab) expect(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, part)
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// eval returns what an expression is in the page.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return value
}

// js runs a statement in the page.
func (b *tab) js(statement string) {
	b.Helper()
	eval[bool](b, statement+"; true")
}

// press presses keys, one after the other. It sends the text of a key with the key, as a keyboard
// does. chromedp.KeyEvent sends the text separately, so that it would be typed even if the page
// used the key for something else.
func (b *tab) press(keys ...string) {
	b.Helper()
	for _, r := range strings.Join(keys, "") {
		b.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
			text := ""
			events := kb.Encode(r)
			for _, e := range events {
				if e.Type == kb.KeyChar {
					text = e.Text
				}
			}
			for _, e := range events {
				switch e.Type {
				case kb.KeyChar:
					continue
				case kb.KeyDown, kb.KeyRawDown:
					e.Type, e.Text = kb.KeyDown, text
				}
				if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *e); err != nil {
					return chromedp.Void{}, err
				}
			}
			return chromedp.Void{}, nil
		})
	}
}

// open goes to a page, and waits until it shows something.
func (b *tab) open(path string) {
	b.Helper()
	b.do(chromedp.Navigate(b.url + path))
	b.until(`document.querySelector('main h1') !== null`)
}

// until waits until an expression holds.
func (b *tab) until(expression string) {
	b.Helper()
	var ok bool
	var err error
	polltest.Holds(patience, func() bool {
		ok, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return err == nil && ok || b.ctx.Err() != nil
	})
	if err != nil || !ok {
		b.shot("failed-" + b.Name())
		b.Fatalf("never: %s (%v)\n%s", expression, err, b.text("body"))
	}
}

// sees waits until there is a text in what a selector finds.
func (b *tab) sees(selector, text string) {
	b.Helper()
	b.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))`, selector, text))
}

func (b *tab) text(selector string) string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q)?.innerText || ''`, selector)))
	if err != nil {
		return err.Error()
	}
	return text
}

// click presses what a selector finds and has the text, once it is enabled: a button is not while what
// it did before goes on.
func (b *tab) click(selector, text string) {
	b.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((e) => e.offsetParent !== null && !e.disabled && e.innerText.trim().includes(%q))`, selector, text)
	b.until(find)
	b.js(find + ".click()")
}

// shot saves a picture of the page, where SLUICE_SCREENSHOTS names a folder.
func (b *tab) shot(name string) {
	b.Helper()
	dir := os.Getenv("SLUICE_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Error(err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".png"), png, 0o666); err != nil {
		b.Error(err)
	}
}
