package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/plugins/http"
)

// httpScenarios compare requests that are tasks with the smaller of two rates: of tasks that do
// nothing, and of requests without tasks.
func httpScenarios() []scenario {
	return onBoth("http", fmt.Sprintf("requests of the plugin http to a receiver in this process, %d threads", mostThreads), requests)
}

// sent is the body of each request.
const sent = `{"SongId":1234}`

func requests(ctx context.Context, t *trial) {
	n := t.size(20_000, 1_000)
	if t.kind == onMongoDB {
		n = t.size(4_000, 600)
	}
	var received atomic.Int64 // requests with the body that is sent
	receiver := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && string(body) == sent {
			received.Add(1)
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer receiver.Close()
	params := must(json.Marshal(map[string]any{"url": receiver.URL + "/song/{SongId}", "body": json.RawMessage(sent)}))
	t.again(3, func() {
		received.Store(0)
		plugin := http.New(http.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		requests := perSecond(n, drainOnce(ctx, t, n, work{named{http.Name: plugin}, ofNoPlan(http.Name, params), received.Load}))
		check(plugin.Close())
		bare := perSecond(n, bareRequests(ctx, receiver.URL, n))
		if got := received.Load(); got != int64(2*n) {
			failf("%d of %d requests arrived: this was not the work to measure", got, 2*n)
		}
		noop := perSecond(n, drainOnce(ctx, t, n, new(counting).alone()))
		t.sample("requests", requests)
		t.sample("bare", bare)
		t.sample("noop", noop)
		t.sample("peer", min(bare, noop))
	})
	t.line("requests", "peer", result{
		What: "requests", Unit: "tasks/s", Peer: "no-op tasks or bare client", Note: fmt.Sprintf("%d tasks of no plan; no-op tasks %.0f/s, bare client %.0f/s with as many connections; %s",
			n, t.median("noop"), t.median("bare"), t.kind.durability()),
	})
}

// bareRequests returns how long Go's client takes for n requests on as many connections as there
// are threads.
func bareRequests(ctx context.Context, to string, n int) time.Duration {
	client := &nethttp.Client{Transport: &nethttp.Transport{MaxIdleConnsPerHost: mostThreads}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var sending errgroup.Group
	start := time.Now()
	for range mostThreads {
		sending.Go(func() error {
			for next.Add(1) <= int64(n) {
				req, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodPost, to+"/song/1234", strings.NewReader(sent))
				if err != nil {
					return err
				}
				got, err := client.Do(req)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, got.Body)
				if got.Body.Close(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	check(sending.Wait())
	return time.Since(start)
}
