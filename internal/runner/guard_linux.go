package runner

// thisProgram returns a path of this program's file. It is right also when the file was deleted or replaced since, as by an upgrade.
func thisProgram() (string, error) { return "/proc/self/exe", nil }
