// Oste is the case study of the Open Scheduled Task Engine. A catalogue schedules that each song is
// published again at the instants when its rights change, in two territories. The receiver fails now and
// then, so that there are dead letters. Once it is mended, they are queued again by a filter.
//
//	go run ./examples/oste bin/sluice
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const songs = 6 // in each territory

var territories = map[string]string{"DE": "Europe/Berlin", "US": "America/Los_Angeles"}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: oste SLUICE")
	}
	dir, err := os.MkdirTemp("", "oste")
	if err != nil {
		log.Fatal(err)
	}
	if err := run(os.Args[1], dir); err != nil {
		log.Fatalf("%v; the store and the log are in %s", err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		log.Fatal(err)
	}
}

// run runs the demo in a folder.
func run(sluice, dir string) error {
	store, socket := "sqlite:"+filepath.Join(dir, "sluice.db"), filepath.Join(dir, "s")
	var catalogue receiver
	to := httptest.NewServer(&catalogue)
	defer to.Close()
	logs, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer logs.Close()
	for _, args := range [][]string{
		{"serve", "--store", store, "--listen", "unix:" + socket},
		{"worker", "--store", store, "--allow-net", "127.0.0.1"},
	} {
		stop, err := start(sluice, logs, args...)
		if err != nil {
			return err
		}
		defer stop()
	}
	e := engineAt(socket)
	if err := e.wait("the server", func() (bool, error) { return e.ask("GET", "/companies", nil, nil) == nil, nil }); err != nil {
		return err
	}
	if err := e.define(to.URL); err != nil {
		return err
	}
	if err := e.schedule(); err != nil {
		return err
	}
	if err := e.idle(); err != nil {
		return err
	}
	dead, err := e.list("failed-activities")
	if err != nil {
		return err
	}
	fmt.Println("\nDead letters:")
	for _, a := range dead {
		fmt.Printf("  song %d in %s, after %d tries: %s\n", a.Parameter.SongID, a.Parameter.Territory, a.Tries, a.Detail)
	}

	catalogue.mend()
	var queued struct{ Changed int }
	if err := e.ask("POST", "/failed-activities/retry?type=myspace.music.republish&reason=404,503", nil, &queued); err != nil {
		return err
	}
	fmt.Printf("\nThe receiver is mended, and %d are queued again by a filter:\n", queued.Changed)
	if err := e.idle(); err != nil {
		return err
	}
	left, err := e.list("failed-activities")
	if err != nil {
		return err
	}
	done, err := e.list("successful-activities")
	if err != nil {
		return err
	}
	once := catalogue.once()
	fmt.Printf("\n%d activities succeeded, %d are dead letters, and the receiver accepted %d, each once.\n", len(done), len(left), once)
	if want := songs * len(territories); len(dead) != 4 || queued.Changed != len(dead) || len(left) != 0 || len(done) != want || once != want {
		return fmt.Errorf("there were %d dead letters, and there should be 4 of %d activities, and then none", len(dead), want)
	}
	return nil
}

// start starts a process of Sluice. stop ends it.
func start(sluice string, logs *os.File, args ...string) (stop func(), err error) {
	cmd := exec.Command(sluice, args...)
	cmd.Stderr = logs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}, nil
}

// An engine is the routes of a server.
type engine struct{ client *http.Client }

func engineAt(socket string) *engine {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &engine{&http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// ask sends a resource, unless it is nil, and reads the answer into another, unless that is nil.
func (e *engine) ask(method, path string, body, into any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, "http://localhost/oste/v1"+path, sent)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// wait waits until something is there.
func (e *engine) wait(what string, there func() (bool, error)) error {
	for until := time.Now().Add(15 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if ok, err := there(); ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s took longer than 15 s", what)
}

type resource map[string]any

// define makes the company, its solution, and the type of activities.
func (e *engine) define(url string) error {
	for _, r := range []struct {
		path string
		body resource
	}{
		{"/companies", resource{"Name": "myspace", "QoSLevel": 2}},
		{"/solutions", resource{"Company": "myspace", "Name": "music"}},
		{"/activity-types", resource{
			"Solution": "myspace.music", "Name": "republish", "Verb": "POST", "UriPattern": url + "/song/{SongId}/republish", "Retries": 1,
			"ParameterExpected": "SongId, and the Territory in which its rights change", "ObjectIdRef": []string{"SongId", "Territory"},
		}},
	} {
		if err := e.ask("POST", r.path, r.body, nil); err != nil {
			return err
		}
	}
	return nil
}

// A parameter is what an activity publishes again.
type parameter struct {
	SongID    int    `json:"SongId"`
	Territory string `json:"Territory"`
}

// schedule schedules that each song is published again when its rights change.
func (e *engine) schedule() error {
	fmt.Println("Rights change, and songs are published again:")
	begin := time.Now().Truncate(time.Second).Add(2 * time.Second)
	for territory, name := range territories {
		zone, err := time.LoadLocation(name)
		if err != nil {
			return err
		}
		for song := 1; song <= songs; song++ {
			at := begin.Add(time.Duration(song) * 300 * time.Millisecond).In(zone)
			err := e.ask("POST", "/point-in-time-activities", resource{
				"Date": at, "ActivityType": "myspace.music.republish", "Parameter": parameter{song, territory},
			}, nil)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// An activity is what the demo reads of one.
type activity struct {
	Parameter parameter
	Tries     int
	Detail    string
}

func (e *engine) list(kind string) ([]activity, error) {
	var page struct{ Items []activity }
	err := e.ask("GET", "/"+kind, nil, &page)
	return page.Items, err
}

// idle waits until nothing waits.
func (e *engine) idle() error {
	return e.wait("what waits", func() (bool, error) {
		waiting, err := e.list("point-in-time-activities")
		return len(waiting) == 0, err
	})
}

// A receiver is the catalogue's cache. It fails now and then: song 2 is too early on its first try, and
// songs 3 and 4 fail until it is mended.
type receiver struct {
	mu       sync.Mutex
	mended   bool
	tries    map[string]int
	accepted map[string]int
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var p parameter
	err := json.NewDecoder(q.Body).Decode(&p)
	zone, unknown := time.LoadLocation(territories[p.Territory])
	if err != nil || unknown != nil || p.Territory == "" {
		http.Error(w, "no song", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries == nil {
		r.tries, r.accepted = map[string]int{}, map[string]int{}
	}
	key, status := q.Header.Get("Idempotency-Key"), http.StatusOK
	switch r.tries[key]++; {
	case r.mended:
	case p.SongID == 2 && r.tries[key] == 1, p.SongID == 3:
		status = http.StatusServiceUnavailable
	case p.SongID == 4:
		status = http.StatusNotFound
	}
	if status == http.StatusOK {
		r.accepted[key]++
	}
	fmt.Printf("  %s  %s %s  try %s: %d\n", time.Now().In(zone).Format("15:04:05.0 MST"), q.Method, q.URL.Path, q.Header.Get("Sluice-Attempt"), status)
	w.WriteHeader(status)
}

func (r *receiver) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mended = true
}

// once returns how many activities were accepted, if each was accepted once.
func (r *receiver) once() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.accepted {
		if n > 1 {
			return -1
		}
	}
	return len(r.accepted)
}
