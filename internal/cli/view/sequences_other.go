//go:build !windows

package view

import "os"

// enableSequences reports whether the terminal understands escape sequences.
func enableSequences(*os.File) bool { return true }
