// Oste is the case study of the Open Scheduled Task Engine. A catalogue schedules that each song is
// published again at the instants when its rights change, in two territories. The receiver fails now and
// then, so that there are dead letters. Once it is mended, they are queued again by a filter. In the end
// the two log rollers of the solution empty the store into the files of two archives.
//
//	go run ./examples/oste bin/sluice
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const songs = 6 // in each territory

// The ids of the solution and of its type of activities.
const solution, republish = "myspace.music", "myspace.music.republish"

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
	done, dead := newArchive(filepath.Join(dir, "successes")), newArchive(filepath.Join(dir, "dead-letters"))
	done.failing = true
	mux := http.NewServeMux()
	mux.Handle("/song/", &catalogue)
	mux.Handle("/successes", done)
	mux.Handle("/dead-letters", dead)
	to := httptest.NewServer(mux)
	defer to.Close()
	logs, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer logs.Close()
	for _, args := range [][]string{
		{"serve", "--store", store, "--listen", "unix:" + socket, "--allow-net", "127.0.0.1"},
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
	if err := e.again(&catalogue); err != nil {
		return err
	}
	return e.roll(sluice, store, done, dead)
}

// again queues dead letters again once the receiver is mended.
func (e *engine) again(catalogue *receiver) error {
	failed, err := e.list("failed-activities")
	if err != nil {
		return err
	}
	fmt.Println("\nDead letters:")
	for _, a := range failed {
		fmt.Printf("  song %d in %s, after %d tries: %s\n", a.Parameter.SongID, a.Parameter.Territory, a.Tries, a.Detail)
	}

	catalogue.mend()
	var queued struct{ Changed int }
	if err := e.ask("POST", "/failed-activities/retry?type="+republish+"&reason=404,503", nil, &queued); err != nil {
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
	succeeded, err := e.list("successful-activities")
	if err != nil {
		return err
	}
	once := catalogue.once()
	fmt.Printf("\n%d activities succeeded, %d are dead letters, and the receiver accepted %d, each once.\n", len(succeeded), len(left), once)
	if want := songs*len(territories) - len(left); len(failed) != 6 || queued.Changed != 4 || len(left) != 2 || len(succeeded) != want || once != want {
		return errors.New("there should be 6 dead letters, of which 4 are queued again and succeed")
	}
	return nil
}

// roll hands over all that has finished, and checks that each archive has it once. A period is a day at
// least, so that the queue is told to keep what finished for a moment only.
func (e *engine) roll(sluice, store string, done, dead *archive) error {
	succeeded, err := e.list("successful-activities")
	if err != nil {
		return err
	}
	failed, err := e.list("failed-activities")
	if err != nil {
		return err
	}
	if out, err := exec.Command(sluice, "queue", "set", republish, "--keep", "1ms", "--store", store).CombinedOutput(); err != nil {
		return fmt.Errorf("queue set: %w: %s", err, out)
	}
	fmt.Println("\nTheir periods are over, and the log rollers hand them over; one archive fails once:")
	err = e.wait("the hand-over", func() (bool, error) {
		out, failed := exec.Command(sluice, "oste", "roll", solution, "--store", store, "--allow-net", "127.0.0.1").CombinedOutput()
		fmt.Printf("  $ sluice oste roll %s\n    %s\n", solution, strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "\n    "))
		return failed == nil, nil // a receiver that fails is asked again
	})
	if err != nil {
		return err
	}
	for _, kind := range []string{"successful-activities", "failed-activities"} {
		left, err := e.list(kind)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d %s are left", len(left), kind)
		}
		if err != nil {
			return err
		}
	}
	if err := done.hasOnce(succeeded); err != nil {
		return err
	}
	if err := dead.hasOnce(failed); err != nil {
		return err
	}
	fmt.Printf("\nThe store is empty. One archive has %d successes and the other %d dead letters, each once.\n", len(succeeded), len(failed))
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
		{"/solutions", resource{
			"Company": "myspace", "Name": "music", "SuccessPeriod": 1, "SuccessUri": url + "/successes",
			"DeadLetterPeriod": 30, "DeadLetterUri": url + "/dead-letters",
		}},
		{"/activity-types", resource{
			"Solution": solution, "Name": "republish", "Verb": "POST", "UriPattern": url + "/song/{SongId}/republish", "Retries": 1,
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
				"Date": at, "ActivityType": republish, "Parameter": parameter{song, territory},
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
	ID        string
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
// songs 3 and 4 fail until it is mended. Song 5 was withdrawn.
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
	case p.SongID == 5:
		status = http.StatusGone
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

// An archive receives the batches of a log roller, and writes each activity as a line of a file. A batch
// that comes again has the id of the first time, and is not written twice.
type archive struct {
	file    string
	mu      sync.Mutex
	failing bool // once, after it has written a batch
	batches map[string]bool
}

func newArchive(file string) *archive { return &archive{file: file, batches: map[string]bool{}} }

// ServeHTTP implements http.Handler.
func (a *archive) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := q.Header.Get("Idempotency-Key")
	if !a.batches[id] {
		if err := a.write(q.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		a.batches[id] = true
	}
	if a.failing {
		a.failing = false
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// write adds the activities of a batch to the file.
func (a *archive) write(batch io.Reader) error {
	var b struct{ Activities []json.RawMessage }
	if err := json.NewDecoder(batch).Decode(&b); err != nil {
		return err
	}
	var lines []byte
	for _, activity := range b.Activities {
		lines = append(append(lines, activity...), '\n')
	}
	f, err := os.OpenFile(a.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Close())
}

// hasOnce checks that the file has exactly these activities, each once and with its log.
func (a *archive) hasOnce(want []activity) error {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return err
	}
	times := map[string]int{}
	for line := range bytes.Lines(text) {
		var is struct {
			ID  string            `json:"id"`
			Log []json.RawMessage `json:"log_details"`
		}
		if err := json.Unmarshal(line, &is); err != nil {
			return err
		}
		if times[is.ID]++; len(is.Log) == 0 {
			return fmt.Errorf("%s has activity %s without its log", a.file, is.ID)
		}
	}
	for _, w := range want {
		if times[w.ID] != 1 {
			return fmt.Errorf("%s has activity %s %d times", a.file, w.ID, times[w.ID])
		}
	}
	if len(times) != len(want) {
		return fmt.Errorf("%s has %d activities, and should have %d", a.file, len(times), len(want))
	}
	return nil
}
