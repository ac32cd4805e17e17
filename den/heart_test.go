//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
)

// listed keeps what beats say of plugins, and may lose the answer to one.
type listed struct {
	store.Store
	said []string // by the node's one heart
	lose atomic.Bool
}

func (l *listed) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	told, err := l.Store.Beat(ctx, b)
	if b.Plugins != nil {
		l.said = append(l.said, fmt.Sprint(b.Plugins))
		if l.lose.Swap(false) {
			return protocol.Beaten{}, errCut
		}
	}
	return told, err
}

func TestANodeSaysWhichPluginsCameAndWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := &listed{Store: w.store}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.on(l, den.Config{}).Run(ctx) }()
		for _, step := range []struct {
			change func()
			lost   bool   // the answer
			want   string // what the node has
			said   int    // how often that was said
		}{
			{func() {}, false, "echo sleep", 0},
			{func() { w.register("copy", nil) }, false, "copy echo sleep", 1},
			{func() { w.plugins.Remove("echo") }, true, "copy sleep", 2},
			{func() { w.plugins.Remove("copy"); w.plugins.Remove("sleep") }, false, "", 1},
			{func() { w.register("sleep", nil) }, false, "sleep", 1},
		} {
			l.said = nil
			l.lose.Store(step.lost)
			step.change()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			seen, err := w.store.Instances(t.Context())
			if err != nil || len(seen) != 1 || strings.Join(seen[0].Plugins, " ") != step.want {
				t.Errorf("the nodes are %+v (%v), want one that has %q", seen, err, step.want)
			}
			if want := slices.Repeat([]string{"[" + step.want + "]"}, step.said); !slices.Equal(l.said, want) {
				t.Errorf("its beats said %q, want %q", l.said, want)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
