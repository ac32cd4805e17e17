package http

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/seed-1177d267/sluice/internal/closedport"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

type object = map[string]any

// loopback is where the receivers of the tests are.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// task returns an attempt with these params.
func task(t testing.TB, params object) *plugins.Task {
	t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	return &plugins.Task{ID: plan.TaskID{ID: plan.NewID(time.Unix(1, 0))}, Node: "n1", Attempt: 2, Params: raw, Log: &plugins.Log{}}
}

// receive returns the address of a receiver.
func receive(t testing.TB, handle http.HandlerFunc) string {
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

func newPlugin(t testing.TB) *Plugin {
	p := New(Options{Allow: loopback})
	t.Cleanup(func() { p.Close() })
	return p
}

// logged returns the details that the log of an attempt has, and all of the log.
func logged(t testing.TB, k *plugins.Task) (d struct {
	Method, URL, Error, Body, Sent string
	Status                         int
	Cut                            bool
	Headers                        map[string]string
	MS                             map[string]float64
}, text string) {
	t.Helper()
	entries := k.Log.Drain()
	for _, e := range entries {
		if text += e.Text; e.Stream != plan.System {
			t.Errorf("it printed %q to a stream", e.Text)
		}
	}
	if len(entries) == 0 {
		t.Fatal("the log is empty")
	}
	if err := json.Unmarshal([]byte(entries[0].Text), &d); err != nil {
		t.Fatalf("%s: %v", entries[0].Text, err)
	}
	return d, text
}

func TestWhatAnAnswerMeans(t *testing.T) {
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		name       string
		status     int
		retryAfter string
		want       plan.Status
		final      bool
		from, to   time.Duration
	}{
		{"200 is success", 200, "", plan.Succeeded, false, 0, 0},
		{"so is 204", 204, "", plan.Succeeded, false, 0, 0},
		{"and 202, whatever it says", 202, "5", plan.Succeeded, false, 0, 0},
		{"a request that is wrong stays so", 400, "", plan.Failed, true, 0, 0},
		{"so does one that may not be made", 403, "5", plan.Failed, true, 0, 0},
		{"and what is not there", 404, "", plan.Failed, true, 0, 0},
		{"304 is no success", 304, "", plan.Failed, true, 0, 0},
		{"a receiver that waited too long is tried again", 408, "", plan.Failed, false, 0, 0},
		{"so is one that finds it too early", 425, "", plan.Failed, false, 0, 0},
		{"one that has too much to do says when", 429, "17", plan.Failed, false, 17 * time.Second, 17 * time.Second},
		{"or at which time", 503, in(10 * time.Hour), plan.Failed, false, 9 * time.Hour, 10 * time.Hour},
		{"a time that is over is none", 503, in(-time.Minute), plan.Failed, false, 0, 0},
		{"so is nonsense", 503, "soon", plan.Failed, false, 0, 0},
		{"and less than nothing", 503, "-5", plan.Failed, false, 0, 0},
		{"too many seconds are a day", 503, "99999999999", plan.Failed, false, plan.MaxAfter, plan.MaxAfter},
		{"so is a time that is too far", 429, in(1000 * time.Hour), plan.Failed, false, plan.MaxAfter, plan.MaxAfter},
		{"500 is tried again", 500, "", plan.Failed, false, 0, 0},
		{"so is 599", 599, "", plan.Failed, false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
			})
			k := task(t, object{"url": at + "/x"})
			r := newPlugin(t).Run(t.Context(), k)
			if r.Status != c.want || r.Final != c.final || r.After < c.from || r.After > c.to {
				t.Errorf("%+v; want %v, final %v, after %v to %v", r, c.want, c.final, c.from, c.to)
			}
			if d, _ := logged(t, k); d.Status != c.status || d.Method != "GET" || d.URL != at+"/x" {
				t.Errorf("the log has %+v", d)
			}
			if c.want != plan.Succeeded && !strings.Contains(r.Detail, fmt.Sprint(c.status)) {
				t.Errorf("the detail is %q", r.Detail)
			}
		})
	}
}

