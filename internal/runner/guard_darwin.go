package runner

import "os"

// thisProgram returns a path of this program's file.
func thisProgram() (string, error) { return os.Executable() }
