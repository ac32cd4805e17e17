package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// An Entry is a line of the audit log: a request that changed something, or was to. It has no query, header or body of it, where secrets are,
// except for the filter of what it changed.
type Entry struct {
	Time    time.Time `json:"time"`              // it came
	Who     string    `json:"who,omitempty"`     // user or token; "": nobody known
	By      By        `json:"by,omitempty"`      // how they were let in
	From    string    `json:"from"`              // address of the caller, or unix
	Method  string    `json:"method"`            //
	Route   string    `json:"route,omitempty"`   // pattern of what served it
	Path    string    `json:"path"`              //
	Status  int       `json:"status"`            // of the answer
	IDs     []string  `json:"ids,omitempty"`     // what was changed, or was to be, the first 100 of them
	More    int       `json:"more,omitempty"`    // how many others
	Filter  string    `json:"filter,omitempty"`  // by which they were chosen
	Refused Code      `json:"refused,omitempty"` // why it reached no handler

	mu        sync.Mutex // of what handlers add
	unchanged bool       // see Unchanged
}

// mostIDs is how many of what a request changed an entry names.
const mostIDs = 100

// Unchanged keeps the request of the context out of the audit log. It is for a request that changes
// nothing although its route and its scope could.
func Unchanged(ctx context.Context) {
	note(ctx, func(e *Entry) { e.unchanged = true })
}

// note adds to the entry of the request that the context is of, if there is one.
func note(ctx context.Context, add func(*Entry)) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.entry.mu.Lock()
		defer c.entry.mu.Unlock()
		add(c.entry)
	}
}

// Changed notes for the audit log what the request that the context is of changes: ids of plans, tasks, queues and schedules, names of nodes and groups. Handlers
// call it as they go, so that what was done before a failure is known.
func Changed(ctx context.Context, ids ...string) {
	note(ctx, func(e *Entry) {
		for _, id := range ids {
			switch id = shortened(id); {
			case slices.Contains(e.IDs, id): // a change that is repeated
			case len(e.IDs) < mostIDs:
				e.IDs = append(e.IDs, id)
			default:
				e.More++
			}
		}
	})
}

// Chosen notes for the audit log by which filter the request chooses what it changes.
func Chosen(ctx context.Context, filter string) {
	note(ctx, func(e *Entry) { e.Filter = shortened(filter) })
}

// record writes the entry of a finished request. It limits the entries of refused and unknown
// callers for each address.
func (g *Guard) record(r *http.Request, done *call, status int, c caller) {
	stranger := done.who.Name == "" // changes nothing; a login that is none, and what pages have no method for, get as far as here
	if (done.refused != "" || stranger) && !g.refusals.tell(c.network(), time.Now()) {
		return
	}
	e := done.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unchanged {
		return
	}
	e.Who, e.By, e.Route, e.Status, e.Refused = done.who.Name, done.who.By, r.Pattern, status, done.refused
	level, text := slog.LevelInfo, "changed"
	switch {
	case done.refused != "":
		level, text = slog.LevelWarn, "refused"
	case status >= http.StatusBadRequest:
		text = "not changed"
	}
	attrs := []slog.Attr{
		slog.String("who", e.Who), slog.String("by", string(e.By)), slog.String("from", e.From), slog.String("method", e.Method),
		slog.String("path", e.Path), slog.Int("status", status),
	}
	if e.Route != "" {
		attrs = append(attrs, slog.String("route", e.Route))
	}
	if len(e.IDs) > 0 {
		attrs = append(attrs, slog.Any("ids", e.IDs), slog.Int("more", e.More))
	}
	if e.Filter != "" {
		attrs = append(attrs, slog.String("filter", e.Filter))
	}
	if e.Refused != "" {
		attrs = append(attrs, slog.String("refused", string(e.Refused)))
	}
	g.Log.LogAttrs(r.Context(), level, text, attrs...)
	if err := g.Audit.write(e); err != nil {
		g.Log.Error("the audit log cannot be written; the change is in this log only", "error", err)
	}
}

// An Audit is the file of who changed what, an Entry a line, as JSON. A nil one keeps nothing.
type Audit struct {
	path  string
	spare func(path string) error
	mu    sync.Mutex
	file  *os.File
	info  fs.FileInfo // of file
}

// OpenAudit opens an audit log, and makes it if it is not there. It is its owner's alone. spare is asked
// before each time that the file is opened by its name: it refuses a file that is something else by now.
func OpenAudit(path string, spare func(path string) error) (*Audit, error) {
	a := &Audit{path: path, spare: spare}
	return a, a.Reopen()
}

// Reopen opens the file again. If that fails, entries continue to go to the old file.
func (a *Audit) Reopen() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open()
}

func (a *Audit) open() error {
	if err := a.spare(a.path); err != nil {
		return err
	}
	file, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the audit log cannot be opened: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("the audit log cannot be opened: %w", err)
	}
	if a.file != nil {
		_ = a.file.Close() // nothing is buffered
	}
	a.file, a.info = file, info
	return nil
}

// Close closes the file.
func (a *Audit) Close() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	file := a.file
	if a.file = nil; file == nil {
		return nil
	}
	return file.Close()
}

// write adds an entry, in one write, so that lines of several processes stay whole. Where the file was moved away, as those do who keep logs short,
// it begins a new one.
func (a *Audit) write(e *Entry) error {
	if a == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return errors.New("it is closed")
	}
	var moved error
	if there, err := os.Stat(a.path); err != nil || !os.SameFile(there, a.info) {
		moved = a.open()
	}
	_, err = a.file.Write(append(line, '\n'))
	return errors.Join(err, moved)
}