// A person may change the body before the next try.
func TestTheLogOfATryThatFailedHasWhatItSent(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		method  string
		long    int
		secrets []string
		sent    bool
	}{
		{"it failed", 503, "PUT", 0, nil, true},
		{"it failed with a long body", 503, "PUT", loggedBody, nil, false},
		{"it failed and has a secret", 503, "PUT", 0, []string{"abc"}, false},
		{"it sends no body", 503, "DELETE", 0, nil, false},
		{"it succeeded", 200, "PUT", 0, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := receive(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) })
			k := task(t, object{"url": at, "method": c.method, "body": object{"a": strings.Repeat("x", c.long)}})
			k.Secrets = c.secrets
			newPlugin(t).Run(t.Context(), k)
			if d, text := logged(t, k); (d.Sent == `{"a":""}`) != c.sent || (d.Sent != "") != c.sent {
				t.Errorf("the log is %.200s", text)
			}
		})
	}
}

func TestWhatIsSent(t *testing.T) {
	type got struct {
		method, url, body string
		header            http.Header
	}
	sent := make(chan got, 1)
	at := receive(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent <- got{r.Method, r.RequestURI, string(body), r.Header}
	})
	p := newPlugin(t)
	for _, c := range []struct {
		name              string
		params            object
		method, url, body string
		header            string
	}{
		{"a GET is the default", object{"url": at + "/a"}, "GET", "/a", "", ""},
		{"a body makes it a POST", object{"url": at + "/songs/{id}/republish", "body": object{"id": 7, "a": []int{1}}}, "POST", "/songs/7/republish", `{"a":[1],"id":7}`, "Content-Type: application/json"},
		{"a PUT sends it too", object{"url": at, "method": "PUT", "body": "x"}, "PUT", "/", `"x"`, ""},
		{"a GET takes its fields only", object{"url": at + "/{id}{?q,on}", "method": "GET", "body": object{"id": "a/b", "q": "ü &", "on": true}}, "GET", "/a%2Fb?q=%C3%BC%20%26&on=true", "", ""},
		{"so does a DELETE", object{"url": at + "/{id}", "method": "DELETE", "body": object{"id": 12345678901234567890.0}}, "DELETE", "/12345678901234567000", "", ""},
		{"a param may be a field", object{"url": at + "{/item}", "item": "x"}, "GET", "/x", "", ""},
		{"the body comes first", object{"url": at + "/{id}", "id": 1, "body": object{"id": 2}}, "POST", "/2", `{"id":2}`, ""},
		{"query is added", object{"url": at + "/?a=1{&b}", "b": 2, "query": object{"c": "3 4", "d": true}}, "GET", "/?a=1&b=2&c=3+4&d=true", "", ""},
		{"headers are sent", object{"url": at, "headers": object{"X-One": 1, "content-type": "text/x"}, "body": nil}, "POST", "/", "null", "Content-Type: text/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := task(t, c.params)
			if r := p.Run(t.Context(), k); r.Status != plan.Succeeded {
				t.Fatalf("%+v", r)
			}
			g := <-sent
			if g.method != c.method || g.url != c.url || g.body != c.body {
				t.Errorf("it sent %s %s %s; want %s %s %s", g.method, g.url, g.body, c.method, c.url, c.body)
			}
			if g.header.Get("Idempotency-Key") != k.ID.String() || g.header.Get("Sluice-Attempt") != "2" {
				t.Errorf("the headers are %v", g.header)
			}
			if name, value, ok := strings.Cut(c.header, ": "); ok && g.header.Get(name) != value {
				t.Errorf("%s is %q, want %q", name, g.header.Get(name), value)
			}
		})
	}
}

