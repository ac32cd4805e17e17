package folders

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Network returns the kind of network file system that the folder is on, or "".
func Network(dir string) (string, error) {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	if err != nil {
		return "", err
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "network drive", nil
	}
	return "", nil
}
