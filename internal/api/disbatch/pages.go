package disbatch

import (
	"embed"
	"html"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/config"
)

//go:embed htdocs
var embedded embed.FS

// page makes an HTML page. Its body is HTML already: what comes from elsewhere goes through
// [html.EscapeString]. The package html/template would do this, too. A program that links it keeps
// every exported method of every linked type, which is an eighth of this program.
func page(title, script, body string) string {
	if script != "" {
		script = `<script src="/js/` + script + `"></script>` + "\n"
	}
	return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>` + html.EscapeString(title) + `</title>
<link rel="stylesheet" href="/css/style.css">
` + script + `</head>
<body>
<header><a class="brand" href="/ui/">Sluice</a> <nav><a href="/">Queues</a> <a href="/tasks">Tasks</a> <a href="/balance">Balance</a></nav></header>
<main>
<p class="hint">This is Disbatch's page. Plans, tasks and nodes are on <a href="/ui/">Sluice's own pages</a>.</p>
` + body + `</main>
</body>
</html>
`
}

// index is GET /.
func (h *Handler) index(*http.Request) answer {
	return answer{page: page("Disbatch", "queues.js", `<h1> Disbatch Queues </h1>
<p>Database: `+html.EscapeString(h.conf.Database)+`</p>
<div id="error"></div>
<table>
<thead><tr><th>Queue</th><th>Plugin</th><th>Threads</th><th class="num">Queued</th><th class="num">Running</th><th class="num">Completed</th><th>ID</th></tr></thead>
<tbody id="queues"></tbody>
</table>
<table>
<thead><tr><th>Node</th><th>Threads at most</th><th>Last heard of</th><th>ID</th></tr></thead>
<tbody id="nodes"></tbody>
</table>
`)}
}

// queryPage is the form of GET /tasks.
func queryPage(indexes [][]string, wrong string) string {
	var body strings.Builder
	body.WriteString("<h1> " + tasksTitle + " </h1>\n<h3> Warning: this can return a LOT of data! </h3>\n")
	if wrong != "" {
		body.WriteString(`<p id="error">error: ` + html.EscapeString(wrong) + "</p>\n")
	}
	body.WriteString("<p>You can ask for what is indexed. Of an index, what is to the left of a field has to be given as well.<br />\nIndexes:<br />\n")
	fields := map[string]bool{}
	for _, i := range indexes {
		body.WriteString(html.EscapeString(strings.Join(i, ", ")) + "<br />\n")
		for _, f := range i {
			fields[f] = true
		}
	}
	body.WriteString(`</p>
<form method="GET" action="/tasks">
<table>
<tr><td>limit results to:</td><td><input type="text" name=".limit" value="100" /></td></tr>
`)
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		f = html.EscapeString(f)
		body.WriteString(`<tr><td>` + f + `:</td><td><input type="text" name="` + f + `" value="" /></td></tr>` + "\n")
	}
	body.WriteString(`</table>
<input type="submit" value="submit" />
</form>
`)
	return page(tasksTitle, "", body.String())
}

// inPre makes text safe between tags. Quotes stay: programs look for names in them.
var inPre = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// resultsPage shows what was found.
func resultsPage(title string, text []byte, n int) string {
	title += " Results"
	found := "<pre>Document(s) not found.</pre>\n"
	if n > 0 {
		found = "Results returned: " + strconv.Itoa(n) + "<br />\n<pre>" + inPre.Replace(string(text)) + "</pre><br />\n"
	}
	return page(title, "", "<h1> "+html.EscapeString(title)+" </h1>\n<div id=\"results\">\n"+found+"</div>\n")
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
	body := "<h2>QueueBalancer – Pre-populated with current settings</h2>\n"
	if !c.Enabled {
		body += `<div class="warning">NOT ENABLED (cannot be changed here)</div>` + "\n"
	}
	if c.Pretend {
		body += `<div class="warning">PRETEND MODE (cannot be changed here)</div>` + "\n"
	}
	if notice, _ := doc["notice"].(string); notice != "" {
		body += "<p>" + html.EscapeString(notice) + "</p>\n"
	}
	return page("QueueBalancer", "balance.js", body+
		"<p>currently known queues: "+html.EscapeString(strings.Join(known, ", "))+`</p>
<form id="balance">
<textarea id="document" rows="20" cols="80">`+html.EscapeString(string(encode(shown, true)))+`</textarea><br />
<input type="submit" value="submit" />
</form>
<pre id="result"></pre>
`)
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
