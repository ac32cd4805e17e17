package disco

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jobpack"
)

// The folders and files of a Data that are not Disco's. No file below ours is served.
const (
	ours        = ".sluice"
	storeFile   = "store" // names the store whose nodes share the folder
	makingLock  = "lock"  // held by a node that makes a job home
	homesFolder = "homes" // a file for each job home: a task that runs there holds a shared lock of it
	namedFolder = "named" // a folder for each job, with a file for each output that may be fetched
)

// A Data is the folder that disco:// URLs of a host stand for. It holds the job homes. Nodes of one
// machine may share it, if they have the same store.
type Data struct {
	Dir  string // absolute, without symbolic links
	Host string // the name of this host in URLs
}

// OpenData makes the folder if it is not there, and takes it for nodes of the store with that
// identity. It refuses a folder that belongs to another store.
func OpenData(dir, host, store string) (*Data, error) {
	if err := checkHost(host); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, ours), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of Disco's data: %w", err)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("find the folder of Disco's data: %w", err)
	}
	d := &Data{Dir: abs, Host: host}
	for _, folder := range []string{homesFolder, namedFolder} {
		if err := os.MkdirAll(d.own(folder), 0o700); err != nil {
			return nil, err
		}
	}
	unlock, err := lock(d.own(makingLock), exclusive)
	if err != nil {
		return nil, err
	}
	defer unlock()
	was, err := os.ReadFile(d.own(storeFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, os.WriteFile(d.own(storeFile), []byte(store+"\n"), 0o600)
	case err != nil:
		return nil, err
	case strings.TrimSpace(string(was)) != store:
		return nil, fmt.Errorf("%s holds the files of nodes of another store, %s; choose another folder, with --disco-data", abs, strings.TrimSpace(string(was)))
	}
	return d, nil
}

