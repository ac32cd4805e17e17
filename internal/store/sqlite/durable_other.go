//go:build !linux

package sqlite

import "os"

func flush(f *os.File) error { return f.Sync() }

// inPlace is not known here.
func inPlace(*os.File) bool { return false }
