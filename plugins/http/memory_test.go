//go:build !race

package http

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

// A thousand requests are under way at once, each with a beginning of its answer. An attempt that
// waits for the rest of a long body holds the most. The race detector would add memory of its own.
func TestAThousandRequestsAtOnce(t *testing.T) {
	const n = 1000
	for _, first := range []int{8 << 10, freeBody - 1} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			var arrived sync.WaitGroup
			arrived.Add(n)
			release := make(chan bool)
			at := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, strings.Repeat("x", first))
				w.(http.Flusher).Flush()
				arrived.Done()
				<-release
			})
			p := newPlugin(t)
			var done sync.WaitGroup
			for range n {
				done.Go(func() {
					if r := p.Run(t.Context(), task(t, object{"url": at, "body": object{"a": 1}})); r.Status != plan.Succeeded {
						t.Errorf("%v: %s", r.Status, r.Detail)
					}
				})
			}
			arrived.Wait()
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			close(release)
			done.Wait()
			used := (m.HeapAlloc + m.StackInuse) >> 20
			t.Logf("%d MiB, with the receiver", used)
			if used > 150 {
				t.Errorf("%d requests at once take %d MiB", n, used)
			}
		})
	}
}
