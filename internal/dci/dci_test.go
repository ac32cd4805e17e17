package dci_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/api/disbatch"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/dci"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/telemetry"
	"github.com/seed-1177d267/sluice/internal/web"
	"github.com/seed-1177d267/sluice/plan"
)

// serve starts a server, and returns it with what stops it and says how it ended.
func serve(t *testing.T, address string) (*dci.Server, func() error) {
	t.Helper()
	return serveAs(t, address, func(*dci.Config) {})
}

// serveAs is serve with a configuration that as changes.
func serveAs(t *testing.T, address string, as func(*dci.Config)) (*dci.Server, func() error) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	st := model.New(model.Options{})
	guard, err := auth.New(auth.Config{Listen: address, Hosts: []string{"Plans.example.com"}, LoginPath: "/ui/login", Home: "/ui/", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	old, err := disbatch.New(disbatch.Config{Store: st, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	c := dci.Config{Store: st, API: v1.New(v1.Config{Store: st}), Disbatch: old, Guard: guard, Log: log}
	as(&c)
	return start(t, c, address)
}

// start starts a server with its own pages and metrics. It returns the server, and a function that
// stops it and returns how it ended. The end of the test stops it at the latest.
func start(t *testing.T, c dci.Config, address string) (*dci.Server, func() error) {
	t.Helper()
	c.Pages, c.Metrics = web.New(), telemetry.NewMetrics(c.Store, c.Log)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := dci.Listen(ctx, c, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop := func() error { cancel(); err := <-ended; ended <- err; return err }
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return s, stop
}

// A browser that asks for the root is led to the pages, unless a configuration of Disbatch is in use.
func TestABrowserIsLedToThePages(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		s, _ := serveAs(t, "127.0.0.1:0", func(c *dci.Config) { c.Foreign = foreign })
		ask, err := http.NewRequest("GET", s.URL()+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		ask.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		answer, err := http.DefaultClient.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		want := "/ui/"
		if foreign {
			want = "/"
		}
		if answer.StatusCode != 200 || answer.Request.URL.Path != want {
			t.Errorf("with a configuration of Disbatch %v: %d at %s, want %s", foreign, answer.StatusCode, answer.Request.URL.Path, want)
		}
	}
}

// Monitors of Disbatch ask for the root, and people who come there by habit find the way on.
func TestTheRootIsDisbatchs(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0")
	answer, err := http.Get(s.URL() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 || answer.Request.URL.Path != "/" || !strings.Contains(string(text), "Disbatch Queues") ||
		!strings.Contains(string(text), `href="/ui/"`) {
		t.Errorf("%s: %d %s (%v)", answer.Request.URL, answer.StatusCode, text, err)
	}
}

func TestOnlyWhatIsMeantForTheServerIsAnswered(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0")
	for _, c := range []struct {
		method, host, origin, site string
		status                     int
	}{
		{"GET", "", "", "", 200},
		{"GET", "localhost", "", "", 200},
		{"GET", "plans.example.com", "", "", 200},
		{"GET", "evil.example", "", "", 421},
		{"GET", "127.0.0.1.evil.example", "", "", 421},
		{"POST", "", "", "", 422}, // which is the API's own answer
		{"POST", "", "http://evil.example", "", 403},
		{"POST", "", "", "cross-site", 403},
		{"POST", "", "", "same-origin", 422},
	} {
		path := "/api/v1/plans"
		if c.method == "POST" {
			path = "/api/v1/queues"
		}
		r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL()+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site, "Content-Type": "application/json"} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(a.Body)
		a.Body.Close()
		if a.StatusCode != c.status {
			t.Errorf("%+v: %d %s", c, a.StatusCode, text)
		}
	}
}

// gone is a store that knows the time and nothing else, as one whose file was deleted.
type gone struct{ store.Store }

func (gone) Queues(context.Context) ([]plan.Queue, error) { return nil, plan.ErrStoreGone }

func TestAServerWhoseStoreIsGoneIsNotReady(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	st := gone{model.New(model.Options{})}
	guard, err := auth.New(auth.Config{Listen: "127.0.0.1:0", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, dci.Config{Store: st, API: v1.New(v1.Config{Store: st}), Guard: guard, Log: log}, "127.0.0.1:0")
	a, err := http.Get(s.URL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	if a.Body.Close(); a.StatusCode != http.StatusServiceUnavailable {
		t.Error(a.Status)
	}
}

func TestASocketIsItsOwnersAndGoesWithTheServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	old, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false)
	old.Close() // its file stays, as a killed process's does
	s, stop := serve(t, "unix:"+path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	defer client.CloseIdleConnections()
	if a, err := client.Get("http://localhost/readyz"); err != nil || a.StatusCode != 200 {
		t.Errorf("%v %v", a, err)
	}
	if s.URL() != "unix:"+path {
		t.Error(s.URL())
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestFiguresNameTheRouteOfARequest(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0")
	text := ""
	for _, path := range []string{"/api/v1/plans/none", "/api/v1/plans", "/metrics", "/debug/pprof/"} {
		a, err := http.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(a.Body)
		a.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if path == "/metrics" {
			text = string(body)
		}
		if path == "/debug/pprof/" && a.StatusCode != 200 {
			t.Error(a.Status)
		}
	}
	for _, want := range []string{`sluice_http_seconds_count{code="404",route="GET /api/v1/plans/{plan}"} 1`, `sluice_http_seconds_count{code="200",route="GET /api/v1/plans"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

func TestProfiles(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0")
	get := func(path string) (int, []byte) {
		t.Helper()
		a, err := http.Get(s.URL() + "/debug/pprof/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, body
	}
	for path, begins := range map[string]string{
		"": "profile?seconds=30", "goroutine": "\x1f\x8b", "heap?gc=1": "\x1f\x8b", "goroutine?debug=2": "goroutine ",
		"profile?seconds=0.01": "\x1f\x8b", "trace?seconds=0.01": "go 1.",
	} {
		if status, body := get(path); status != 200 || !strings.HasPrefix(string(body), begins) {
			t.Errorf("%q is answered %d, %.80q", path, status, body)
		}
	}
	for path, want := range map[string]int{"nothing": 404, "heap?seconds=1": 400, "profile?seconds=x": 400, "trace?seconds=3600": 400, "profile?seconds=NaN": 400} {
		if status, body := get(path); status != want {
			t.Errorf("%q is answered %d, not %d: %.80q", path, status, want, body)
		}
	}
}

func TestWhoListensDoesNotHoldUpTheEnd(t *testing.T) {
	s, stop := serve(t, "127.0.0.1:0")
	a, err := http.Get(s.URL() + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(a.Body); err != nil { // a server that waits for who listens cuts the connection in the end
		t.Errorf("the events end with %v", err)
	}
}
