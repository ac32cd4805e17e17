package folders

import (
	"strings"
	"testing"
)

func TestMountKind(t *testing.T) {
	const table = `22 1 252:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 22 0:35 / /home rw,relatime shared:20 - nfs4 server:/home rw,vers=4.2
41 40 0:36 / /home/me/remote\040files rw,nosuid shared:21 - fuse.sshfs me@host:/ rw
42 22 0:37 / /srv rw - xfs /dev/vdb rw
43 42 0:38 / /srv rw - 9p share rw,trans=virtio
44 22 0:39 / /homely rw - btrfs /dev/vdc rw
`
	for _, c := range []struct{ dir, want string }{
		{"/", "ext4"},
		{"/var/lib", "ext4"},
		{"/home", "nfs4"},
		{"/home/you/sluice", "nfs4"},
		{"/home/me/remote files/sluice", "fuse.sshfs"},
		{"/homely/sluice", "btrfs"},
		{"/srv/sluice", "9p"}, // the later mount hides the earlier
	} {
		got, err := mountKind(strings.NewReader(table), c.dir)
		if err != nil || got != c.want {
			t.Errorf("%s is on %q (%v), want %q", c.dir, got, err, c.want)
		}
	}
}
