//go:build unix && !linux

package runner

// fionread asks how many bytes of a pipe nobody has read yet. The value is that of macOS and of the BSDs.
const fionread = 0x4004667f
