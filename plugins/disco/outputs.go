package disco

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	slashpath "path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// mostOutputs is how many outputs of a task are listed. The files of more are in an index file.
const mostOutputs = 50

// An Output is an output of a task. In JSON it is [label, location, size], and an index is
// {"labels": [[label, size], …], "url": location}.
type Output struct {
	Label    int64
	Location string // a URL
	Size     int64  // in bytes, as on disk if the file is on this host

	Labels [][2]int64 // of an index: its labels in order, each with the size of all outputs with it
}

// MarshalJSON implements json.Marshaler.
func (o Output) MarshalJSON() ([]byte, error) {
	if o.Labels != nil {
		return json.Marshal(map[string]any{"labels": o.Labels, "url": o.Location})
	}
	return json.Marshal([]any{o.Label, o.Location, o.Size})
}

// outputs are those of one attempt. It implements host.Outputs.
type outputs struct {
	home  *Home
	index string // the path of an index file in the home, without its end
	list  []Output
	files []string // in the home, each once
	have  map[string]bool
}

// Output implements host.Outputs. A file of the home has the size that it has, whatever the worker
// says. The location of any other output is kept as it is.
func (o *outputs) Output(label int64, location string, size int64) error {
	rel, local := o.home.inHome(location)
	if !local {
		switch scheme, _, is := strings.Cut(location, "://"); {
		case is && scheme != "" && !strings.Contains(scheme, "/"):
			if there, err := os.Stat(o.home.data.file(location)); err == nil && there.Mode().IsRegular() {
				size = there.Size()
			}
			o.list = append(o.list, Output{Label: label, Location: location, Size: size})
			return nil
		case strings.HasPrefix(location, "/"):
			return errors.New("it is an absolute path; name a file in the job home by its path from there")
		}
		rel = location
	}
	clean := slashpath.Clean(rel)
	if clean == "." || strings.HasPrefix(clean, ".") || strings.Contains(clean, "/.") {
		return errors.New("it leaves the job home, or a part of it begins with a dot; name a file in the job home that others may fetch")
	}
	info, err := o.home.root.Stat(clean)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file in the job home; write it before OUTPUT")
	case err != nil:
		return fmt.Errorf("%w; name a file in the job home", cause(err))
	case !info.Mode().IsRegular():
		return errNoFile
	}
	o.list = append(o.list, Output{Label: label, Location: o.home.URL("disco", clean), Size: info.Size()})
	if !o.have[clean] {
		if o.have == nil {
			o.have = map[string]bool{}
		}
		o.have[clean] = true
		o.files = append(o.files, clean)
	}
	return nil
}

var errNoFile = errors.New("it is no file; name a file in the job home")

// openFile opens a file of a folder to read it. It returns errNoFile for anything else, also for a
// named pipe, for whose writer an open would wait.
func openFile(root *os.Root, rel string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		_ = f.Close() // nothing was written to it
		return nil, nil, err
	}
	return f, info, nil
}

// cause returns an error without the path that it names.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// file returns the path of a file that a disco:// URL of this host names, and "" for any other URL.
func (d *Data) file(url string) string {
	rel, ok := strings.CutPrefix(url, "disco://"+d.Host+"/disco/")
	if !ok || !filepath.IsLocal(filepath.FromSlash(rel)) {
		return ""
	}
	return filepath.Join(d.Dir, filepath.FromSlash(rel))
}

// Done implements host.Outputs. It flushes the files to the disk, writes the index file if there are
// many outputs, and lets others fetch all of these. A file has the size that it has now.
func (o *outputs) Done() error {
	sizes := make(map[string]int64, len(o.files))
	for _, rel := range o.files {
		size, err := o.flushFile(rel)
		if err != nil {
			return fmt.Errorf("flush %q to the disk: %w", rel, cause(err))
		}
		sizes[o.home.URL("disco", rel)] = size
	}
	for i := range o.list {
		if size, ok := sizes[o.list[i].Location]; ok {
			o.list[i].Size = size
		}
	}
	if len(o.list) > mostOutputs {
		if err := o.writeIndex(); err != nil {
			return fmt.Errorf("write the index of the outputs: %w", err)
		}
	}
	folders := map[string]bool{}
	for _, rel := range o.files {
		for folder := slashpath.Dir(rel); ; folder = slashpath.Dir(folder) {
			folders[folder] = true
			if folder == "." {
				break
			}
		}
	}
	for folder := range folders {
		if err := o.flushFolder(folder); err != nil {
			return fmt.Errorf("flush the folder %q to the disk: %w", folder, cause(err))
		}
	}
	return o.home.name(o.files)
}

// flushFile writes a file of the home to the disk, and returns its size.
func (o *outputs) flushFile(rel string) (size int64, err error) {
	f, info, err := openFile(o.home.root, rel)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return info.Size(), f.Sync()
}

func (o *outputs) flushFolder(rel string) error {
	f, err := o.home.root.Open(rel)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// writeIndex writes a line for each output, LABEL SP URL SP SIZE, and replaces the list by the index.
func (o *outputs) writeIndex() error {
	if err := o.home.root.MkdirAll(slashpath.Dir(o.index), 0o700); err != nil {
		return err
	}
	var b []byte
	sizes := map[int64]int64{}
	for _, out := range o.list {
		b = append(strconv.AppendInt(b, out.Label, 10), ' ')
		b = append(append(b, word(out.Location)...), ' ')
		b = append(strconv.AppendInt(b, out.Size, 10), '\n')
		sizes[out.Label] += out.Size
	}
	rel := o.index + ".results"
	if err := o.home.root.WriteFile(rel, b, 0o600); err != nil {
		return err
	}
	if _, err := o.flushFile(rel); err != nil {
		return err
	}
	o.files = append(o.files, rel)
	index := Output{Location: o.home.URL("dir", rel)}
	for _, label := range slices.Sorted(maps.Keys(sizes)) {
		index.Labels = append(index.Labels, [2]int64{label, sizes[label]})
		index.Size += sizes[label]
	}
	o.list = []Output{index}
	return nil
}
