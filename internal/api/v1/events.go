package v1

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	pollEvery  = 50 * time.Millisecond // the feed is read while anybody listens
	pollPage   = 5000                  // changes at a time
	waiting    = 64                    // batches that a listener may be behind; then it is cut off, and comes again with its last id
	aliveEvery = 15 * time.Second      // a comment line, so that no proxy closes an idle connection
	writeTime  = 30 * time.Second      // for one batch to one listener
)

// A batch is what one look at the feed found, and the cursor after it.
type batch struct {
	changes []store.Change
	cursor  store.Cursor
	events  []atomic.Pointer[[]byte] // of the changes, once somebody wanted them: all who listen are sent the same bytes
}

func newBatch(changes []store.Change, cursor store.Cursor) batch {
	return batch{changes, cursor, make([]atomic.Pointer[[]byte], len(changes))}
}

// event returns a change as it is sent, but for what ends it.
func (b *batch) event(i int) []byte {
	if made := b.events[i].Load(); made != nil {
		return *made
	}
	kind := "task"
	if b.changes[i].Task.IsZero() {
		kind = "plan"
	}
	data, err := json.Marshal(api.ChangeOf(&b.changes[i]))
	var text []byte
	if err == nil { // none of its fields can fail
		text = fmt.Appendf(nil, "event: %s\ndata: %s\n", kind, data)
	}
	b.events[i].Store(&text)
	return text
}

// A hub reads the store's feed of changes once for all listeners, and only while there are
// listeners. One goroutine, run, reads and tells them. Listeners come and go under the lock.
type hub struct {
	st   store.Reader
	log  *slog.Logger
	woke chan struct{} // somebody listens

	ended chan struct{} // closed at its end

	mu     sync.Mutex
	all    map[chan batch]bool
	cursor store.Cursor // up to which was told; "" while nobody listens
	over   bool
}

func newHub(st store.Reader, log *slog.Logger) *hub {
	return &hub{st: st, log: log, all: map[chan batch]bool{}, woke: make(chan struct{}, 1), ended: make(chan struct{})}
}

// join makes the caller a listener, until it leaves. The first batch has no changes: from its cursor on nothing is missed. The channel is
// closed when the listener is too slow, or the hub ends.
func (h *hub) join() (told <-chan batch, leave func()) {
	c := make(chan batch, waiting)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		close(c)
		return c, func() {}
	}
	h.all[c] = true
	if h.cursor != "" {
		c <- newBatch(nil, h.cursor)
	}
	select {
	case h.woke <- struct{}{}:
	default:
	}
	return c, func() { h.drop(c) }
}

func (h *hub) drop(c chan batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[c] {
		delete(h.all, c)
		close(c)
	}
}

// from is where to read on; "" is the present. Where nobody listens there is nothing to read for.
func (h *hub) from() (cursor store.Cursor, listeners bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) == 0 {
		h.cursor = ""
	}
	return h.cursor, len(h.all) > 0
}

// tell gives a batch to all; who has not taken the last ones is cut off.
func (h *hub) tell(b batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.cursor == ""
	if h.cursor = b.cursor; len(b.changes) == 0 && !first {
		return
	}
	for c := range h.all {
		select {
		case c <- b:
		default:
			delete(h.all, c)
			close(c)
		}
	}
}

// reset cuts all off, and begins with what is now when somebody listens again.
func (h *hub) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cursor = ""
	for c := range h.all {
		delete(h.all, c)
		close(c)
	}
}

// end cuts all off for good.
func (h *hub) end() {
	h.mu.Lock()
	h.over = true
	close(h.ended)
	h.mu.Unlock()
	h.reset()
}