// checkHost refuses what cannot be the host of a URL and a folder.
func checkHost(host string) error {
	ok := host != "" && host[0] != '.' && !strings.ContainsFunc(host, func(r rune) bool {
		return r != '-' && r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if !ok {
		return fmt.Errorf("%q cannot be the name of a host in URLs; give one of letters, digits, . and -, with --disco-host", host)
	}
	return nil
}

func (d *Data) own(names ...string) string {
	return filepath.Join(append([]string{d.Dir, ours}, names...)...)
}

// URL returns how others name a file below the folder of the host.
func (d *Data) URL(scheme, rel string) string {
	return scheme + "://" + d.Host + "/disco/" + d.Host + "/" + rel
}

// JobName makes the name of a job of a plan's or a task's name and its id. The name is a folder, and
// a part of URLs.
func JobName(name, id string) string { return jobpack.JobName(name, id) }

// jobPath returns the folder of a job below that of the host: HH/JOBNAME, as Disco has it.
func jobPath(job string) string {
	sum := md5.Sum([]byte(job))
	return hex.EncodeToString(sum[:1]) + "/" + job
}

// A Home is a job home, the folder that all tasks of a job share on a host, while a task uses it.
type Home struct {
	Job  string
	Path string // absolute

	data   *Data
	root   *os.Root
	unlock func()
}

// Open returns the home of the job. It makes the home if it is not there, once for any number of
// tasks and nodes that ask at the same time. jobFile is the job pack that a new home gets; "" is an
// empty one. The caller closes the home after the task. No other process deletes it before.
func (d *Data) Open(job, jobFile string) (h *Home, err error) {
	return d.open(job, func(fresh string) error { return writeJobFile(fresh, jobFile) })
}

// OpenPacked is Open for a home that is unpacked from a job pack, which it has too.
func (d *Data) OpenPacked(job, pack string) (*Home, error) {
	return d.openPacked(job, strconv.Quote(pack), func(fresh string) error { return writeJobFile(fresh, pack) })
}

// OpenStored is OpenPacked for a pack that the store keeps, with that SHA-256 in hex.
func (d *Data) OpenStored(job, sum string, open func() (io.ReadCloser, error)) (*Home, error) {
	return d.openPacked(job, "the job pack in the store", func(fresh string) error {
		from, err := open()
		if err != nil {
			return err
		}
		defer from.Close()
		hash := sha256.New()
		if err := copyTo(filepath.Join(fresh, jobFileName), io.TeeReader(io.LimitReader(from, jobpack.MaxSize+1), hash)); err != nil {
			return err
		}
		if is := hex.EncodeToString(hash.Sum(nil)); is != sum {
			return fmt.Errorf("the job pack in the store has the SHA-256 %s, and the task wants %s; submit the job again", is, sum)
		}
		return nil
	})
}

// openPacked opens a home. put writes the job pack into the folder of a new one.
func (d *Data) openPacked(job, pack string, put func(fresh string) error) (*Home, error) {
	return d.open(job, func(fresh string) error {
		if err := put(fresh); err != nil {
			return err
		}
		f, err := os.Open(filepath.Join(fresh, jobFileName))
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		p, err := jobpack.Read(f, info.Size())
		if err == nil {
			err = p.Unpack(fresh)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", pack, err)
		}
		return nil
	})
}

// open opens a home. fill puts into the folder of a new one what it has from the beginning.
func (d *Data) open(job string, fill func(fresh string) error) (h *Home, err error) {
	unlock, err := lock(d.own(homesFolder, job), shared)
	if err != nil {
		return nil, fmt.Errorf("lock the job home of %s: %w", job, err)
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	h = &Home{Job: job, Path: filepath.Join(d.Dir, d.Host, filepath.FromSlash(jobPath(job))), data: d, unlock: unlock}
	if _, err := os.Stat(h.Path); errors.Is(err, fs.ErrNotExist) {
		if err := d.makeHome(h, fill); err != nil {
			return nil, fmt.Errorf("make the job home of %s: %w", job, err)
		}
	}
	h.root, err = os.OpenRoot(h.Path)
	return h, err
}

// makeHome makes the home beside its place, and moves it there when it is complete.
func (d *Data) makeHome(h *Home, fill func(fresh string) error) error {
	unlock, err := lock(d.own(makingLock), exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(h.Path); err == nil {
		return nil // another task was faster
	}
	fresh, err := os.MkdirTemp(d.own(), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) // it is not there any more if all went well
	if err := fill(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(h.Path), 0o700); err != nil {
		return err
	}
	return os.Rename(fresh, h.Path)
}

// jobFileName is where a job home has its job pack.
const jobFileName = "jobfile"

// writeJobFile puts a copy of a job pack, or an empty one, into a job home.
func writeJobFile(home, from string) error {
	to := filepath.Join(home, jobFileName)
	if from == "" {
		return os.WriteFile(to, emptyPack(), 0o600)
	}
	if err := checkJobFile(from); err != nil { // before the open, which would wait for the writer of a named pipe
		return fmt.Errorf("jobfile %w", err)
	}
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("jobfile: %w", err)
	}
	defer f.Close()
	return copyTo(to, f)
}

// copyTo makes a file of what a reader has.
func copyTo(path string, from io.Reader) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}

// checkJobFile says why a path names no job pack.
func checkJobFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%q: %w", path, cause(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is no file; name the job pack", path)
	}
	return nil
}

// Close says that the task does not use the home any more.
func (h *Home) Close() {
	_ = h.root.Close()
	h.unlock()
}

// JobFile returns the path of the job pack.
func (h *Home) JobFile() string { return filepath.Join(h.Path, jobFileName) }

// URL returns how others name a file in the home.
func (h *Home) URL(scheme, rel string) string {
	return h.data.URL(scheme, jobPath(h.Job)+"/"+escape(rel))
}

// escape writes a path as URLs have it. It changes only what would end a URL, or a word of an index
// file: workers read local files by the path as it is in the URL.
func escape(rel string) string {
	return encode(rel, "%?#")
}

// word writes a URL as a word of an index file has it.
func word(url string) string { return encode(url, "") }

// encode writes blanks, controls, what is not ASCII and the marks as %XX.
func encode(text, marks string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(marks, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// inHome returns the path in the home that a URL of this host names, and whether it names one.
func (h *Home) inHome(url string) (rel string, ok bool) {
	return strings.CutPrefix(url, h.data.URL("disco", jobPath(h.Job)+"/"))
}

// named returns the file that says of a file of a job that it may be fetched.
func (d *Data) named(job, rel string) string {
	sum := sha256.Sum256([]byte(rel))
	return d.own(namedFolder, job, hex.EncodeToString(sum[:]))
}

// name lets others fetch files of the home.
func (h *Home) name(rels []string) error {
	if len(rels) == 0 {
		return nil
	}
	if err := os.MkdirAll(h.data.own(namedFolder, h.Job), 0o700); err != nil {
		return err
	}
	for _, rel := range rels {
		f, err := os.OpenFile(h.data.named(h.Job, rel), os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
