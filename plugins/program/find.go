package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/plugins"
)

// Found is a file or a folder in one of the folders.
type Found struct {
	Name string // that of the plugin, as far as there can be one
	Path string // absolute
	Err  error  // why it is not used; nil: it is

	stamp stamp
}

// unread reports whether the file or folder may be there as it was, and could only not be read.
func (f *Found) unread() bool {
	var failed *fs.PathError
	return errors.As(f.Err, &failed) && !errors.Is(f.Err, fs.ErrNotExist)
}

// stamp is what changes when a file does.
type stamp struct {
	modified int64
	size     int64
	mode     fs.FileMode
}

// separator replaces :: in the names of files, because on Windows no file can have a colon in its
// name.
const separator = "--"

// Find returns what there is in the folders, which are read in their order: of two programs of one name the first counts. Folders in them,
// and files whose names begin with a dot, are left out. Names of builtIn are taken.
//
// A plugin's file is executable, and only its owner can write to it and to its folder: otherwise
// others would choose what the node does. Its name is the plugin's, with -- for ::. On Windows it
// ends in .exe, which is not part of the name, and write permissions are not checked.
func Find(folders, builtIn []string) []Found {
	var found []Found
	first := map[string]string{}
	for _, folder := range folders {
		in, err := findIn(folder)
		if err != nil {
			path, failed := filepath.Abs(folder)
			if failed != nil {
				path = folder
			}
			found = append(found, Found{Name: filepath.Base(folder), Path: path, Err: err})
		}
		for _, f := range in {
			switch other, taken := first[f.Name]; {
			case f.Err != nil:
			case slices.Contains(builtIn, f.Name):
				f.Err = fmt.Errorf("%s: a plugin %s is built in; give the file another name", f.Path, f.Name)
			case taken:
				f.Err = fmt.Errorf("%s: %s comes before it; give one of the two another name", f.Path, other)
			default:
				first[f.Name] = f.Path
			}
			found = append(found, f)
		}
	}
	return found
}

// CheckFolder returns why there can be no plugins in a folder.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such folder; create it, or correct its path", path)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder; name the one that the programs are in", path)
	}
	return checkWritable(path, info)
}

func findIn(folder string) ([]Found, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := CheckFolder(folder); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []Found
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		f := Found{Name: pluginName(e.Name()), Path: filepath.Join(folder, e.Name())}
		info, err := check(f.Path)
		if errors.Is(err, fs.ErrNotExist) && e.Type().IsRegular() {
			continue // it went meanwhile
		}
		if info != nil {
			if info.IsDir() {
				continue
			}
			f.stamp = stamp{info.ModTime().UnixNano(), info.Size(), info.Mode()}
		}
		if f.Err = err; err == nil {
			if err := plugins.CheckName(f.Name); err != nil {
				f.Err = fmt.Errorf("%s: %w (in the name of a file, %s stands for ::)", f.Path, err, separator)
			}
		}
		found = append(found, f)
	}
	return found, nil
}

// pluginName returns the name of the plugin that a file is.
func pluginName(file string) string {
	if runtime.GOOS == "windows" && strings.EqualFold(filepath.Ext(file), ".exe") {
		file = file[:len(file)-len(".exe")]
	}
	return strings.ReplaceAll(file, separator, "::")
}

// check returns what the file is, if it is there, and why it is no program that can be run, nil if it is one.
func check(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path) // of what a link leads to
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return info, fmt.Errorf("%s is not a file", path)
	case runtime.GOOS == "windows" && !strings.EqualFold(filepath.Ext(path), ".exe"):
		return info, fmt.Errorf("%s is not a program: on Windows its name ends in .exe", path)
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return info, fmt.Errorf("%s is not executable; chmod +x it, or remove it", path)
	}
	return info, checkWritable(path, info)
}

func checkWritable(path string, info fs.FileInfo) error {
	if runtime.GOOS != "windows" && info.Mode()&0o022 != 0 {
		return fmt.Errorf("%s is writable by users other than its owner, who could choose what runs here; chmod go-w it", path)
	}
	return nil
}
