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
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// progressing keeps what beats say of progress, and loses the answer to the fourth of them.
type progressing struct {
	store.Store
	said []string
}

func (s *progressing) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	told, err := s.Store.Beat(ctx, b)
	if b.Progress == nil {
		return told, err
	}
	var all []string
	for _, r := range b.Progress {
		all = append(all, r.Progress.String())
	}
	slices.Sort(all)
	if s.said = append(s.said, strings.Join(all, ", ")); len(s.said) == 4 {
		return protocol.Beaten{}, errCut
	}
	return told, err
}

func TestANodeTellsHowFarItsTasksAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		st := &progressing{Store: w.store}
		var left *plugins.Task // it continues although its attempt is over
		w.register("count", func(_ context.Context, t *plugins.Task) (any, error) {
			left = t
			time.Sleep(500 * time.Millisecond) // between two beats
			for i := range 31 {                // 3.1 s, in which it says more than a node tells
				_ = t.Progress(float64(i/10)/10, fmt.Sprint("step ", i/10, " of sesame77"))
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(5 * time.Second) // in which it says nothing
			return nil, nil
		})
		s := plan.New("p")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "count", Params: params(`{"token": "sesame77"}`)})
		s.Add(plan.TaskSpec{Name: "b", Plugin: "sleep", Params: params(`{"for": "20s"}`)})
		s.Secrets = []string{"token"}
		p := w.submit(s)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.on(st, den.Config{Plan: p.ID, Threads: 2}).Run(ctx) }()
		time.Sleep(2500 * time.Millisecond)
		if got := w.task(p, "a").Progress; got == nil || got.String() != "10% step 1 of ***" {
			t.Errorf("it is at %v after 2.5 s", got)
		}
		time.Sleep(10 * time.Second)
		if got := w.task(p, "a"); got.Status != plan.Succeeded || got.Progress != nil {
			t.Errorf("it is %s at %v after its end", got.State(), got.Progress)
		}
		if err := left.Progress(0.9, "late"); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * time.Second)
		stop()
		<-ended
		// The answer to the fourth was lost, so the next heartbeat told it again. The end of all
		// reports is told once.
		want := "0% step 0 of ***|10% step 1 of ***|20% step 2 of ***|30% step 3 of ***|30% step 3 of ***|"
		if got := strings.Join(st.said, "|"); got != want {
			t.Errorf("beats said %q, want %q", got, want)
		}
	})
}
