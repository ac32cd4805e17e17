//go:build unix

package runner

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkTrue measures the time between two ends of /bin/true when so many run at once.
func BenchmarkTrue(b *testing.B) {
	for _, workers := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			var wg sync.WaitGroup
			commands := make(chan struct{})
			for range workers {
				wg.Go(func() {
					for range commands {
						r, err := Run(b.Context(), Command{Args: []string{"/bin/true"}, Env: []string{"PATH=/usr/bin:/bin"}}, NewOutput(0))
						if err != nil || r.Code != 0 {
							b.Errorf("%+v, %v", r, err)
						}
					}
				})
			}
			for b.Loop() {
				commands <- struct{}{}
			}
			close(commands)
			wg.Wait()
		})
	}
}

// BenchmarkOutput measures output in short lines, as much as a pipe takes.
func BenchmarkOutput(b *testing.B) {
	const size = 64 << 20
	b.SetBytes(size)
	for b.Loop() {
		out := NewOutput(0)
		r, err := Run(b.Context(), Command{Args: []string{"/bin/sh", "-c", fmt.Sprintf("yes 'a line as a program may print it, of 64 bytes with its newline' | head -c %d", size)}, Env: []string{"PATH=/usr/bin:/bin"}}, out)
		if err != nil || r.Code != 0 {
			b.Fatalf("%+v, %v", r, err)
		}
	}
}
