package v1_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// Commands name the server that handed them out. They name its store only to its own host, and only
// if the name cannot hold a password.
func TestCommandsNameTheServerOrItsStore(t *testing.T) {
	const file, mongo = "sqlite:/srv/s.db", "mongodb://user:hunter22@db/sluice"
	for _, c := range []struct {
		name, store, host, from string
		change                  func(*http.Request)
		server, node            string
	}{
		{"on its host", file, "127.0.0.1:8080", "127.0.0.1:4711", nil, "http://127.0.0.1:8080", file},
		{"by its name", file, "localhost:8080", "[::1]:4711", nil, "http://localhost:8080", file},
		{"from elsewhere", file, "plans.example.com", "10.0.0.7:4711", nil, "http://plans.example.com", "URI"},
		{"by a tunnel", file, "plans.example.com", "127.0.0.1:4711", nil, "http://plans.example.com", "URI"},
		{"by a proxy", file, "127.0.0.1:8080", "127.0.0.1:4711", func(r *http.Request) {
			r.Header.Set("X-Forwarded-For", "10.0.0.7")
			r.Header.Set("X-Forwarded-Proto", "https")
		}, "https://127.0.0.1:8080", "URI"},
		{"over TLS", file, "127.0.0.1:8443", "127.0.0.1:4711", func(r *http.Request) { r.TLS = &tls.ConnectionState{} }, "https://127.0.0.1:8443", file},
		{"over a socket", file, "localhost", "@", func(r *http.Request) {
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Name: "/run/s.sock", Net: "unix"}))
		}, "unix:/run/s.sock", file},
		{"a store with a password", mongo, "127.0.0.1:8080", "127.0.0.1:4711", nil, "http://127.0.0.1:8080", "URI"},
		{"a path with a space", "sqlite:/srv/my plans.db", "127.0.0.1:8080", "127.0.0.1:4711", nil, "http://127.0.0.1:8080", "'sqlite:/srv/my plans.db'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/api/v1/plans", nil)
			r.Host, r.RemoteAddr = c.host, c.from
			if c.change != nil {
				c.change(r)
			}
			p := v1.PlaceOf(r, c.store)
			for got, want := range map[string]string{
				p.Command([]string{"task", "logs", "p#1", "a"}):           "sluice task logs p#1 a --server " + c.server,
				p.Command([]string{"worker"}):                             "sluice worker --store " + c.node,
				p.Command([]string{"plan", "run", "--resume", "p#1"}):     "sluice plan run --resume p#1 --store " + c.node,
				p.Command([]string{"plan", "retry", "p#1", "a", "--run"}): "sluice plan retry p#1 a --run --store " + c.node,
				p.Command(nil): "",
			} {
				if got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

func TestAnExplanationNamesItsServersStore(t *testing.T) {
	st := model.New(model.Options{})
	s := serveStore(t, st, v1.Config{Store: st, URI: "sqlite:/srv/s.db"})
	spec := plan.New("p")
	spec.Add(plan.TaskSpec{Name: "a", Plugin: "demo"})
	p := submitted(t, st, spec)
	for _, path := range []string{"/plans/p/waiting", "/tasks/" + s.named(p, "a") + "/explain"} {
		if _, text := s.ask("GET", path, ""); !strings.Contains(text, `--store sqlite:/srv/s.db"`) {
			t.Errorf("%s: %s", path, text)
		}
	}
	_, _ = s.ask("POST", "/plans/"+p.ID.String()+"/cancel", "")
	if _, text := s.ask("GET", "/tasks/"+s.named(p, "a")+"/explain", ""); strings.Contains(text, `"do"`) && !strings.Contains(text, "--server "+strings.TrimSuffix(s.url, api.Root)) {
		t.Errorf("what needs no store: %s", text)
	}
}
