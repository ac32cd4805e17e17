package cli

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

func TestACancellationNamesWhatIsLeftOfIt(t *testing.T) {
	for want, c := range map[string]plan.Counts{
		"2 tasks still to be stopped":                                     {Running: 1, Claimed: 1},
		"all of its tasks have ended, and the plan is still to be ended":  {Cancelled: 3},
		"1 waiting task still to be cancelled":                            {Held: 1},
		"1 task still to be stopped, and 3 waiting tasks to be cancelled": {Running: 1, Held: 1, Queued: 2},
	} {
		if got := leftToCancel(&c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The tasks of a silent node are taken when its lease is over, not before: the node may only have
// been slow.
func TestACancelledPlanOfASilentNodeEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		lease time.Duration
		left  bool
	}{
		{"when its lease is over", 10 * time.Second, false},
		{"unless that takes too long", time.Hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, st, _ := watched(t, 2, false)
				ctx := t.Context()
				i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Host: "h", Lease: c.lease, Threads: 1, Plugins: []string{"sleep"}}
				if err := st.Register(ctx, i); err != nil {
					t.Fatal(err)
				}
				got, err := st.Turn(ctx, protocol.Turn{Instance: i.ID, Slots: 1, Plugins: i.Plugins, Start: true})
				if err != nil || len(got.Claimed) != 1 {
					t.Fatalf("claimed %v, %v", got.Claimed, err)
				}
				a := &app{Program: Program{Stderr: io.Discard, Getenv: func(string) string { return "" }}}
				if err := st.CancelPlan(ctx, w.p.ID, false); err != nil {
					t.Fatal(err)
				}
				p, err := st.Plan(ctx, w.p.ID)
				if err != nil {
					t.Fatal(err)
				}
				if now, left, err := a.endForsaken(ctx, st, p); err != nil || left || now.State.Ended() {
					t.Errorf("while its node lives the plan is %v, left %v, %v", now.State, left, err)
				}
				time.Sleep(c.lease + time.Second)
				began := time.Now()
				now, left, err := a.endForsaken(ctx, st, p)
				if err != nil || left != c.left || now.State.Ended() == c.left {
					t.Errorf("the plan is %v, left %v, %v", now.State, left, err)
				}
				if took := time.Since(began); !c.left && took < c.lease {
					t.Errorf("it took %v, want a lease of %v at least", took, c.lease)
				}
			})
		})
	}
}
