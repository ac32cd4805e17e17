package plan_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestWhichStreamsGoIntoGridFS(t *testing.T) {
	const most = 15 << 20
	for _, c := range []struct {
		name           string
		mode           plan.GFS
		stdout, stderr int64
		out, err       bool
	}{
		{"nothing", plan.GFSAuto, 0, 0, false, false},
		{"15 MiB together lie in the document", plan.GFSAuto, most - 5, 5, false, false},
		{"so they do in one", plan.GFSAuto, 0, most, false, false},
		{"of a byte more the standard output goes", plan.GFSAuto, most - 4, 5, true, false},
		{"also if it is the smaller one", plan.GFSAuto, 1, most, true, false},
		{"and if the standard error has more than 15 MiB both go", plan.GFSAuto, 0, most + 1, true, true},
		{"auto is the default", "", most, 1, true, false},
		{"always is always", plan.GFSAlways, 0, 0, true, true},
		{"never is never", plan.GFSNever, most, most, false, false},
	} {
		if out, err := c.mode.Files(c.stdout, c.stderr); out != c.out || err != c.err {
			t.Errorf("%s: stdout %v, stderr %v; want %v and %v", c.name, out, err, c.out, c.err)
		}
	}
}

func TestALargeOutputTakesTheRoomOfWhatWasPrinted(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		mode                   plan.GFS
		output, stdout, stderr int64
		want                   plan.GFS
	}{
		{plan.GFSAuto, 8 * mib, 7 * mib, 0, plan.GFSAuto},
		{plan.GFSAuto, 8 * mib, 7 * mib, 1, plan.GFSAlways},
		{plan.GFSAuto, 0, 16 * mib, 1, plan.GFSAuto},
		{plan.GFSNever, 8 * mib, 16 * mib, 1, plan.GFSNever},
	} {
		if got := c.mode.Beside(c.output, c.stdout, c.stderr); got != c.want {
			t.Errorf("%s beside an output of %d bytes: %s, want %s", c.mode, c.output, got, c.want)
		}
	}
}

func TestWhatGoesWithAnEnding(t *testing.T) {
	const kib = 1 << 10
	for _, c := range []struct {
		name                   string
		mode                   plan.GFS
		params, stdout, stderr int64
		want                   bool
	}{
		{"nothing does", plan.GFSAuto, 0, 0, 0, true},
		{"16 KiB together do", plan.GFSAuto, 1 << 20, 10 * kib, 6 * kib, true},
		{"a byte more does not", plan.GFSAuto, 0, 10 * kib, 6*kib + 1, false},
		{"nor does anything beside large params", plan.GFSAuto, 1<<20 + 1, 1, 0, false},
		{"a document may be all there is", plan.GFSNever, 0, 1, 1, true},
		{"files go before it", plan.GFSAlways, 0, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.mode.Along(c.params, c.stdout, c.stderr); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
