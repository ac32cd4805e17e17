//go:build unix

package disco

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/seed-1177d267/sluice/internal/hosttest"
	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

func TestMain(m *testing.M) {
	runner.GuardMain()
	hosttest.Main()
	os.Exit(m.Run())
}

func opened(t *testing.T) *Data {
	t.Helper()
	d, err := OpenData(t.TempDir(), "here", "store 1")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// home returns the home of a job with files in it.
func home(t *testing.T, d *Data, job string, files ...string) *Home {
	t.Helper()
	h, err := d.Open(job, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path := filepath.Join(h.Path, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func TestAHomeIsMadeOnce(t *testing.T) {
	d := opened(t)
	pack := filepath.Join(t.TempDir(), "pack")
	if err := os.WriteFile(pack, []byte("the pack"), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			h, err := d.Open("job@1", pack)
			if err != nil {
				t.Error(err)
				return
			}
			defer h.Close()
			text, err := os.ReadFile(h.JobFile())
			if err != nil || string(text) != "the pack" {
				t.Errorf("the job pack is %q, %v", text, err)
			}
			f, err := os.OpenFile(filepath.Join(h.Path, "mark"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintln(f)
			f.Close()
		})
	}
	wg.Wait()
	marks, err := os.ReadFile(filepath.Join(d.Dir, "here", filepath.FromSlash(jobPath("job@1")), "mark"))
	if err != nil || len(marks) != 20 {
		t.Errorf("the home has %d marks of 20 tasks, %v", len(marks), err)
	}
}

func TestAHomeIsUnpackedFromAJobPack(t *testing.T) {
	d := opened(t)
	p := jobpack.Pack{Version: 1, Prefix: "x", Worker: "bin/w", Stages: []jobpack.Stage{{Name: "reduce", Grouping: "group_all"}}}
	b, err := jobpack.Make(&p, fstest.MapFS{"bin/w": {Data: []byte("#!")}, "a": {}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pack := filepath.Join(t.TempDir(), "pack")
	if err := os.WriteFile(pack, b, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := d.OpenPacked("job@1", pack)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if worker, err := CheckWorker("bin/w", h.Path); err != nil || worker != filepath.Join(h.Path, "bin", "w") {
		t.Errorf("the worker is %s, %v", worker, err)
	}
	if text, err := os.ReadFile(h.JobFile()); !bytes.Equal(text, b) || err != nil {
		t.Errorf("the job pack of the home has %d bytes, %v", len(text), err)
	}
	stored := func(sum string, b []byte, err error) error {
		h, err := d.OpenStored("job@3", sum, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), err })
		if err == nil {
			h.Close()
		}
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(b))
	if err := stored(sum, nil, plan.ErrNotFound); !errors.Is(err, plan.ErrNotFound) {
		t.Errorf("a pack that the store does not have: %v", err)
	}
	if err := stored(sum, b[1:], nil); err == nil || !strings.Contains(err.Error(), "submit the job again") {
		t.Errorf("another pack: %v", err)
	}
	if err := stored(sum, b, nil); err != nil {
		t.Errorf("a pack in the store: %v", err)
	}
	if err := stored(sum, nil, plan.ErrNotFound); err != nil {
		t.Errorf("the home that it was unpacked into: %v", err)
	}
	if err := os.WriteFile(pack, b[:len(b)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.OpenPacked("job@2", pack); err == nil || !strings.Contains(err.Error(), "pack\": job pack: header: jobdata begins at byte ") {
		t.Errorf("a cut pack: %v", err)
	}
	if left, err := filepath.Glob(d.own("new-*")); err != nil || left != nil {
		t.Errorf("%v is left of it, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(d.Dir, d.Host, filepath.FromSlash(jobPath("job@2")))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has a home: %v", err)
	}
}

func TestAFolderOfAnotherStoreIsRefused(t *testing.T) {
	d := opened(t)
	if _, err := OpenData(d.Dir, "there", "store 1"); err != nil {
		t.Errorf("another node of the store: %v", err)
	}
	if _, err := OpenData(d.Dir, "here", "store 2"); err == nil || !strings.Contains(err.Error(), "another store, store 1") {
		t.Errorf("a node of another store: %v", err)
	}
	for _, name := range []string{"", ".x", "a/b", "a b"} {
		if _, err := OpenData(t.TempDir(), name, "store"); err == nil {
			t.Errorf("the host %q was taken", name)
		}
	}
}

func TestNamesOfJobs(t *testing.T) {
	for name, want := range map[string]string{"nightly": "nightly@1", "a b/ü": "a_b__@1", ".x": "_.x@1", "": "_@1"} {
		if got := JobName(name, "1"); got != want {
			t.Errorf("the job of %q is %q, want %q", name, got, want)
		}
	}
}

func TestOutputs(t *testing.T) {
	d := opened(t)
	h := home(t, d, "job@1", "out", "sub/a:b", ".hidden", "with space")
	defer h.Close()
	secret := filepath.Join(d.Dir, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(h.Path, "link")); err != nil {
		t.Fatal(err)
	}
	at := "disco://here/disco/here/" + jobPath("job@1") + "/"
	for _, c := range []struct{ location, want, wrong string }{
		{"out", `[[7,"` + at + `out",14]]`, ""},
		{"./sub//a:b", `[[7,"` + at + `sub/a:b",18]]`, ""},
		{"with space", `[[7,"` + at + `with%20space",21]]`, ""},
		{at + "out", `[[7,"` + at + `out",14]]`, ""},
		{at + "nosuch", "", "no such file"},
		{"http://a/b", `[[7,"http://a/b",3]]`, ""},
		{"disco://there/disco/x", `[[7,"disco://there/disco/x",3]]`, ""},
		{"/etc/passwd", "", "absolute path"},
		{"../secret", "", "leaves the job home"},
		{"sub/../../secret", "", "leaves the job home"},
		{"link", "", "name a file in the job home"},
		{".hidden", "", "begins with a dot"},
		{"sub", "", "it is no file"},
		{"nosuch", "", "no such file"},
		{"", "", "leaves the job home"},
	} {
		o := &outputs{home: h, index: "index/x"}
		err := o.Output(7, c.location, 3)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%q: %v, want %s", c.location, err, c.wrong)
			}
			continue
		}
		got, _ := json.Marshal(o.list)
		if err != nil || string(got) != c.want {
			t.Errorf("%q: %s, %v, want %s", c.location, got, err, c.want)
		}
	}
}

// get asks the server of the folder.
func get(t *testing.T, d *Data, method, host, url string, header ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, "http://"+host+url, nil)
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(body)
}

func TestOnlyOutputsOfTasksThatAreDoneAreServed(t *testing.T) {
	d := opened(t)
	h := home(t, d, "job@1", "out", "other", "sub/a:b", "with space")
	defer h.Close()
	base := "/disco/here/" + jobPath("job@1") + "/"
	o := &outputs{home: h, index: "index/x"}
	for _, name := range []string{"out", "sub/a:b", "with space"} {
		if err := o.Output(0, name, 0); err != nil {
			t.Fatal(err)
		}
	}
	if code, _ := get(t, d, "GET", "here:8989", base+"out"); code != http.StatusNotFound {
		t.Errorf("before the task is done: %d", code)
	}
	if err := o.Done(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, host, url string
		header            []string
		code              int
		body              string
	}{
		{"GET", "here:8989", base + "out", nil, 200, "content of out"},
		{"GET", "127.0.0.1:8989", base + "sub/a:b", nil, 200, "content of sub/a:b"},
		{"GET", "[::1]:8989", base + "with%20space", nil, 200, "content of with space"},
		{"HEAD", "localhost", base + "out", nil, 200, ""},
		{"GET", "here", base + "out", []string{"Range", "bytes=8-9"}, 206, "of"},
		{"GET", "here", base + "out", []string{"Range", "bytes=99-"}, 416, "invalid range: failed to overlap\n"},
		{"GET", "evil.example.com", base + "out", nil, 421, "this server has another name; use that of --disco-host\n"},
		{"POST", "here", base + "out", nil, 405, "files are only read here\n"},
		{"GET", "here", base + "other", nil, 404, "404 page not found\n"},
		{"GET", "here", base + "sub", nil, 404, "404 page not found\n"},
		{"GET", "here", base, nil, 404, "404 page not found\n"},
		{"GET", "here", base + "jobfile", nil, 404, "404 page not found\n"},
		{"GET", "here", base + "sub/../out", nil, 404, "404 page not found\n"},
		{"GET", "here", base + "../../../../.sluice/store", nil, 404, "404 page not found\n"},
		{"GET", "here", "/disco/there/" + jobPath("job@1") + "/out", nil, 404, "404 page not found\n"},
		{"GET", "here", "/disco/here/00/job@1/out", nil, 404, "404 page not found\n"},
		{"GET", "here", "/", nil, 404, "404 page not found\n"},
	} {
		if code, body := get(t, d, c.method, c.host, c.url, c.header...); code != c.code || body != c.body {
			t.Errorf("%s %s%s %v: %d %q, want %d %q", c.method, c.host, c.url, c.header, code, body, c.code, c.body)
		}
	}
	// A worker may make a link of what it named.
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(h.Path, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.Path, "out")); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, d, "GET", "here", base+"out"); code != http.StatusNotFound {
		t.Errorf("a link that leads out: %d", code)
	}
}

// A worker may change what it named. An open of a named pipe would wait for its writer.
func TestAnOutputThatIsNoFileAnyMore(t *testing.T) {
	d := opened(t)
	h := home(t, d, "job@1", "out", "grows")
	defer h.Close()
	o := &outputs{home: h, index: "index/x"}
	for _, name := range []string{"out", "grows"} {
		if err := o.Output(0, name, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.Path, "grows"), []byte("it has grown since"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.Done(); err != nil || o.list[1].Size != 18 {
		t.Errorf("done: %v, with %v", err, o.list)
	}
	pipe := filepath.Join(h.Path, "out")
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip("no mkfifo: ", err)
	}
	if code, _ := get(t, d, "GET", "here", "/disco/here/"+jobPath("job@1")+"/out"); code != http.StatusNotFound {
		t.Errorf("a named pipe is served: %d", code)
	}
	if err := o.Done(); err == nil || !strings.Contains(err.Error(), `flush "out" to the disk: it is no file`) {
		t.Errorf("done with a named pipe: %v", err)
	}
	if _, err := d.Open("job@2", pipe); err == nil || !strings.Contains(err.Error(), "is no file; name the job pack") {
		t.Errorf("a job pack that is a named pipe: %v", err)
	}
}

func TestManyOutputsAreInAnIndex(t *testing.T) {
	d := opened(t)
	h := home(t, d, "job@1", "out", "a b%")
	defer h.Close()
	o := &outputs{home: h, index: "index/map-1"}
	for i := range 51 {
		if err := o.Output(int64(i%2), "out", 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, location := range []string{"a b%", "http://x/a b%20c"} {
		if err := o.Output(3, location, 7); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Done(); err != nil {
		t.Fatal(err)
	}
	at := "://here/disco/here/" + jobPath("job@1") + "/"
	got, _ := json.Marshal(o.list)
	if want := fmt.Sprintf(`[{"labels":[[0,364],[1,350],[3,22]],"url":"dir%sindex/map-1.results"}]`, at); string(got) != want {
		t.Errorf("the outputs are %s, want %s", got, want)
	}
	code, body := get(t, d, "GET", "here", "/disco/here/"+jobPath("job@1")+"/index/map-1.results")
	if lines := strings.Split(body, "\n"); code != 200 || len(lines) != 54 || lines[1] != "1 disco"+at+"out 14" ||
		lines[51] != "3 disco"+at+"a%20b%25 15" || lines[52] != "3 http://x/a%20b%20c 7" {
		t.Errorf("the index is %d, %.200q", code, body)
	}
}

func TestHomesOfJobsThatAreGoneAreDeleted(t *testing.T) {
	d := opened(t)
	names := make([]string, 30)
	for i := range names {
		names[i] = fmt.Sprintf("sub%d/file%d", i%3, i)
	}
	home(t, d, "old@1", names...).Close()
	home(t, d, "new@2", "out").Close()
	used := home(t, d, "used@3", "out")
	gone := func(job string) (bool, error) { return job != "new@2", nil }
	there := func(job string) bool {
		_, err := os.Stat(filepath.Join(d.Dir, "here", filepath.FromSlash(jobPath(job))))
		return err == nil
	}
	calls := 0
	for clean := false; !clean; calls++ {
		var err error
		if clean, err = d.Clean(t.Context(), 10, gone); err != nil || calls > 20 {
			t.Fatalf("after %d calls: %v", calls, err)
		}
	}
	if there("old@1") || !there("new@2") || !there("used@3") || calls < 4 {
		t.Errorf("after %d calls old is there: %v, new: %v, used: %v", calls, there("old@1"), there("new@2"), there("used@3"))
	}
	used.Close()
	if _, err := d.Clean(t.Context(), 100, gone); err != nil || there("used@3") {
		t.Errorf("a home that was used: %v", err)
	}
	left, err := os.ReadDir(d.own())
	if err != nil || len(left) != 4 { // lock, store, homes, named
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestParams(t *testing.T) {
	for _, c := range []struct{ params, key, wrong string }{
		{`{"worker":"/bin/true"}`, "", ""},
		{`{"worker":"x","dir":"/a"}`, "", ""},
		{`{"worker":"/x","input":[]}`, "input", "it has worker, inputs, env, jobfile and pack"},
		{`{"worker":"x"}`, "worker", "is relative"},
		{`{"worker":"x","pack":"/a/b"}`, "", ""},
		{`{"worker":"x","pack":"b"}`, "pack", "is relative"},
		{`{"worker":"x","pack":"sha256:0"}`, "", ""},
		{`{"worker":"x","pack":"/a/b","jobfile":"/a/b"}`, "jobfile", "exclude each other"},
		{`{}`, "worker", "there is none"},
		{`{"worker":3}`, "worker", "3 is not a text"},
		{`{"worker":"/x","inputs":[{"label":0,"urls":["http://a/b","disco://c/d"]},[1,"dir://h/x",5],[[[2,"raw://",0]],[]],[{"labels":[[0,1]],"url":"dir://h/x"}]]}`, "", ""},
		{`{"worker":"/x","inputs":[{"urls":["gopher://a"]}]}`, "inputs", "input 0: replica \"gopher://a\": its scheme is unknown"},
		{`{"worker":"/x","inputs":[{"urls":["tag://a"]}]}`, "inputs", "there is no DDFS here"},
		{`{"worker":"/x","inputs":[{"urls":["ddfs:a"]}]}`, "inputs", "there is no DDFS here"},
		{`{"worker":"/x","inputs":[{"urls":["raw://x"]},{"label":1}]}`, "inputs", "input 1: an input without replicas"},
		{`{"worker":"/x","inputs":[{"label":-1,"urls":["http://a/b"]}]}`, "inputs", "label -1: a label is an integer from 0 to 2147483647"},
		{`{"worker":"/x","inputs":[{"label":2147483648,"urls":["http://a/b"]}]}`, "inputs", "label 2147483648"},
		{`{"worker":"/x","inputs":[{"label":"x","urls":["http://a/b"]}]}`, "inputs", `label "x"`},
		{`{"worker":"/x","inputs":[{"lable":0,"urls":["http://a/b"]}]}`, "inputs", "lable"},
		{`{"worker":"/x","inputs":"http://a/b"}`, "inputs", "is no list of inputs"},
		{`{"worker":"/x","inputs":["http://a/b"]}`, "inputs", "is no list of inputs"},
		{`{"worker":"/x","inputs":["${{ item }}"]}`, "", ""},
		{`{"worker":"/x","inputs":"${{ needs.map }}"}`, "", ""},
		{`{"worker":"/x","inputs":[{"label":-2,"urls":["${{ item }}"]}]}`, "inputs", "label -2"},
		{`{"worker":"/x","env":{"A":"b","C":{"from_env":"X"}}}`, "", ""},
		{`{"worker":"/x\u0000"}`, "worker", "worker: the value has a NUL byte"},
		{`{"worker":"/x","env":{"A":"b","C":"${{ item }}\u0000"}}`, "env", "env: the value C has a NUL byte"},
		{`{"worker":"/x","env":{"SLUICE_X":"b"}}`, "env", "Sluice's own"},
		{`{"worker":"/x","env":{"A":[1]}}`, "env", "is not a text"},
	} {
		key, err := (*Plugin)(nil).Refuse(json.RawMessage(c.params), nil)
		if key != c.key || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q, %v; want %q, %s", c.params, key, err, c.key, c.wrong)
		}
	}
	lacks := New(Options{}).Check(json.RawMessage(`{"worker":"nosuch","dir":"/tmp"}`), true)
	if len(lacks) != 1 || !strings.Contains(lacks[0].Err.Error(), `worker "/tmp/nosuch" is not there`) {
		t.Errorf("a missing worker is %+v", lacks)
	}
}

// attempted runs a case as a task of the plugin.
func attempted(t *testing.T, c *hosttest.Case) (plan.Result, *plugins.Log) {
	t.Helper()
	d := opened(t)
	p := New(Options{Times: c.Settings(), Grace: 1})
	p.Settle(func() (Place, error) { return Place{Data: d, Port: 8989}, nil })
	worker, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"SECRET": "s3cret"}
	for _, v := range hosttest.Environ(c.Number, filepath.Join(t.TempDir(), "report")) {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	params, err := json.Marshal(map[string]any{"worker": worker, "env": env})
	if err != nil {
		t.Fatal(err)
	}
	log := new(plugins.Log)
	id := plan.TaskID{ID: plan.ID{11: 5}}
	return p.Run(t.Context(), &plugins.Task{ID: id, Plan: plan.PlanID{ID: plan.ID{1}}, PlanName: "nightly#3", Name: "map[7]", Attempt: 1, Params: params, Log: log}), log
}

func TestHowATaskEnds(t *testing.T) {
	byNumber := map[int]*hosttest.Case{}
	cases := hosttest.Cases()
	for i := range cases {
		byNumber[cases[i].Number] = &cases[i]
	}
	for _, c := range []struct {
		number int
		status plan.Status
		fatal  bool
		detail string
		output string
	}{
		{65, plan.Succeeded, false, "", `[[3,"disco://here/disco/here/` + jobPath(JobName("nightly", plan.ID{1}.String())) + `/sub/out",5]]`},
		{1, plan.Succeeded, false, "", "[]"},
		{73, plan.Failed, false, "no disk\nleft: ä", ""},
		{74, plan.Failed, true, "broken input", ""},
		{31, plan.Failed, true, "Invalid worker version", ""},
		{77, plan.Failed, false, "exit status 3: Worker died without output", ""},
		{78, plan.Failed, false, "ended by SIGKILL: Worker died without output", ""},
		{17, plan.Failed, false, "Traceback, then gone", ""},
	} {
		r, _ := attempted(t, byNumber[c.number])
		if r.Status != c.status || r.Fatal != c.fatal || !strings.Contains(r.Detail, c.detail) || string(r.Output) != c.output {
			t.Errorf("case %d: %+v, want %+v", c.number, r, c)
		}
	}
}

func TestTaskIDs(t *testing.T) {
	seen := map[int64]bool{}
	ids := plan.NewIDs(plan.NewID(plan.ID{}.Time()).Time(), 1000)
	for range 1000 {
		n := taskID(plan.TaskID{ID: ids.Next()})
		if seen[n] || n < 0 || n >= 1<<53 {
			t.Errorf("the id %d", n)
		}
		seen[n] = true
	}
}

func TestARunThatIsCancelled(t *testing.T) {
	d := opened(t)
	h := home(t, d, "job@1")
	defer h.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(plugins.ErrCancelled)
	o, err := (&Attempt{Worker: "/bin/cat", Env: os.Environ(), Home: h, Inputs: host.NewList()}).Run(ctx)
	if err != nil || o.End != host.Error || o.Detail != plugins.ErrCancelled.Error() {
		t.Errorf("it ended as %+v, %v", o, err)
	}
}

func TestTheRemedyOfALostInputIsTheTaskThatMadeIt(t *testing.T) {
	s := settings{inputs: []host.Input{{Replicas: []string{"disco://a/x"}}, {Replicas: []string{"disco://a/y", "disco://b/y"}}, {Replicas: []string{"raw://z"}}}}
	task := &plugins.Task{PlanName: "count#3", Params: json.RawMessage(`{"needs":{"map":[[[0,"disco://a/x",1]]],"more":[[1,"disco://b/y",1]],"other":[]}}`)}
	for _, c := range []struct {
		lost []int
		want string
	}{
		{nil, ""},
		{[]int{2}, ""},
		{[]int{0}, "; make them again: sluice plan retry count#3 map --downstream"},
		{[]int{0, 1, 2}, "; make them again: sluice plan retry count#3 map more --downstream"},
	} {
		if got := s.remedy(task, c.lost); got != c.want {
			t.Errorf("of %v: %q, want %q", c.lost, got, c.want)
		}
	}
}
