package disbatch

import (
	"bytes"
	"embed"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/config"
)

var (
	//go:embed htdocs
	embedded embed.FS
	//go:embed page.html
	pageText string

	pageTemplates = template.Must(template.New("").Parse(pageText))
)

// page makes an HTML page.
func page(name string, data any) string {
	var b bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&b, name, data); err != nil {
		return "<pre>this page cannot be made</pre>" // the templates are ours, and tested
	}
	return b.String()
}

// head is what each page needs.
type head struct{ Title, Script string }

// index is GET /.
func (h *Handler) index(*http.Request) answer {
	return answer{page: page("index", struct {
		head
		Database string
	}{head{"Disbatch", "queues.js"}, h.conf.Database})}
}

// queryPage is the form of GET /tasks.
func queryPage(indexes [][]string, wrong string) string {
	fields := map[string]bool{}
	for _, i := range indexes {
		for _, f := range i {
			fields[f] = true
		}
	}
	return page("query", struct {
		head
		Error   string
		Indexes [][]string
		Fields  []string
	}{head{Title: tasksTitle}, wrong, indexes, slices.Sorted(maps.Keys(fields))})
}

// inPre makes text safe between tags. Quotes stay: programs look for names in them.
var inPre = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// resultsPage shows what was found.
func resultsPage(title string, text []byte, n int) string {
	return page("results", struct {
		head
		Count int
		Text  template.HTML
	}{head{Title: title + " Results"}, n, template.HTML(inPre.Replace(string(text)))})
}

// balancePage shows the balance document.
func balancePage(doc object, c config.Balance) string {
	known, _ := doc["known_queues"].([]string)
	shown := object{"max_tasks": object{}, "queues": list{}}
	for _, key := range []string{"max_tasks", "queues", "disabled"} {
		if v, there := doc[key]; there && v != nil {
			shown[key] = v
		}
	}
	notice, _ := doc["notice"].(string)
	return page("balance", struct {
		head
		Enabled, Pretend        bool
		Notice, Known, Document string
	}{head{"QueueBalancer", "balance.js"}, c.Enabled, c.Pretend, notice, strings.Join(known, ", "), string(encode(shown, true))})
}

// types are those of files that Disbatch's web server knows otherwise than Go does.
var fileTypes = map[string]string{".js": "application/javascript", ".html": "text/html", ".css": "text/css", ".json": "application/json"}

// pages serves files: those of web_root if there is such a folder, else, or where it has none of that name, the embedded ones.
func (h *Handler) pages() http.Handler {
	own, err := fs.Sub(embedded, "htdocs")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	folders := []fs.FS{own}
	if h.conf.Conf.WebRoot != "" {
		if root, err := os.OpenRoot(h.conf.Conf.WebRoot); err == nil { // no link in it leads out of it
			folders = []fs.FS{root.FS(), own}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
		for _, folder := range folders {
			if name != "" && serveFile(w, r, folder, name) {
				return
			}
		}
		http.NotFound(w, r)
	})
}

// serveFile serves a file if there is one of that name.
func serveFile(w http.ResponseWriter, r *http.Request, folder fs.FS, name string) bool {
	info, err := fs.Stat(folder, name)
	if err != nil || !info.Mode().IsRegular() { // to open a pipe would wait
		return false
	}
	f, err := folder.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	content, seeks := f.(io.ReadSeeker)
	if !seeks {
		return false
	}
	extension := path.Ext(name)
	kind := fileTypes[extension]
	if kind == "" {
		kind = mime.TypeByExtension(extension)
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, r, name, info.ModTime(), content)
	return true
}
