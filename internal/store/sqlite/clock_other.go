//go:build !linux

package sqlite

import "time"

// sinceBoot is not known where the processes of a machine share no count that goes on while it is suspended.
func sinceBoot() (boot int64, up time.Duration, ok bool) { return 0, 0, false }
