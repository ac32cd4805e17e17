//go:build !unix

package exec

import (
	"os"
	"syscall"
)

// errQuota says that the user has no room left: another system says that the disk is full.
const errQuota = syscall.ENOSPC

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
