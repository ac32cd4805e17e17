//go:build !linux

package runner

// InitMain does nothing: only on Linux is a program the first process of a container.
func InitMain() {}

// QuietChildren does nothing here.
func QuietChildren() {}
