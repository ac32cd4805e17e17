package protocol_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
)

func TestWhichStreamsGoIntoGridFS(t *testing.T) {
	const most = 15 << 20
	for _, c := range []struct {
		name           string
		mode           protocol.GFS
		stdout, stderr int64
		out, err       bool
	}{
		{"nothing", protocol.GFSAuto, 0, 0, false, false},
		{"15 MiB together lie in the document", protocol.GFSAuto, most - 5, 5, false, false},
		{"so they do in one", protocol.GFSAuto, 0, most, false, false},
		{"of a byte more the standard output goes", protocol.GFSAuto, most - 4, 5, true, false},
		{"also if it is the smaller one", protocol.GFSAuto, 1, most, true, false},
		{"and if the standard error has more than 15 MiB both go", protocol.GFSAuto, 0, most + 1, true, true},
		{"auto is the default", "", most, 1, true, false},
		{"always is always", protocol.GFSAlways, 0, 0, true, true},
		{"never is never", protocol.GFSNever, most, most, false, false},
	} {
		if out, err := c.mode.Files(c.stdout, c.stderr); out != c.out || err != c.err {
			t.Errorf("%s: stdout %v, stderr %v; want %v and %v", c.name, out, err, c.out, c.err)
		}
	}
}

func TestALargeOutputTakesTheRoomOfWhatWasPrinted(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		mode                   protocol.GFS
		output, stdout, stderr int64
		want                   protocol.GFS
	}{
		{protocol.GFSAuto, 8 * mib, 7 * mib, 0, protocol.GFSAuto},
		{protocol.GFSAuto, 8 * mib, 7 * mib, 1, protocol.GFSAlways},
		{protocol.GFSAuto, 0, 16 * mib, 1, protocol.GFSAuto},
		{protocol.GFSNever, 8 * mib, 16 * mib, 1, protocol.GFSNever},
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
		mode                   protocol.GFS
		params, stdout, stderr int64
		want                   bool
	}{
		{"nothing does", protocol.GFSAuto, 0, 0, 0, true},
		{"16 KiB together do", protocol.GFSAuto, 1 << 20, 10 * kib, 6 * kib, true},
		{"a byte more does not", protocol.GFSAuto, 0, 10 * kib, 6*kib + 1, false},
		{"nor does anything beside large params", protocol.GFSAuto, 1<<20 + 1, 1, 0, false},
		{"a document may be all there is", protocol.GFSNever, 0, 1, 1, true},
		{"files go before it", protocol.GFSAlways, 0, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.mode.Along(c.params, c.stdout, c.stderr); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestASettingThatIsNoneIsRefused(t *testing.T) {
	if err := protocol.GFSAuto.Check(); err != nil {
		t.Error(err)
	}
	if err := protocol.GFS("often").Check(); err == nil || err.Error() != `gfs is "often"; it is one of auto, true, false` {
		t.Error(err)
	}
}
