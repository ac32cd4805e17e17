package folders

import "testing"

func TestNetworkFileSystems(t *testing.T) {
	for kind, want := range map[string]bool{
		"nfs4": true, "cifs": true, "CIFS": true, "9p": true, "fuse.sshfs": true, "smbfs": true, "ceph": true,
		"ext4": false, "xfs": false, "tmpfs": false, "fuseblk": false, "fuse.gocryptfs": false, "apfs": false, "": false,
	} {
		if got := isNetworkKind(kind); got != want {
			t.Errorf("%q is of a network: %v, want %v", kind, got, want)
		}
	}
	if kind, err := Network(t.TempDir()); err != nil || kind != "" {
		t.Errorf("the folder for temporary files is on %q (%v), want a local file system", kind, err)
	}
}
