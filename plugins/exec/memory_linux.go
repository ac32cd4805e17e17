package exec

import "syscall"

// memoryFolder returns a folder of files in memory, or "" if there is none with room. On a disk
// that is busy with other writers, such as a store, a file costs as much as starting a command.
// Measured beside busy stores on ext4: 0.17 ms of system time a task on the disk, and 0.02 ms in
// memory.
func memoryFolder() string {
	const (
		shared = "/dev/shm"
		tmpfs  = 0x01021994 // TMPFS_MAGIC of <linux/magic.h>
		room   = 256 << 20  // containers often have 64 MiB
	)
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shared, &fs); err != nil || fs.Type != tmpfs || fs.Bavail*uint64(fs.Bsize) < room {
		return ""
	}
	return shared
}
