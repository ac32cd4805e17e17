package folders

import "golang.org/x/sys/unix"

// Network returns the kind of network file system that the folder is on, or "".
func Network(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", err
	}
	if kind := unix.ByteSliceToString(st.Fstypename[:]); isNetworkKind(kind) || st.Flags&unix.MNT_LOCAL == 0 {
		return kind, nil
	}
	return "", nil
}
