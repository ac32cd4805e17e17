//go:build !windows

package cli

import "os"

// enableSequences reports whether the terminal understands escape sequences.
func enableSequences(*os.File) bool { return true }
