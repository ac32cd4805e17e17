package dci

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// longestRecord leaves an answer that begins with its recording some of its time.
const longestRecord = answerTime / 2

// profiles adds Go's profiles to the routes, as `go tool pprof` and `go tool trace` ask for them.
// net/http/pprof also computes the difference of two profiles, which costs 150 KB of the binary.
// `go tool pprof -base` computes it from two files.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/{$}", listProfiles)
	mux.HandleFunc("GET /debug/pprof/{name}", namedProfile)
	mux.HandleFunc("GET /debug/pprof/profile", func(w http.ResponseWriter, r *http.Request) {
		record(w, r, "profile", 30*time.Second, func() error { return pprof.StartCPUProfile(w) }, pprof.StopCPUProfile)
	})
	mux.HandleFunc("GET /debug/pprof/trace", func(w http.ResponseWriter, r *http.Request) {
		record(w, r, "trace", time.Second, func() error { return trace.Start(w) }, trace.Stop)
	})
}

func listProfiles(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "profile?seconds=30  what the processor did in that time\ntrace?seconds=1     an execution trace of that time")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(w, "%-19s %d; as text: %[1]s?debug=1\n", p.Name(), p.Count())
	}
}

func namedProfile(w http.ResponseWriter, r *http.Request) {
	p := pprof.Lookup(r.PathValue("name"))
	switch {
	case p == nil:
		plain(w, http.StatusNotFound, fmt.Sprintf("there is no profile %q; /debug/pprof/ lists what there is", r.PathValue("name")))
		return
	case r.FormValue("seconds") != "":
		plain(w, http.StatusBadRequest, fmt.Sprintf("%s is of one instant; take it twice, and compare them: go tool pprof -base FIRST SECOND", p.Name()))
		return
	}
	if p.Name() == "heap" && r.FormValue("gc") == "1" {
		runtime.GC()
	}
	debug, _ := strconv.Atoi(r.FormValue("debug")) // 0, the binary form, where it is no number
	if debug == 0 {
		attach(w, p.Name())
	} else {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	_ = p.WriteTo(w, debug) // who asked is gone
}

// record answers with a recording of as many seconds as the request asks for.
func record(w http.ResponseWriter, r *http.Request, name string, usual time.Duration, start func() error, stop func()) {
	d := usual
	if text := r.FormValue("seconds"); text != "" {
		s, err := strconv.ParseFloat(text, 64)
		if err != nil || !(s > 0 && s <= longestRecord.Seconds()) {
			plain(w, http.StatusBadRequest, fmt.Sprintf("seconds is a number from 0 to %.0f, not %q", longestRecord.Seconds(), text))
			return
		}
		d = time.Duration(s * float64(time.Second))
	}
	attach(w, name)
	if err := start(); err != nil { // before anything is written
		w.Header().Del("Content-Disposition")
		plain(w, http.StatusConflict, err.Error())
		return
	}
	defer stop()
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
}
