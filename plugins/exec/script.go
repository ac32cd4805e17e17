package exec

import (
	"fmt"
	"os"
	"strings"
)

// long reports whether the line is too long for an argument. Linux starts no program with an argument
// of 128 KiB.
func (s *settings) long() bool { return s.argv == nil && len(s.line) > longestVariable }

// scriptFile writes the line to a file beside those of the task, for its shell to read. It returns the
// command that does so instead of args, and what removes the file. PowerShell and cmd of Windows get
// args, because they read a file in another way than a line.
func (s *settings) scriptFile(args []string, f files) (command []string, remove func(), err error) {
	path := strings.TrimSuffix(f.params, paramsSuffix) + ".script"
	n := len(args) - 2
	switch args[n] {
	case "-ec":
		command = append(args[:n:n], "-e", path)
	case "-c":
		command = append(args[:n:n], path)
	default:
		return args, func() {}, nil
	}
	remove = func() { os.Remove(path) }
	if err := writeFile(path, []byte(s.line)); err != nil {
		remove()
		return nil, nil, fmt.Errorf("write the shell line to a file: %w; check the free space and the permissions", err)
	}
	return command, remove, nil
}
