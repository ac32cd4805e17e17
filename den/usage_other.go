//go:build !unix

package den

import "time"

// processorTime is not known here, so the processors never count as busy.
func processorTime() time.Duration { return 0 }
