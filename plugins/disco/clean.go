package disco

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// gonePrefix begins the name of a folder that is being deleted.
const gonePrefix = "gone-"

// Clean deletes the homes of jobs that are gone, a little at a time: at most so many files in one
// call. It leaves alone a home in which a task of any process runs. It asks gone about each job that
// no task uses. It returns false if there is more to delete.
func (d *Data) Clean(ctx context.Context, most int, gone func(job string) (bool, error)) (clean bool, err error) {
	jobs, err := os.ReadDir(d.own(homesFolder))
	if err != nil {
		return false, err
	}
	for _, job := range jobs {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		unlock, err := lock(d.own(homesFolder, job.Name()), exclusive|try)
		if err != nil {
			continue // a task runs there
		}
		err = d.putAway(job.Name(), gone)
		unlock()
		if err != nil {
			return false, err
		}
	}
	away, err := os.ReadDir(d.own())
	if err != nil {
		return false, err
	}
	for _, entry := range away {
		if !strings.HasPrefix(entry.Name(), gonePrefix) {
			continue
		}
		if err := removeSome(d.own(entry.Name()), &most); err != nil || most <= 0 {
			return false, err
		}
	}
	return true, nil
}

// putAway takes the homes of a job on all hosts out of their places, if it is gone. The caller has
// its lock.
func (d *Data) putAway(job string, gone func(job string) (bool, error)) error {
	if is, err := gone(job); err != nil || !is {
		return err
	}
	folder, err := os.MkdirTemp(d.own(), gonePrefix)
	if err != nil {
		return err
	}
	hosts, err := os.ReadDir(d.Dir)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if host.Name() == ours || !host.IsDir() {
			continue
		}
		from := filepath.Join(d.Dir, host.Name(), filepath.FromSlash(jobPath(job)))
		if err := os.Rename(from, filepath.Join(folder, host.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(d.own(namedFolder, job), filepath.Join(folder, ours)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Remove(d.own(homesFolder, job))
}

// removeSome removes a tree, at most so many files of it.
func removeSome(folder string, most *int) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	for *most > 0 {
		entries, _ := f.ReadDir(min(*most, 100)) // an error comes again, when the folder is removed
		if len(entries) == 0 {
			*most--
			return os.Remove(folder)
		}
		for _, e := range entries {
			path := filepath.Join(folder, e.Name())
			if e.IsDir() {
				err = removeSome(path, most)
			} else {
				err = os.Remove(path)
				*most--
			}
			if err != nil || *most <= 0 {
				return err
			}
		}
	}
	return nil
}
