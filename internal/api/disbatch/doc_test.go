package disbatch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
)

const document = "../../../docs/dci-disbatch.md"

// Ids stand in the document as these digits and a number, in the order in which they come up.
var documentID = regexp.MustCompile(`6b0281f52d12443cb6(\d{6})`)

// Each curl of the document is made, in order, and has the answer that stands below it, but for ids and instants.
func TestTheDocumentHasTheAnswers(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	s := model.New(model.Options{})
	p := player{t: t, bed: bed{Store: s}, h: serve(t, s, conf)}
	references := func(text string) string {
		return documentID.ReplaceAllStringFunc(text, func(id string) string {
			n, _ := strconv.Atoi(id[18:])
			return fmt.Sprintf("$%d", n)
		})
	}
	var out []string
	lines := strings.Split(string(text), "\n")
	const prompt = "    $ curl "
	curls := 0
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		command, is := strings.CutPrefix(lines[i], prompt)
		if !is {
			continue
		}
		curls++
		var said []string
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "    ") && !strings.HasPrefix(lines[i+1], prompt) {
			i++
			said = append(said, strings.TrimPrefix(lines[i], "    "))
		}
		w := httptest.NewRecorder()
		p.h.ServeHTTP(w, curl(t, command, func(text string) string { return p.real(references(text)) }))
		body := strings.TrimSuffix(w.Body.String(), "\n")
		got, want := p.same(body), timeless(references(strings.Join(said, "\n")))
		if got != want && !*update {
			t.Errorf("curl %s\ngot  %s\nwant %s", command, got, want)
		}
		for i, id := range p.ids {
			body = strings.ReplaceAll(body, id, fmt.Sprintf("6b0281f52d12443cb6%06d", i+1))
		}
		for line := range strings.SplitSeq(body, "\n") {
			out = append(out, "    "+line)
		}
	}
	if *update {
		if err := os.WriteFile(document, []byte(strings.Join(out, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if curls < 40 {
		t.Errorf("the document has %d requests", curls)
	}
}

// curl makes the request that a command line makes.
func curl(t *testing.T, command string, real func(string) string) *http.Request {
	t.Helper()
	var words []string
	for i, part := range strings.Split(command, "'") { // quotes are around whole words
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	method, target, header, data := "", "", http.Header{}, []string{}
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "-s":
		case "-G":
			method = "GET"
		case "-X":
			i++
			method = words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			header.Set(name, value)
		case "-d":
			i++
			data = append(data, words[i])
		default:
			target = strings.TrimPrefix(words[i], "localhost:8080")
		}
	}
	if len(data) > 0 && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if method == "" {
		method = "GET"
		if len(data) > 0 {
			method = "POST"
		}
	}
	r := httptest.NewRequest(method, "/", strings.NewReader(real(strings.Join(data, "&"))))
	u, err := url.Parse(real(target))
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	r.URL, r.Header = u, header
	return r
}
