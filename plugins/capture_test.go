package plugins_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// captured returns what was captured; each stream is read twice, the second time from its middle.
func captured(t *testing.T, c *plugins.Capture) (stdout, stderr string) {
	t.Helper()
	var texts [2]string
	out, err := c.Streams()
	for i, r := range []*io.SectionReader{out, err} {
		all, err := io.ReadAll(r)
		if err != nil || int64(len(all)) != r.Size() {
			t.Fatalf("stream %d: %d bytes of %d, %v", i, len(all), r.Size(), err)
		}
		half := make([]byte, len(all)-len(all)/2)
		if _, err := r.ReadAt(half, int64(len(all)/2)); err != nil && err != io.EOF || string(half) != string(all[len(all)/2:]) {
			t.Fatalf("stream %d from its middle: %v", i, err)
		}
		texts[i] = string(all)
	}
	return texts[0], texts[1]
}

func TestACaptureKeepsAllOfBothStreams(t *testing.T) {
	const kib = 1 << 10
	for _, size := range []int{0, 1, 64*kib - 1, 64 * kib, 64*kib + 1, 3 << 20} {
		for _, piece := range []int{1000, 5 << 20} {
			c := &plugins.Capture{Dir: t.TempDir()}
			want := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
			for rest := want; rest != ""; {
				n := min(piece, len(rest))
				c.Write(plan.Stdout, rest[:n])
				rest = rest[n:]
			}
			c.Write(plan.Stderr, "err\n")
			c.Write(plan.System, "Sluice's own\n")
			if stdout, stderr := captured(t, c); stdout != want || stderr != "err\n" {
				t.Errorf("%d bytes in pieces of %d: %d bytes, and %q", size, piece, len(stdout), stderr)
			}
			if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 && os.PathSeparator == '/' {
				t.Errorf("a file with a name is there: %v, %v", left, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			c.Write(plan.Stdout, "late") // as of a command that was left behind
		}
	}
}

func TestACaptureIsBounded(t *testing.T) {
	c := &plugins.Capture{Dir: t.TempDir()}
	defer c.Close()
	line := strings.Repeat("é", 512<<10) // 1 MiB
	c.Write(plan.Stdout, "x")
	for range 70 {
		c.Write(plan.Stdout, line)
	}
	c.Write(plan.Stderr, "err\n")
	stdout, stderr := captured(t, c)
	const last = "\n[more than 64 MiB: the rest is dropped]\n"
	if n := len(stdout) - len(last); n != 64<<20-1 || !strings.HasSuffix(stdout, "é"+last) || stderr != "err\n" {
		t.Errorf("%d bytes that end with %.60q, and %q", len(stdout), stdout[len(stdout)-60:], stderr)
	}
}

func TestWhatCannotBeKeptIsSaid(t *testing.T) {
	c := &plugins.Capture{Dir: filepath.Join(t.TempDir(), "nosuch")}
	defer c.Close()
	for i := range 20_000 {
		c.Write(plan.Stdout, fmt.Sprintf("line %d\n", i))
	}
	stdout, _ := captured(t, c)
	if !strings.HasPrefix(stdout, "line 0\nline 1\n") || !strings.Contains(stdout, "\n[the rest could not be kept: ") || len(stdout) > 70<<10 {
		t.Errorf("%d bytes that end with %q", len(stdout), stdout[max(0, len(stdout)-200):])
	}
}

func TestALogHasACaptureOfAllThatIsAppended(t *testing.T) {
	c := &plugins.Capture{Dir: t.TempDir()}
	defer c.Close()
	var log plugins.Log
	log.CaptureTo(c)
	line := strings.Repeat("x", 1023)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1024 {
				log.Print(line)
			}
		})
	}
	wg.Wait()
	log.Append(plan.Stderr, "err")
	log.Append(plan.System, "Sluice's own")
	if stdout, stderr := captured(t, c); stdout != strings.Repeat(line+"\n", 4096) || stderr != "err\n" {
		t.Errorf("%d bytes and %q, want all 4 MiB, and a line", len(stdout), stderr)
	}
	kept := 0
	for _, e := range log.Drain() {
		kept += len(e.Text)
	}
	if kept > 1<<20+100 {
		t.Errorf("the log itself keeps %d bytes", kept)
	}
}
