package folders

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const maxLinks = 40 // that lead to each other, as Linux has it

// Resolve returns the path without symbolic links, as far as the path exists. So all openers of the
// file, by whatever name, find the same log and the same locks beside it. A part that cannot be
// resolved stays, and the opener reports why.
func Resolve(path string) string {
	for range maxLinks {
		if real, err := filepath.EvalSymlinks(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(real, path)
		}
		dir, base := filepath.Split(path)
		if base == "" {
			return path
		}
		if folder := strings.TrimRight(filepath.ToSlash(dir), "/"); folder != filepath.VolumeName(path) {
			dir = Resolve(folder)
		}
		path = filepath.Join(dir, base)
		to, err := os.Readlink(path)
		switch {
		case err != nil: // it is no link: it is not there
			return path
		case filepath.IsAbs(to):
			path = to
		default:
			path = filepath.Dir(path) + string(filepath.Separator) + to // what comes after a link in it is not to be cleaned away by ..
		}
	}
	return path
}