func (h *hub) run(ctx context.Context) {
	defer h.end()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for failing := false; ctx.Err() == nil; {
		cursor, listeners := h.from()
		if !listeners {
			select {
			case <-h.woke:
				continue
			case <-ctx.Done():
				return
			}
		}
		var changes []store.Change
		var err error
		if cursor == "" {
			cursor, err = h.st.Latest(ctx)
		} else {
			changes, cursor, err = h.st.Changes(ctx, cursor, pollPage)
		}
		switch {
		case err == nil:
			h.tell(newBatch(changes, cursor))
		case errors.Is(err, plan.ErrCursor): // a listener that returns with its last id learns of it
			h.log.Warn("the store has fewer changes than it had, as when a backup was restored into it; listeners begin anew", "error", err)
			h.reset()
		case !failing && ctx.Err() == nil:
			h.log.Warn("the store's changes cannot be read; listeners wait", "error", err)
		}
		failing = err != nil
		if len(changes) == pollPage {
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// stream answers with events of the changes that are wanted: those after the last id first, if one is given, then what the hub tells.
func (a *API) stream(ctx context.Context, lastID string, wanted func(*store.Change) bool, ends bool) (*stream, error) {
	var after store.Cursor
	if lastID != "" {
		text, err := base64.RawURLEncoding.DecodeString(lastID)
		if err != nil || len(text) == 0 {
			return nil, badCursor("header.Last-Event-ID", lastID)
		}
		after = store.Cursor(text)
		_, _, err = a.st.Changes(ctx, after, 1)
		if errors.Is(err, plan.ErrCursor) {
			return nil, badCursor("header.Last-Event-ID", lastID)
		}
		if err != nil {
			return nil, err
		}
	}
	return &stream{func(w http.ResponseWriter) {
		l := a.listener(w)
		l.wanted, l.ends = wanted, ends
		l.listen(ctx, after)
	}}, nil
}

// A listener is one connection that receives events. It belongs to one goroutine.
type listener struct {
	a      *API
	w      io.Writer
	flush  *http.ResponseController
	wanted func(*store.Change) bool
	ends   bool // with the plan
}

// listener begins to answer with events.
func (a *API) listener(w http.ResponseWriter) *listener {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events to itself
	return &listener{a: a, w: w, flush: http.NewResponseController(w)}
}

func (l *listener) listen(ctx context.Context, after store.Cursor) {
	told, leave := l.a.events.join()
	defer leave()
	if !l.write([]byte(": these are the changes\n\n")) {
		return
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		select {
		case b, ok := <-told:
			switch {
			case !ok, !auth.Still(ctx): // after a logout or a revoked token nothing more is sent
				return
			case after != "": // the first batch has no changes and later ones are all sent; missed changes come before it, or twice
				if !l.catchUp(ctx, after) {
					return
				}
				after = ""
			case !l.send(b):
				return
			}
		case <-alive.C:
			if !auth.Still(ctx) || !l.write([]byte(": alive\n\n")) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// catchUp sends the changes after a place, and reports whether to continue listening. A short page
// is not always the last, because a store may return late changes in a page of their own. So two
// short pages in a row are the end.
func (l *listener) catchUp(ctx context.Context, after store.Cursor) bool {
	for short := 0; short < 2; {
		changes, next, err := l.a.st.Changes(ctx, after, pollPage)
		if err != nil { // who listens comes again
			return false
		}
		if after = next; len(changes) > 0 && !l.send(newBatch(changes, next)) {
			return false
		}
		if short++; len(changes) == pollPage {
			short = 0
		}
	}
	return true
}

// send writes the wanted events of a batch, and reports whether to continue listening. The last
// event has the id of the end of the batch. A listener that resumes before that id gets the batch
// again.
func (l *listener) send(b batch) bool {
	_ = l.flush.SetWriteDeadline(time.Now().Add(writeTime)) // not every connection has one
	ended := false
	for i := range b.changes {
		c := &b.changes[i]
		if !l.wanted(c) {
			continue
		}
		ended = ended || c.Task.IsZero() && c.State.Ended()
		if _, err := l.w.Write(b.event(i)); err != nil {
			return false
		}
		if i < len(b.changes)-1 {
			if _, err := io.WriteString(l.w, "\n"); err != nil {
				return false
			}
		}
	}
	// The last change is ended by the id; where that is not wanted the id stands alone, and is no event.
	return l.write([]byte("id: "+eventID(b.cursor)+"\n\n")) && !(ended && l.ends)
}

func eventID(c store.Cursor) string { return base64.RawURLEncoding.EncodeToString([]byte(c)) }

// write sends bytes at once, and reports whether who listens may still be there.
func (l *listener) write(p []byte) bool {
	_ = l.flush.SetWriteDeadline(time.Now().Add(writeTime)) // not every connection has one
	if _, err := l.w.Write(p); err != nil {
		return false
	}
	return l.flush.Flush() == nil
}