func TestWhatIsRefusedAsItIsAdded(t *testing.T) {
	for _, c := range []struct {
		name   string
		params object
		key    string
		says   []string
	}{
		{"no address", object{}, "url", []string{"there is none"}},
		{"no text", object{"url": 7}, "url", []string{"7 is not a text"}},
		{"another scheme", object{"url": "ftp://a/b"}, "url", []string{"http://", "ftp://a/b"}},
		{"none", object{"url": "example.com/{id}", "id": 1}, "url", []string{"does not begin with http"}},
		{"a field that is the host", object{"url": "http://{host}/", "host": "a"}, "url", []string{"{host}", "host"}},
		{"one that is its beginning", object{"url": "http://{sub}.example.com/", "sub": "a"}, "url", []string{"{sub}"}},
		{"one that is its end", object{"url": "http://example.com{x}/", "x": "a"}, "url", []string{"{x}", "choose the receiver"}},
		{"one that is the port", object{"url": "http://example.com:{port}/", "port": 80}, "url", []string{"{port}"}},
		{"one that is a label", object{"url": "http://example{.tld}/", "tld": "com"}, "url", []string{"{.tld}"}},
		{"one that is the scheme", object{"url": "{scheme}://a/", "scheme": "http"}, "url", []string{"{scheme}"}},
		{"one that is anything", object{"url": "https://a/{+path}", "path": "x"}, "url", []string{"{+path}", "write {path}"}},
		{"a fragment", object{"url": "https://a/{#path}", "path": "x"}, "url", []string{"{#path}"}},
		{"a field that is missing", object{"url": "https://a/{SongId}", "body": object{"songId": 1}}, "url", []string{"SongId", "body"}},
		{"one of several", object{"url": "https://a/{?x,y}", "x": 1}, "url", []string{`"y"`}},
		{"one that is null", object{"url": "https://a/{x}", "x": nil}, "url", []string{`"x" is null`}},
		{"one that is a list", object{"url": "https://a/{x}", "x": []int{1}}, "url", []string{`"x" is [1]`}},
		{"one that is an object", object{"url": "https://a/{x*}", "x": object{"a": 1}}, "url", []string{`"x" is {"a":1}`}},
		{"a brace alone", object{"url": "https://a/{x"}, "url", []string{"no partner"}},
		{"two braces", object{"url": "https://a/{{x}}", "x": 1}, "url", []string{"no partner"}},
		{"a beginning of other letters", object{"url": "https://a/{x:2}", "x": "über"}, "url", []string{"ASCII"}},
		{"a password", object{"url": "https://me:pass@a/"}, "url", []string{"from_env"}},
		{"a host after a backslash", object{"url": `https://a\@b/`}, "url", []string{`"\\"`}},
		{"another verb", object{"url": "https://a/", "method": "FETCH"}, "method", []string{"FETCH", "PATCH"}},
		{"headers in a text", object{"url": "https://a/", "headers": "X: 1"}, "headers", []string{"mapping"}},
		{"a header with a blank", object{"url": "https://a/", "headers": object{"X Y": 1}}, "headers", []string{`"X Y"`}},
		{"a header with a line break", object{"url": "https://a/", "headers": object{"X": "1\r\nY: 2"}}, "headers", []string{"line break"}},
		{"the host", object{"url": "https://a/", "headers": object{"Host": "b"}}, "headers", []string{"Host"}},
		{"the key", object{"url": "https://a/", "headers": object{"idempotency-key": "b"}}, "headers", []string{"idempotency-key"}},
		{"a secret of two places", object{"url": "https://a/", "headers": object{"X": object{"from_env": "A", "from_file": "B"}}}, "headers", []string{"X: "}},
		{"a time that is none", object{"url": "https://a/", "timeout": "soon"}, "timeout", []string{`"soon"`}},
		{"no time", object{"url": "https://a/", "timeout": 0}, "timeout", []string{"above 0"}},
		{"too long a time", object{"url": "https://a/", "timeout": 1e300}, "timeout", []string{"a day"}},
		{"no secret", object{"url": "https://a/", "sign": object{"key": "x"}}, "sign", []string{"from_env"}},
		{"a list of no secrets", object{"url": "https://a/", "sign": []string{}}, "sign", []string{"nothing would be signed"}},
		{"a secret of another kind", object{"url": "https://a/", "sign": "abc"}, "sign", []string{"whsec_ and base64"}},
		{"a header twice", object{"url": "https://a/", "headers": object{"accept": "a", "Accept": "b"}}, "headers", []string{"Accept and accept are the same header"}},
		{"half an address of IPv6", object{"url": "http://[::1/x"}, "url", []string{"missing ']'"}},
		{"a port that there is not", object{"url": "http://a:99999/{x}", "x": "x"}, "url", []string{"port 99999"}},
		{"a field that leads upwards", object{"url": "https://a/b/{x}", "body": object{"x": "../.."}}, "url", []string{"leads upwards"}},
		{"half an escape", object{"url": "http://a/%zz"}, "url", []string{`"%zz"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := task(t, c.params)
			key, err := (&Plugin{}).Refuse(k.Params, nil)
			if err == nil {
				t.Fatal("it is not refused")
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) || key != c.key {
					t.Errorf("%s: %v; want %s, with %q", key, err, c.key, s)
				}
			}
			if r := newPlugin(t).Run(t.Context(), k); r.Status != plan.Failed || !r.Final || r.Detail != err.Error() {
				t.Errorf("the attempt ends as %+v, and is refused for %v", r, err)
			}
		})
	}
}

func TestWhatMayComeIsNotRefused(t *testing.T) {
	given := map[string]json.RawMessage{"item": json.RawMessage(`""`), "of_plan": json.RawMessage(`1`), "of_draft": nil}
	for _, params := range []object{
		{"url": "${{ needs.a.url }}"},
		{"url": "https://a/${{ needs.a }}/{x}", "x": "${{ needs.b }}"},
		{"url": "https://a/{x}", "body": "${{ needs.a }}"},
		{"url": "https://a/{item}/{of_plan}/{of_draft}"},
		{"url": "https://a/", "method": "${{ params.m }}", "timeout": "${{ params.t }}", "headers": object{"A": "${{ needs.a }}"}, "query": "${{ needs.a }}"},
		{"url": "https://a/{x:2}{&y*}", "x": "abc", "y": 1},
		{"url": "https://a/{x}", "body": object{"x": "${{ needs.a }}.."}},
		{"url": "https://a/", "sign": []string{"${{ params.key }}", "whsec_YWJj"}},
	} {
		if key, err := (&Plugin{}).Refuse(task(t, params).Params, given); err != nil {
			t.Errorf("%v: %s: %v", params, key, err)
		}
	}
}

func TestAFieldLeadsNowhereElse(t *testing.T) {
	p := newPlugin(t)
	for _, c := range []struct{ url, field, says string }{
		{"/a/{x}/b", "..", "upwards"},
		{"/a/{x}", ".", "upwards"},
		{"/a{/x}", "..", "upwards"},
	} {
		r := p.Run(t.Context(), task(t, object{"url": "http://127.0.0.1:1" + c.url, "x": c.field}))
		if !r.Final || !strings.Contains(r.Detail, c.says) {
			t.Errorf("%s with %q: %+v; want %q", c.url, c.field, r, c.says)
		}
	}
}

func TestTheOutput(t *testing.T) {
	deep := strings.Repeat("[", plan.MaxOutputDepth) + strings.Repeat("]", plan.MaxOutputDepth)
	quoted := func(s string) string { q, _ := json.Marshal(s); return string(q) }
	for _, c := range []struct{ name, kind, body, want string }{
		{"JSON stays JSON", "application/json", `{"a": 1.50}`, `{"status":200,"body":{"a":1.50}}`},
		{"a kind of JSON does", "application/problem+json; charset=utf-8", `"x"`, `{"status":200,"body":"x"}`},
		{"an object of no kind does", "text/plain", ` [1]`, `{"status":200,"body":[1]}`},
		{"a number of no kind is a text", "text/plain", `12`, `{"status":200,"body":"12"}`},
		{"what is said to be JSON and is not is a text", "application/json", `{"a"`, `{"status":200,"body":"{\"a\""}`},
		{"what is too deep is a text", "application/json", deep, `{"status":200,"body":` + quoted(deep) + `}`},
		{"a text is one", "text/html", "<p>", `{"status":200,"body":"<p>"}`},
		{"what is no UTF-8 is made so", "text/plain", "a\xff", `{"status":200,"body":"a` + "\uFFFD" + `"}`},
		{"nothing is null", "", "", `{"status":200,"body":null}`},
		{"what is long is whole", "text/plain", strings.Repeat("x", mostBody), `{"status":200,"body":"` + strings.Repeat("x", mostBody) + `"}`},
		{"what is longer is cut", "text/plain", strings.Repeat("x", mostBody+1), `{"status":200,"body":"` + strings.Repeat("x", mostBody) + `","cut":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{c.kind}
				io.WriteString(w, c.body)
			})
			k := task(t, object{"url": at})
			r := newPlugin(t).Run(t.Context(), k)
			if r.Status != plan.Succeeded || string(r.Output) != c.want {
				t.Errorf("%+v, output %.100s; want %.100s", r.Status, r.Output, c.want)
			}
			if d, _ := logged(t, k); len(d.Body) > loggedBody+3 || d.Cut != (len(c.body) > loggedBody) {
				t.Errorf("the log has %d bytes of it, cut: %v", len(d.Body), d.Cut)
			}
		})
	}
}

