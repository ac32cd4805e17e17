//go:build !linux

package exec

// memoryFolder returns a folder of files in memory: none that every system has.
func memoryFolder() string { return "" }
