package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// damagedStore is a store whose bookkeeping has these faults, each time others.
type damagedStore struct {
	store.Store
	faults [][]string
	exact  bool // they are of one instant
}

func (c *damagedStore) Check(context.Context) ([]string, bool, error) {
	found := c.faults[0]
	c.faults = c.faults[1:]
	return found, c.exact, nil
}

func TestOnlyDamageThatIsThereTwiceIsToldWhileNodesRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		nodes  bool
		exact  bool
		faults [][]string
		out    string // "": nothing is damaged
	}{
		{"nothing", true, false, [][]string{nil}, ""},
		{"without nodes one look is enough", false, false, [][]string{{"a"}}, "a\n"},
		{"with nodes what is there both times counts", true, false, [][]string{{"a", "b"}, {"b", "c"}}, "b\n"},
		{"and what is gone is none", true, false, [][]string{{"a"}, {"c"}}, ""},
		{"what was read at one instant counts at once", true, true, [][]string{{"a"}}, "a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &damagedStore{model.New(model.Options{}), c.faults, c.exact}
			if c.nodes {
				if err := s.Register(t.Context(), plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1", Lease: time.Microsecond}); err != nil {
					t.Fatal(err)
				}
			}
			var out, notes bytes.Buffer
			a := &app{Program: Program{Stdout: &out, Stderr: &notes}}
			err := a.checkStore(t.Context(), s)
			want := c.out
			if want == "" {
				want = "nothing is damaged\n"
			}
			if out.String() != want || (err != nil) != (c.out != "") || err != nil && !strings.Contains(err.Error(), "the store is damaged: 1 difference") {
				t.Errorf("got %q and the error %v, want %q", out.String(), err, want)
			}
			if len(s.faults) > 0 {
				t.Errorf("%d looks are left", len(s.faults))
			}
		})
	}
}
