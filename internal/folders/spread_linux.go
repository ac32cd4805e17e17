package folders

import (
	"os"

	"golang.org/x/sys/unix"
)

// topDir is FS_TOPDIR_FL of linux/fs.h. See chattr(1), T.
const topDir = 0x00020000

// Spread asks ext4 to put each folder in dir into another part of the disk, with the files in it. Where
// ext4 has no journal, it takes no inode that was freed within the last minutes. It looks for one from
// the beginning of its part of the disk, past all of these. Programs that make and remove many files
// therefore do that here and there. Other file systems refuse, and do not need it.
func Spread(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	if flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|topDir)) // not set, it is only slower
	}
}
