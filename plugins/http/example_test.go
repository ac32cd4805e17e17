package http_test

import (
	"context"
	"fmt"
	"io"
	"log"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/http"
)

// A program whose nodes send requests, here to a receiver on the same host.
func Example() {
	receiver := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.Method, r.URL, string(body))
		io.WriteString(w, `{"published": true}`)
	}))
	defer receiver.Close()
	ctx := context.Background()
	st, err := sluice.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	requests := http.New(http.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	defer requests.Close()
	reg := plugins.NewRegistry()
	reg.Register(http.Name, requests)
	spec := plan.New("songs")
	spec.Add(plan.TaskSpec{Name: "publish", Plugin: http.Name, Params: map[string]any{
		"url": receiver.URL + "/songs/{id}/publish", "body": map[string]any{"id": 7},
	}})
	run, err := st.Submit(ctx, spec)
	if err != nil {
		log.Fatal(err)
	}
	if err := den.Run(ctx, st, den.Config{Plugins: reg, Plan: run.ID}); err != nil {
		log.Fatal(err)
	}
	out, err := st.Output(ctx, run.ID, "publish")
	fmt.Println(string(out), err)
	// Output:
	// POST /songs/7/publish {"id":7}
	// {"status":200,"body":{"published":true}} <nil>
}
