package disco

import (
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// Handler serves the files of this host by HTTP: GET and HEAD, with ranges, of
// /disco/HOST/HH/JOBNAME/PATH. Only files that an OUTPUT of a task named that is done, and index
// files, can be fetched. No path leads out of a job home, and a request by another name than that of
// the host is refused, so that no page in a browser can read files under a name of its own.
func (d *Data) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !d.known(r.Host):
			http.Error(w, "this server has another name; use that of --disco-host", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "files are only read here", http.StatusMethodNotAllowed)
		default:
			d.serve(w, r)
		}
	})
}

// known reports whether a Host header names this host: by its name, as localhost, or by an address.
func (d *Data) known(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, d.Host) || strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

func (d *Data) serve(w http.ResponseWriter, r *http.Request) {
	f, info, err := d.openNamed(r.URL.Path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream") // it is data: nothing guesses what it is
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", info.ModTime(), f)
}

// openNamed opens the file that a URL's path names, if it may be fetched.
func (d *Data) openNamed(path string) (*os.File, fs.FileInfo, error) {
	rest, ok := strings.CutPrefix(path, "/disco/"+d.Host+"/")
	if !ok {
		return nil, nil, os.ErrNotExist
	}
	hash, rest, _ := strings.Cut(rest, "/")
	job, rel, _ := strings.Cut(rest, "/")
	if job == "" || strings.HasPrefix(job, ".") || rel == "" || strings.HasPrefix(rel, ".") || strings.Contains(rel, "/.") || hash+"/"+job != jobPath(job) {
		return nil, nil, os.ErrNotExist
	}
	if _, err := os.Stat(d.named(job, rel)); err != nil {
		return nil, nil, os.ErrNotExist
	}
	root, err := os.OpenRoot(filepath.Join(d.Dir, d.Host, hash, job))
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	return openFile(root, rel)
}
