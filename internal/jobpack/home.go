package jobpack

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
)

// own are the names in a job home that are the host's.
var own = []string{"jobfile", ".jobhome", ".disco"}

const (
	maxName      = 1024     // bytes of a path in the job home
	maxDirectory = 16 << 20 // bytes of the directory of the zip, which is read into memory
)

// A home is the archive of a job home.
type home struct {
	files  []*zip.File
	names  []string // of the files, clean
	worker string
}

// A bounded hands out so many bytes, and then fails, until it is free.
type bounded struct {
	io.ReaderAt
	left int
	free bool
}

var errDirectory = fmt.Errorf("its directory has more than %d MiB; put fewer files into it, in an archive", maxDirectory>>20)

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= len(p); b.left < 0 && !b.free {
		return 0, errDirectory
	}
	return b.ReaderAt.ReadAt(p, off)
}

// readHome reads the directory of the zip, and checks that all of it may be unpacked.
func readHome(r *io.SectionReader, worker string) (*home, error) {
	directory := &bounded{ReaderAt: r, left: maxDirectory}
	z, err := zip.NewReader(directory, r.Size())
	switch {
	case errors.Is(err, errDirectory):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("the zip is cut or damaged (%w); make the pack again", err)
	case len(z.File) > MaxFiles:
		return nil, tooMany()
	}
	directory.free = true // the files are read through it too
	h := &home{files: z.File, names: make([]string, len(z.File)), worker: worker}
	kinds := make(map[string]fs.FileMode, len(z.File)) // 0 for files
	var size uint64
	for i, f := range z.File {
		name, err := checkFile(f)
		if err != nil {
			return nil, err
		}
		h.names[i] = name
		if size += f.UncompressedSize64; f.UncompressedSize64 > MaxHome || size > MaxHome {
			return nil, fmt.Errorf("its files have more than %d MiB in all; let workers fetch large data by URLs", MaxHome>>20)
		}
		kind := f.Mode() & fs.ModeDir
		if was, there := kinds[name]; there && was != kind {
			return nil, fmt.Errorf("%q is a file and a folder; rename one of them", name)
		}
		kinds[name] = kind
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			was, there := kinds[dir]
			if there && was == 0 {
				return nil, fmt.Errorf("%q is a file and a folder; rename one of them", dir)
			}
			if there {
				break
			}
			kinds[dir] = fs.ModeDir
		}
		if len(kinds) > MaxFiles {
			return nil, tooMany()
		}
	}
	if kind, there := kinds[worker]; !there || kind != 0 {
		return nil, fmt.Errorf("the worker %q is not in it; put the program there, or correct worker in jobdict", worker)
	}
	return h, nil
}

func tooMany() error {
	return fmt.Errorf("it has more than %d files and folders; put them into an archive that the worker unpacks", MaxFiles)
}

// checkFile returns the clean path of an entry, or why it is not unpacked.
func checkFile(f *zip.File) (string, error) {
	if len(f.Name) > maxName {
		return "", fmt.Errorf("the path %.40q… has more than %d bytes; shorten it", f.Name, maxName)
	}
	name, err := cleanPath(f.Name)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(name, "/")
	switch kind := f.Mode().Type(); {
	case slices.Contains(own, first):
		return "", fmt.Errorf("%q is a name that the host of the worker keeps for itself; rename it", first)
	case kind == fs.ModeSymlink:
		return "", fmt.Errorf("%q is a link, which may lead out of the job home; put the file itself there", f.Name)
	case kind != 0 && kind != fs.ModeDir:
		return "", fmt.Errorf("%q is neither a file nor a folder; leave it out", f.Name)
	case f.Flags&1 != 0:
		return "", fmt.Errorf("%q is encrypted; make the zip without a password", f.Name)
	}
	return name, nil
}

// Unpack puts the job home into an empty folder, which the caller deletes after an error. Files are open to
// their owner alone, and the worker can be run.
func (p *Pack) Unpack(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for i, f := range p.home.files {
		if err := p.home.unpackFile(root, f, p.home.names[i]); err != nil {
			return fmt.Errorf("job pack: jobhome: %q: %w", f.Name, err)
		}
	}
	return nil
}

func (h *home) unpackFile(root *os.Root, f *zip.File, name string) (err error) {
	if f.Mode().IsDir() {
		return root.MkdirAll(name, 0o700)
	}
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	in, err := f.Open()
	if err != nil {
		return fmt.Errorf("its content cannot be read (%w); make the pack again", err)
	}
	defer in.Close()
	perm := 0o600 | f.Mode().Perm()&0o100
	if name == h.worker {
		perm = 0o700
	}
	_ = root.Remove(name) // of an earlier entry with that name, which may have other permissions
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in) // the reader ends a file that has more than the directory says
	if _, ofDisk := errors.AsType[*fs.PathError](err); err != nil && !ofDisk {
		return fmt.Errorf("its content is cut or damaged (%w); make the pack again", err)
	}
	return err
}

// Make returns a pack of what p says, a folder as its job home, and data for the worker. Read takes it.
func Make(p *Pack, home fs.FS, data []byte) ([]byte, error) {
	dict, err := p.dict()
	if err != nil {
		return nil, fmt.Errorf("job pack: jobdict: pipeline: %w", err)
	}
	envs := []byte("{}")
	if len(p.Envs) > 0 {
		if envs, err = jsontext.Marshal(p.Envs); err != nil {
			return nil, err
		}
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	if err := z.AddFS(home); err != nil {
		return nil, fmt.Errorf("job pack: jobhome: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	b, err := Join(p.Version, [4][]byte{dict, envs, archive.Bytes(), data})
	if err != nil {
		return nil, err
	}
	_, err = Read(bytes.NewReader(b), int64(len(b)))
	return b, err
}
