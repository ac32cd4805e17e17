package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/internal/textfile"
)

// most is how many bytes an access file has at most: thousands of users.
const most = 4 << 20

// A File is an access file that is in use, and is read again when it changes.
type File struct {
	path string
	now  atomic.Pointer[read]
}

// A read is what stood in a file, and which file that was.
type read struct {
	access *Access
	info   fs.FileInfo
}

// Open reads an access file. It refuses a file that others than its owner may read or write. It
// also refuses a file whose owner is neither this process's user nor root, because the owner can
// give itself access. On Windows, where files have no such modes, the folder has to protect the
// file.
func Open(path string) (*File, error) {
	f := &File{path: path}
	return f, f.Reload()
}

// Access returns what the file says now.
func (f *File) Access() *Access { return f.now.Load().access }

// Reload reads the file again. If the file cannot be used, the previous content stays in force, and
// the error gives the reason. So a broken edit locks nobody out and lets nobody in.
func (f *File) Reload() error {
	r, err := open(f.path, false)
	if err == nil {
		f.now.Store(r)
	}
	return err
}

// Watch reads the file again within a second after it changed, until the context ends, and logs that it did, or why it could not.
func (f *File) Watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := f.now.Load().info
	gone := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		info, err := os.Stat(f.path)
		if err != nil {
			if !gone {
				log.Error("the access file cannot be read; what it said before goes on to hold", "file", f.path, "error", err)
			}
			gone = true
			continue
		}
		if !gone && os.SameFile(info, last) && info.ModTime().Equal(last.ModTime()) && info.Size() == last.Size() && info.Mode() == last.Mode() {
			continue
		}
		last, gone = info, false
		if err := f.Reload(); err != nil {
			log.Error("the access file is not valid; what it said before goes on to hold", "file", f.path, "error", err)
			continue
		}
		a := f.Access()
		log.Info("the access file was read again", "file", f.path, "users", len(a.Users), "tokens", len(a.Tokens))
	}
}

// open reads a file. Root may edit a file of another user.
func open(path string, edit bool) (*read, error) {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not there; check the path, or make it with sluice access user add: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat() // of what was opened, whatever the path leads to by now
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	if err := private(path, info, edit); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, fmt.Errorf("%s has more than %d MiB; it cannot be an access file", path, most>>20)
	}
	a, err := Parse(path, textfile.WithoutMark(data))
	if err != nil {
		return nil, err
	}
	return &read{a, info}, nil
}

// Load returns the content of an access file, under the rules of Open, for commands that show or
// edit it. Root may read a file of another user.
func Load(path string) (*Access, error) {
	r, err := open(path, true)
	if err != nil {
		return nil, err
	}
	return r.access, nil
}

// Edit changes an access file. Readers find a whole file with mode 0600 at each instant. Concurrent
// edits take turns by a lock on a file beside it, which stays. If the file does not exist, Edit
// makes it with create, and else returns an error. It keeps the file's owner and a stricter mode.
// If change returns an error, nothing is changed, and Edit returns that error.
func Edit(path string, create bool, change func(*Access) error) (failed error) {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at // or the link would be replaced
	}
	lock, err := openLock(path + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the folder of %s is not there; make it first: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	defer lock.Close() // and with it the lock
	if err := lockFile(lock); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	was, err := open(path, true)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		was = &read{access: &Access{}}
	case err != nil:
		return err
	}
	if err := change(was.access); err != nil {
		return err
	}
	if err := was.access.check(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(was.access, "", "  ")
	if err != nil {
		return err
	}
	return replace(path, append(text, '\n'), was.info)
}

// replace puts a file in the place of what is there, whole and on the disk.
func replace(path string, text []byte, was fs.FileInfo) (failed error) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".access-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if failed != nil {
			_ = temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	if was != nil {
		if err := keepOwner(temp, was); err != nil {
			return fmt.Errorf("%s would change its owner: %w", path, err)
		}
	}
	_, err = temp.Write(text)
	if err := cmp.Or(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}