func TestARequestThatWasAcceptedDoesNotFailByItsBody(t *testing.T) {
	for _, c := range []struct{ name, answer, want string }{
		{"it is not compressed as it says", "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain", `{"status":201,"body":null}`},
		{"it ends early", "Content-Length: 100\r\n\r\nbegin", `{"status":201,"body":"begin","cut":true}`},
		{"its JSON ends early", "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"id\": 7}", `{"status":201,"body":"{\"id\": 7}","cut":true}`},
		{"its chunks are broken", "Transfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\nnonsense\r\n", `{"status":201,"body":"begin","cut":true}`},
		{"it has a byte order mark", "Content-Length: 12\r\n\r\n\uFEFF{\"id\": 7}", `{"status":201,"body":{"id":7}}`},
		{"it says that it is JSON, and is not", "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{,", `{"status":201,"body":"{,"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(conn, "HTTP/1.1 201 Created\r\nConnection: close\r\n"+c.answer)
				conn.Close()
			})
			r := newPlugin(t).Run(t.Context(), task(t, object{"url": at, "body": object{"id": 7}}))
			if r.Status != plan.Succeeded || string(r.Output) != c.want {
				t.Errorf("%v (%s), output %s; want success, and %s", r.Status, r.Detail, r.Output, c.want)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	other := receive(t, func(http.ResponseWriter, *http.Request) { t.Error("another host got a request") })
	var at string
	var methods []string
	at = receive(t, func(w http.ResponseWriter, r *http.Request) {
		methods = append(methods, r.Method+" "+r.URL.Path)
		switch r.URL.Path {
		case "/there":
			http.Redirect(w, r, "/here", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other+"/here", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusTemporaryRedirect)
		case "/nowhere":
			w.WriteHeader(http.StatusMovedPermanently)
		}
	})
	for _, c := range []struct {
		path, method string
		ok           bool
		requests     int
		says         string
	}{
		{"/there", "GET", true, 2, ""},
		{"/there", "POST", false, 1, "302 Found"},
		{"/there", "DELETE", false, 1, "302 Found"},
		{"/other", "GET", false, 1, "only redirects of a GET on the same host"},
		{"/round", "GET", false, mostRedirects + 1, "307 Temporary Redirect from " + strings.TrimPrefix(at, "http://") + ": it leads to /round, and no more than 10 redirects are followed"},
		{"/nowhere", "GET", false, 1, "301"},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			methods = nil
			r := newPlugin(t).Run(t.Context(), task(t, object{"url": at + c.path, "method": c.method}))
			if (r.Status == plan.Succeeded) != c.ok || r.Final == c.ok || !strings.Contains(r.Detail, c.says) || len(methods) != c.requests {
				t.Errorf("%+v, with the requests %v; want success %v, %d requests, and %q", r, methods, c.ok, c.requests, c.says)
			}
		})
	}
}

// resolveTo returns a resolver that answers every name with an address.
func resolveTo(t *testing.T, ip [4]byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		for b := make([]byte, 1500); ; {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			end := 12 // of the question: the name, its type and its class
			for end < n && b[end] != 0 {
				end += 1 + int(b[end])
			}
			end += 5
			answers := byte(0)
			if b[end-3] == 1 { // A
				answers = 1
			}
			out := append([]byte{b[0], b[1], 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0}, b[12:end]...)
			if answers == 1 {
				out = append(append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4), ip[:]...)
			}
			server.WriteTo(out, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	reached := false
	at := receive(t, func(http.ResponseWriter, *http.Request) { reached = true })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(at, "http://"))
	t.Setenv("HTTP_PROXY", at)
	t.Setenv("http_proxy", at)
	for _, c := range []struct {
		name, host string
		ip         [4]byte
	}{
		{"loopback", "127.0.0.1", [4]byte{}},
		{"loopback as IPv6", "[::1]", [4]byte{}},
		{"loopback in IPv6", "[::ffff:127.0.0.1]", [4]byte{}},
		{"a name of loopback", "rebound.example.com", [4]byte{127, 0, 0, 1}},
		{"a name of any address", "any.example.com", [4]byte{}},
		{"a name of a private address", "inside.example.com", [4]byte{10, 1, 2, 3}},
		{"the metadata of a cloud", "metadata.example.com", [4]byte{169, 254, 169, 254}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := New(Options{Resolver: resolveTo(t, c.ip)})
			defer p.Close()
			k := task(t, object{"url": "http://" + c.host + ":" + port + "/"})
			r := p.Run(t.Context(), k)
			if r.Status != plan.Failed || !r.Final || !strings.Contains(r.Detail, "--allow-net") || reached {
				t.Errorf("%+v; reached: %v", r, reached)
			}
			if d, _ := logged(t, k); d.Error == "" {
				t.Errorf("the log has %+v", d)
			}
		})
	}
	p := New(Options{Resolver: resolveTo(t, [4]byte{127, 0, 0, 1}), Allow: loopback})
	defer p.Close()
	k := task(t, object{"url": "http://inside.example.com:" + port + "/"})
	if r := p.Run(t.Context(), k); r.Status != plan.Succeeded || !reached {
		t.Errorf("what is allowed: %+v", r)
	}
	if d, _ := logged(t, k); d.MS["name"] <= 0 || d.MS["connect"] < d.MS["name"] || d.MS["first_byte"] < d.MS["connect"] || d.MS["end"] < d.MS["first_byte"] {
		t.Errorf("the times are %v", d.MS)
	}
}

func TestReceiversThatNeverEnd(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request, first string) {
		io.WriteString(w, first)
		for r.Context().Err() == nil {
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond) // so slow is the answer
			io.WriteString(w, "x")
		}
	}
	const short, long = "300ms", "1h" // short for what ends by it
	for name, c := range map[string]struct {
		handle  http.HandlerFunc
		timeout string
		status  plan.Status
		reason  plan.Reason
		final   bool
	}{
		"no answer":           {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, short, plan.Failed, plan.ReasonTimeout, false},
		"a body byte by byte": {func(w http.ResponseWriter, r *http.Request) { slow(w, r, "") }, short, plan.Succeeded, "", false},
		"after a long one":    {func(w http.ResponseWriter, r *http.Request) { slow(w, r, strings.Repeat("x", 2*freeBody)) }, short, plan.Succeeded, "", false},
		"one of a refusal":    {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(400); slow(w, r, "no") }, "5s", plan.Failed, "", true},
		"a body without end":  {endless, long, plan.Succeeded, "", false},
		"headers without end": {func(w http.ResponseWriter, _ *http.Request) { headers(w) }, long, plan.Failed, plan.ReasonError, false},
		"a connection that is shut": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, long, plan.Failed, plan.ReasonError, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait
			k := task(t, object{"url": receive(t, c.handle), "timeout": c.timeout, "method": "POST"})
			r := newPlugin(t).Run(t.Context(), k)
			if r.Status != c.status || r.Reason != c.reason || r.Final != c.final {
				t.Errorf("%v, %q, final %v: %s; want %v, %q, %v", r.Status, r.Reason, r.Final, r.Detail, c.status, c.reason, c.final)
			}
			if len(r.Output) > 2*mostBody {
				t.Errorf("the output has %d bytes", len(r.Output))
			}
		})
	}
}

// endless writes until the receiver of the body goes.
func endless(w http.ResponseWriter, r *http.Request) {
	for part := []byte(strings.Repeat("y", 32<<10)); r.Context().Err() == nil; {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// headers answers with more of them than are read.
func headers(w http.ResponseWriter) {
	for i := range 2000 {
		w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("z", 100))
	}
}

func TestWhatEndsAnAttempt(t *testing.T) {
	arrived := make(chan bool)
	at := receive(t, func(_ http.ResponseWriter, r *http.Request) { arrived <- true; <-r.Context().Done() })
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-arrived; cancel(plugins.ErrCancelled) }()
	if r := newPlugin(t).Run(ctx, task(t, object{"url": at})); r.Status != plan.Terminated || r.Final {
		t.Errorf("%+v", r)
	}
}

func TestNobodyIsThere(t *testing.T) {
	address, _ := closedport.New(t)
	r := newPlugin(t).Run(t.Context(), task(t, object{"url": "http://" + address + "/?a=b"}))
	if r.Status != plan.Failed || r.Final || r.Reason != plan.ReasonError || !strings.Contains(r.Detail, "refused") {
		t.Errorf("%+v", r)
	}
}

func TestSecretsAreNotSeen(t *testing.T) {
	const inEnv, inFile = `to ken/"1"+ü`, "s3cr3t-of-a-file"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(inFile+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTP_TEST_TOKEN", inEnv)
	for _, status := range []int{200, 500} {
		at := receive(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != inFile || r.URL.Query().Get("token") != inEnv {
				t.Errorf("it got %v and %v", r.Header, r.URL)
			}
			w.Header().Set("X-Echo", r.Header.Get("Authorization"))
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(object{"token": r.URL.Query().Get("token"), "uri": r.RequestURI, "key": r.Header.Get("Authorization")})
		})
		k := task(t, object{"url": at + "/{who}", "who": "secret/param", "headers": object{"Authorization": object{"from_file": file}}, "query": object{"token": object{"from_env": "HTTP_TEST_TOKEN"}}})
		k.Secrets = []string{"secret/param"}
		r := newPlugin(t).Run(t.Context(), k)
		if want := status == 200; (r.Status == plan.Succeeded) != want || want && string(r.Output) != `{"status":200,"body":null}` {
			t.Errorf("%v, output %s", r.Status, r.Output)
		}
		_, text := logged(t, k)
		for _, s := range []string{inFile, "to ken", "to+ken", "to%20ken", "secret/param", "secret%2Fparam"} {
			if strings.Contains(text+r.Detail, s) {
				t.Errorf("%d: %q is in %s, or in %s", status, s, text, r.Detail)
			}
		}
		if !strings.Contains(text, "***") {
			t.Errorf("nothing is masked in %s", text)
		}
	}
}

// A body that is cut in a secret holds no secret as a whole: what there is of it is dropped.
func TestASecretThatABodyIsCutInIsNotSeen(t *testing.T) {
	const key = "s3cr3t-of-a-header-0123456789"
	t.Setenv("HTTP_TEST_TOKEN", key)
	for name, test := range map[string]struct {
		status, before int
		ends           bool // before its length
	}{
		"too long":              {200, mostBody - 20, false},
		"ended early":           {200, 10, true},
		"a refusal ended early": {400, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			at := receive(t, func(w http.ResponseWriter, r *http.Request) {
				body := strings.Repeat("x", test.before) + r.Header.Get("Authorization")
				if w.Header().Set("Content-Length", fmt.Sprint(len(body))); test.ends {
					body = body[:test.before+20]
				}
				w.WriteHeader(test.status)
				io.WriteString(w, body)
			})
			k := task(t, object{"url": at, "headers": object{"Authorization": object{"from_env": "HTTP_TEST_TOKEN"}}})
			r := newPlugin(t).Run(t.Context(), k)
			_, text := logged(t, k)
			if said := string(r.Output) + r.Detail + text; strings.Contains(said, key[:8]) || !strings.Contains(said, "xxxxx") {
				t.Errorf("it says …%s", said[max(0, len(said)-100):])
			}
		})
	}
}

func TestASecretThatIsMissing(t *testing.T) {
	p := newPlugin(t)
	for _, c := range []struct {
		params object
		says   []string
	}{
		{object{"headers": object{"A": object{"from_env": "HTTP_TEST_NONE"}}}, []string{"headers.A", "HTTP_TEST_NONE"}},
		{object{"query": object{"q": object{"from_file": "/nowhere/key"}}}, []string{"query.q", "/nowhere/key"}},
		{object{"sign": object{"from_env": "HTTP_TEST_NONE"}}, []string{"sign", "HTTP_TEST_NONE"}},
		{object{"sign": object{"from_env": "SLUICE_STORE"}}, []string{"sign", "SLUICE_STORE"}},
	} {
		c.params["url"] = "http://127.0.0.1:1/{of_plan}"
		lacks := p.Check(task(t, c.params).Params, true)
		c.params["of_plan"] = 1
		k := task(t, c.params)
		if len(lacks) != 1 || lacks[0].Variable != c.says[0] || !strings.Contains(lacks[0].Err.Error(), c.says[1]) {
			t.Errorf("%v lacks %+v", c.params, lacks)
		}
		r := p.Run(t.Context(), k)
		if private := c.says[1] == "SLUICE_STORE"; (r.Lacks == plan.LacksMeans) == private {
			t.Errorf("%v: it lacks %q; only a secret that no node gives is not the node's fault", c.params, r.Lacks)
		}
		for _, s := range append(c.says, "n1") {
			if r.Status != plan.Failed || r.Final || !strings.Contains(r.Detail, s) {
				t.Errorf("%v: %+v; want a failure that is tried again, with %q", c.params, r, s)
			}
		}
	}
}

// TestTheSignature has the example of the reference implementation of Standard Webhooks, which also
// verifies the requests.
func TestTheSignature(t *testing.T) {
	const secret, other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "c2VjcmV0LW9mLWEtcm90YXRlZC1lbmRwb2ludA=="
	key, err := decodeKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	sign(h, [][]byte{key}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got := h.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("the signature is %s", got)
	}

	t.Setenv("HTTP_TEST_KEY", other)
	var ids []string
	at := receive(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, s := range []string{secret, other} {
			receiver, err := standardwebhooks.NewWebhook(s)
			if err == nil {
				err = receiver.Verify(body, r.Header)
			}
			if err != nil {
				t.Errorf("%s: %v: %v", s, r.Header, err)
			}
		}
		ids = append(ids, r.Header.Get("webhook-id"))
	})
	k := task(t, object{"url": at, "body": object{"a": 1}, "sign": []any{secret, object{"from_env": "HTTP_TEST_KEY"}}})
	p := newPlugin(t)
	for range 2 {
		if r := p.Run(t.Context(), k); r.Status != plan.Succeeded {
			t.Errorf("%+v", r)
		}
	}
	if want := k.ID.String(); !slices.Equal(ids, []string{want, want}) {
		t.Errorf("the ids are %v, want that of the task", ids)
	}
	t.Setenv("HTTP_TEST_KEY", "no base64")
	if r := p.Run(t.Context(), k); r.Status != plan.Failed || strings.Contains(r.Detail, "no base64") {
		t.Errorf("with a secret that is none: %+v", r)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	connections := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 1000)) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections++
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	p := newPlugin(t)
	for range 20 {
		if r := p.Run(t.Context(), task(t, object{"url": s.URL})); r.Status != plan.Succeeded {
			t.Fatalf("%+v", r)
		}
	}
	if connections != 1 {
		t.Errorf("20 requests made %d connections", connections)
	}
}

// A field arrives as it is, and nowhere but in its place.
func FuzzAFieldStaysInItsPlace(f *testing.F) {
	for _, s := range []string{"a", "", "..", "a/b", "ü €", "%2F%", "a b+c&d=e#f?g", "\x00\r\n", "@evil.example:80", "{y}", "\U0001f511"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, x, y string) {
		if !utf8.ValidString(x) || !utf8.ValidString(y) {
			return // JSON has no such text
		}
		given := map[string]json.RawMessage{}
		given["x"], _ = json.Marshal(x)
		given["y"], _ = json.Marshal(y)
		const template = "http://h.example:8080/a/{x}/b{?y}"
		read, err := readTemplate(template, &fields{given: given}, false)
		if err != nil {
			t.Fatal(err)
		}
		to, err := read.expand()
		if x == "." || x == ".." {
			if err == nil {
				t.Errorf("%q leads to %s", x, to)
			}
			return
		}
		if err != nil {
			if strings.Contains(x, "/") && strings.Contains(err.Error(), "upwards") {
				return // servers that decode too early could see it
			}
			t.Fatalf("%q, %q: %v", x, y, err)
		}
		parts := strings.Split(to.EscapedPath(), "/")
		if to.Host != "h.example:8080" || to.Fragment != "" || len(parts) != 4 {
			t.Fatalf("%q, %q: %s", x, y, to)
		}
		if got, err := url.PathUnescape(parts[2]); err != nil || got != x {
			t.Errorf("%q arrives as %q (%v)", x, got, err)
		}
		if got, err := url.ParseQuery(to.RawQuery); err != nil || got.Get("y") != y {
			t.Errorf("%q arrives as %v (%v)", y, got, err)
		}
	})
}
