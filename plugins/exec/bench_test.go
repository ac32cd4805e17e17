//go:build unix

package exec

import (
	"fmt"
	"sync"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

// BenchmarkTrue measures a task of /bin/true without a store: the time between two ends when so
// many run at once.
func BenchmarkTrue(b *testing.B) {
	for _, workers := range []int{2, 8} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			p := New(Options{}) // its files where they are by default
			defer p.Close()
			var wg sync.WaitGroup
			tasks := make(chan struct{})
			for range workers {
				wg.Go(func() {
					for range tasks {
						k := task(b, object{"run": []string{"/bin/true"}, "needs": object{}, "args": []any{}})
						if r := p.Run(b.Context(), k); r.Status != plan.Succeeded {
							b.Errorf("%+v", r)
						}
					}
				})
			}
			for b.Loop() {
				tasks <- struct{}{}
			}
			close(tasks)
			wg.Wait()
		})
	}
}
