//go:build unix

package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestANodeHeedsWhatCommandsSet types commands that set queues and nodes, while a node has tasks to
// run. A test of den shows that a long idle node follows them within a second.
func TestANodeHeedsWhatCommandsSet(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		var b strings.Builder
		b.WriteString("plan: waiting\ntasks:\n")
		for i := range 12 {
			fmt.Fprintf(&b, "  t%d: {run: touch effects/$SLUICE_NAME; until test -e effects/go; do sleep 0.05; done, queue: imap}\n", i)
		}
		s.must("queue", "create", "imap", "--threads", "0")
		s.submit(b.String())
		d := s.daemon(nil, "--name", "n1", "--threads", "8", "--lease", long)
		begun := func() int {
			tasks, err := filepath.Glob(filepath.Join(s.dir, "effects", "t*"))
			if err != nil {
				t.Fatal(err)
			}
			return len(tasks)
		}
		for _, step := range []struct {
			command string
			want    int // tasks that have begun after it
		}{
			{"queue set imap --threads 9 --node-threads 2", 2},
			{"node set n1 --maxthreads 3", 2},
			{"queue set imap --node-threads unlimited", 3},
			{"node set n1 --maxthreads 5", 5},
			{"queue set imap --pin n2", 5},
			{"node set n1 --maxthreads unlimited", 5},
			{"queue set imap --pin n2,n1", 8},
		} {
			s.must(strings.Fields(step.command)...)
			s.until(fmt.Sprintf("%d tasks have begun after %q", step.want, step.command), func() bool { return begun() >= step.want })
			s.beats(d.Process.Pid, 2) // with which it would claim more
			if n := begun(); n != step.want {
				t.Fatalf("after %q %d tasks had begun, want %d", step.command, n, step.want)
			}
		}
		s.makeEffect("go")
		s.must("plan", "wait", "waiting", "--timeout", "5m")
	})
}
