// Package folders knows the folder of a user's state, and which folders are on a network.
package folders

import (
	"os"
	"path/filepath"
	"runtime"
)

// State returns the folder that keeps what programs of this user need again: $XDG_STATE_HOME, or
// where the system has such files. Nobody tidies it. It returns "" if there is no home folder.
func State() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if filepath.IsAbs(dir) { // the specification of these variables has others ignored
		return dir
	}
	if local := os.Getenv("LocalAppData"); runtime.GOOS == "windows" && local != "" {
		return local
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state")
}
