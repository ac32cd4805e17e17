package v1_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// somePack is a job pack of one stage, whose worker is in its home.
func somePack(t *testing.T) string {
	t.Helper()
	p := jobpack.Pack{
		Version: 2, Prefix: "count", Worker: "w", MaxCores: 2, Stages: []jobpack.Stage{{Name: "all", Grouping: "group_all"}},
		Inputs: []jobpack.Input{{URLs: []string{"raw://a"}}, {URLs: []string{"raw://b"}}},
	}
	b, err := jobpack.Make(&p, fstest.MapFS{"w": {Data: []byte("#!/bin/sh")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// atDisco is the site below api.DiscoRoot.
func atDisco(s *site) *site {
	return &site{s.T, s.st, strings.TrimSuffix(s.url, api.Root) + api.DiscoRoot, s.api, s.end}
}

// send asks with headers, and returns the status and the answer.
func (s *site) send(method, path string, body io.Reader, headers ...string) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, body)
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		s.Fatal(err)
	}
	return a.StatusCode, strings.TrimSpace(string(text))
}

// asksDisco calls the operations of api.DiscoRoot, and those for job packs.
func asksDisco(r *reading) {
	r.Helper()
	pack := somePack(r.T)
	p := plan.PlanID{ID: plan.NewID(time.Now())}
	r.must("PUT", "/plans/"+p.String(), `{"name": "packed", "size": 1}`, nil)
	r.get("put-pack", "/plans/"+p.String()+"/pack", pack, 204)
	r.get("put-pack", "/plans/"+plan.NewID(time.Now()).String()+"/pack", pack, 404)
	r.get("submit-plan", "/plans", pack, 201)
	r.get("submit-plan", "/plans?check=true", pack, 200)
	r.get("submit-plan", "/plans", pack[:200], 422)
	r.get("submit-plan", "/plans?param=A%3Db", pack, 422)
	d := &reading{atDisco(r.site), r.ops, r.answered}
	d.get("disco-new-job", "/job/new", pack, 200)
	d.get("disco-new-job", "/job/new", pack[:200], 200)
	d.get("disco-get-results", "/ctrl/get_results", `[0, ["count@5"]]`, 200)
	d.get("disco-get-results", "/ctrl/get_results", `{}`, 422)
}

func TestAJobPackIsKnownByItsFirstBytes(t *testing.T) {
	s := serve(t)
	pack := somePack(t)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, pack)
	_ = z.Close()
	for kind, headers := range map[string][]string{
		"none": nil, "YAML": {"Content-Type", "application/yaml"}, "an image": {"Content-Type", "image/jpeg"}, "a form": {"Content-Type", "multipart/form-data; boundary=x"},
		"gzip": {"Content-Encoding", "gzip"},
	} {
		body := pack
		if kind == "gzip" {
			body = zipped.String()
		}
		status, text := s.send("POST", "/plans", strings.NewReader(body), append(headers, "Idempotency-Key", kind)...)
		var made api.Submitted
		if err := json.Unmarshal([]byte(text), &made); err != nil || status != 201 || made.Plan.Name != "count" {
			t.Fatalf("%s: %d %s, %v", kind, status, text, err)
		}
		r, _, err := s.st.(store.Packs).OpenPack(t.Context(), made.Plan.ID)
		if err != nil {
			t.Fatal(err)
		}
		if kept, err := io.ReadAll(r); string(kept) != pack || err != nil {
			t.Errorf("%s: a pack of %d bytes is kept, %v", kind, len(kept), err)
		}
		if status, text := s.send("POST", "/plans", strings.NewReader(body), append(headers, "Idempotency-Key", kind)...); status != 200 || !strings.Contains(text, made.Plan.ID.String()) {
			t.Errorf("%s, again: %d %s", kind, status, text)
		}
	}
	plans := func() int {
		all, err := s.st.Plans(t.Context(), store.PlanQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := plans()
	large := func() io.Reader { // of 257 MiB
		return io.MultiReader(strings.NewReader(pack), io.LimitReader(zeros{}, 257<<20-int64(len(pack))))
	}
	for _, site := range []*site{s, atDisco(s)} {
		path := "/plans"
		if site != s {
			path = "/job/new"
		}
		if status, text := site.send("POST", path, large()); status != 413 || !strings.Contains(text, "the job pack has more than 256 MiB; let workers fetch large data by URLs") {
			t.Errorf("%s: a pack of 257 MiB is answered %d %s", path, status, text)
		}
	}
	if now := plans(); now != before {
		t.Errorf("%d plans are kept of packs that were refused", now-before)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestDiscosOwnSubmittersSubmit(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		d := atDisco(s)
		for _, header := range []string{"Origin", "Sec-Fetch-Site"} {
			if status, text := d.send("POST", "/job/new", strings.NewReader(somePack(t)), header, "same-origin"); status != 403 || !strings.Contains(text, "a page in a browser sent this request") {
				t.Errorf("with %s: %d %s", header, status, text)
			}
		}
		if status, text := d.send("POST", "/job/new", strings.NewReader("plan: x"), "Content-Type", "image/jpeg"); status != 200 || !strings.HasPrefix(text, `["error","body: job pack: header: `) {
			t.Errorf("no pack: %d %s", status, text)
		}
		status, text := d.send("POST", "/job/new", strings.NewReader(somePack(t)), "Content-Type", "image/jpeg")
		var made [2]string
		if err := json.Unmarshal([]byte(text), &made); err != nil || status != 200 || made[0] != "ok" || !strings.HasPrefix(made[1], "count@") {
			t.Fatalf("%d %s, %v", status, text, err)
		}
		results := func(wait int, names ...string) string {
			t.Helper()
			list, _ := json.Marshal(names)
			status, text := d.send("POST", "/ctrl/get_results", strings.NewReader(fmt.Sprintf("[%d,%s]", wait, list)), "Content-Type", "image/jpeg")
			if status != 200 {
				t.Fatalf("%d %s", status, text)
			}
			return text
		}
		unknown := "count@" + plan.NewID(time.Now()).String()
		if got, want := results(0, made[1], unknown, "x"+made[1]), fmt.Sprintf(`[["%s",["active",[]]],["%s",["unknown job",[]]],["x%s",["unknown job",[]]]]`, made[1], unknown, made[1]); got != want {
			t.Errorf("while it runs: %s, want %s", got, want)
		}
		if got := results(50, made[1]); got != `[["`+made[1]+`",["active",[]]]]` {
			t.Errorf("after 50 ms: %s", got)
		}
		ended := make(chan string)
		go func() { ended <- results(60_000, made[1]) }()
		n := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Threads: 1, Lease: time.Minute, Plugins: []string{"disco"}}
		no := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		no(s.st.Register(t.Context(), n))
		turn := func(e ...protocol.Ending) protocol.Turned {
			t.Helper()
			did, err := s.st.Turn(t.Context(), protocol.Turn{Instance: n.ID, Ended: e, Slots: 1, Start: true, Budget: 100, Plugins: n.Plugins})
			no(err)
			return did
		}
		did := turn()
		if len(did.Claimed) != 1 {
			t.Fatalf("claimed %+v", did.Claimed)
		}
		turn(protocol.Ending{Claim: did.Claimed[0].Claim, Status: plan.Succeeded, Output: json.RawMessage(`[[0,"disco://n/a",1],[1,"disco://n/b",2]]`)})
		if got, want := <-ended, `[["`+made[1]+`",["ready",[["disco://n/a"],["disco://n/b"]]]]]`; got != want {
			t.Errorf("as it ended: %s, want %s", got, want)
		}
		_, text = d.send("POST", "/job/new", strings.NewReader(somePack(t)))
		no(json.Unmarshal([]byte(text), &made))
		no(s.st.CancelPlan(t.Context(), plan.PlanID{ID: jobpack.JobID(made[1])}, false))
		if _, err := s.st.Sweep(t.Context(), protocol.Sweep{Instance: n.ID}); err != nil {
			t.Fatal(err)
		}
		if got := results(60_000, made[1]); got != `[["`+made[1]+`",["dead",[]]]]` {
			t.Errorf("a job that was cancelled: %s", got)
		}
	})
}
