//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestANodeHeedsWhatIsSetWithinASecond is about a node that has had nothing new to do for so long that it looks for work every few seconds only.
func TestANodeHeedsWhatIsSetWithinASecond(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the node to look less often")
	}
	onEachStore(t, func(t *testing.T, s *site) {
		t.Parallel() // with the other store's, and nothing else
		var b strings.Builder
		b.WriteString("plan: waiting\ntasks:\n")
		for i := range 12 {
			fmt.Fprintf(&b, "  t%d: {run: touch effects/$SLUICE_NAME; sleep 100, queue: imap}\n", i)
		}
		file := filepath.Join(s.dir, "plan.yaml")
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		s.must("queue", "create", "imap", "--threads", "0")
		s.must("plan", "submit", file)
		c := s.command("den", "--name", "n1", "--threads", "8", "--allow", "exec")
		log, err := os.Create(filepath.Join(s.dir, "den.log"))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		c.Stderr, c.Dir = log, s.dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		}()
		begun := func() int {
			files, err := os.ReadDir(filepath.Join(s.dir, "effects"))
			if err != nil {
				t.Fatal(err)
			}
			return len(files)
		}
		const soon = 3 * time.Second // a second, and what a machine takes that has other things to do
		const idle = 8 * time.Second // until it looks less often than that
		for _, step := range []struct {
			wait    time.Duration
			command string
			want    int // tasks that have begun after it
		}{
			{idle, "queue set imap --threads 9 --node-threads 2", 2},
			{0, "node set n1 --maxthreads 3", 2},
			{idle, "queue set imap --node-threads unlimited", 3},
			{idle, "node set n1 --maxthreads 5", 5},
			{0, "queue set imap --pin n2", 5},
			{0, "node set n1 --maxthreads unlimited", 5},
			{idle, "queue set imap --pin n2,n1", 8},
		} {
			time.Sleep(step.wait)
			s.must(strings.Fields(step.command)...)
			start := time.Now()
			for begun() < step.want && time.Since(start) < 20*time.Second {
				time.Sleep(10 * time.Millisecond)
			}
			took := time.Since(start)
			if begun() < step.want || took > soon {
				t.Errorf("after %q it took %v until %d tasks had begun, want %d within a second", step.command, took, begun(), step.want)
			}
			time.Sleep(200 * time.Millisecond)
			if n := begun(); n != step.want {
				t.Fatalf("after %q %d tasks had begun, want %d", step.command, n, step.want)
			}
			t.Logf("%s: %v", step.command, took)
		}
	})
}
