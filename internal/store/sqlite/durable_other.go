//go:build !linux

package sqlite

import "os"

func flush(f *os.File) error { return f.Sync() }
