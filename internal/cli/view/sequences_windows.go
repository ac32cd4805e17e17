package view

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableSequences makes the console understand escape sequences and reports whether it does; those before Windows 10 do not.
func enableSequences(f *os.File) bool {
	var mode uint32
	h := windows.Handle(f.Fd())
	return windows.GetConsoleMode(h, &mode) == nil && windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
