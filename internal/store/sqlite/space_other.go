//go:build !linux && !darwin

package sqlite

// roomBeside knows nothing of the disk.
func roomBeside(string) (bytes int64, known bool) { return 0, false }
