package v1_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// An event is one message to a listener.
type event struct {
	kind, id string
	change   api.Change
}

// listen returns the messages to a listener. The channel is closed with the connection. The first
// message is no event, but says where the stream begins.
func (s *site) listen(ctx context.Context, path, lastID string) <-chan event {
	s.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil || a.StatusCode != 200 {
		s.Fatalf("listen to %s: %v %v", path, a, err)
	}
	told := make(chan event, 1000)
	go func() {
		defer close(told)
		defer a.Body.Close()
		var e event
		for in := bufio.NewScanner(a.Body); in.Scan(); {
			key, value, _ := strings.Cut(in.Text(), ": ")
			switch key {
			case "event":
				e.kind = value
			case "id":
				e.id = value
			case "data":
				if err := json.Unmarshal([]byte(value), &e.change); err != nil {
					s.Errorf("%v in %s", err, value)
				}
			case "":
				if in.Text() == "" && (e.kind != "" || e.id != "") {
					told <- e
					e = event{}
				}
			}
		}
	}()
	return told
}

func (s *site) next(told <-chan event) event {
	s.Helper()
	select {
	case e, ok := <-told:
		if !ok {
			s.Fatal("the events have ended")
		}
		return e
	case <-time.After(time.Minute):
		s.Fatal("no event in a minute")
	}
	return event{}
}

// create makes a plan of that name.
func (s *site) create(name string) plan.Plan {
	s.Helper()
	p, err := s.st.CreatePlan(s.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: name})
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func TestAListenerGoesOnWhereItWasCutOff(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		ctx, cut := context.WithCancel(t.Context())
		told := s.listen(ctx, "/events", "")
		last := s.next(told).id // nothing is missed from here on
		s.create("a")
		e := s.next(told)
		if e.kind != "plan" || e.change.Name != "a" || e.change.State != "submitting" || e.id == "" || e.id == last {
			t.Fatalf("the first event is %+v", e)
		}
		cut()
		for range told { // to its end
		}
		for i := range 5 {
			s.create(fmt.Sprint("missed-", i))
		}
		again := s.listen(t.Context(), "/events", e.id)
		s.create("b")
		seen := map[string]bool{}
		for !seen["b"] {
			seen[s.next(again).change.Name] = true
		}
		for i := range 5 {
			if name := fmt.Sprint("missed-", i); !seen[name] {
				t.Errorf("%s was not told of", name)
			}
		}
		if seen["a"] {
			t.Error("what was told before its id was told again")
		}
	})
}

// A store that is busy when it is asked for the present: something changes as soon as what was missed was read, or else shortly after.
type busy struct {
	store.Store
	read   chan struct{}
	change func()
}

func (b *busy) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	changes, next, err := b.Store.Changes(ctx, after, limit)
	if limit > 1 { // not to see whether the cursor is one
		select {
		case b.read <- struct{}{}:
		default:
		}
	}
	return changes, next, err
}

func (b *busy) Latest(ctx context.Context) (store.Cursor, error) {
	select {
	case <-b.read:
	case <-time.After(200 * time.Millisecond):
	}
	b.change()
	return b.Store.Latest(ctx)
}

func TestNothingIsMissedWhileTheFeedBegins(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		last, err := s.st.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		st := &busy{s.st, make(chan struct{}, 1), func() { s.create("meanwhile") }}
		s = serveStore(t, st, v1.Config{Store: st})
		told := s.listen(t.Context(), "/events", base64.RawURLEncoding.EncodeToString([]byte(last)))
		for s.next(told).change.Name != "meanwhile" {
		}
	})
}

func TestWhoListensToAPlanIsToldOfItAloneUntilItEnds(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		p := s.create("mine")
		told := s.listen(t.Context(), "/plans/mine/events", "")
		s.next(told)
		s.create("other")
		if err := s.st.Ready(t.Context(), p.ID); err != nil { // without tasks it ends at once
			t.Fatal(err)
		}
		ended := false
		for e := range told {
			if e.kind != "" && e.change.Plan != p.ID {
				t.Errorf("told of %+v", e)
			}
			ended = ended || e.change.State == "succeeded"
		}
		if !ended {
			t.Error("the end was not told")
		}
	})
}

// A counted store counts the reads of its feed.
type counted struct {
	store.Store
	looks atomic.Int64
}

func (c *counted) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	c.looks.Add(1)
	return c.Store.Changes(ctx, after, limit)
}

func TestTheFeedIsReadOnceForAllAndNotForNobody(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		st := &counted{Store: s.st}
		s = serveStore(t, st, v1.Config{Store: st})
		time.Sleep(200 * time.Millisecond) // in which it would be read four times
		if n := st.looks.Load(); n != 0 {
			t.Errorf("nobody listens, and the feed was read %d times", n)
		}
		var all []<-chan event
		ctx, cut := context.WithCancel(t.Context())
		for range 20 {
			all = append(all, s.listen(ctx, "/events", ""))
		}
		for _, told := range all {
			s.next(told)
		}
		before, began := st.looks.Load(), time.Now()
		for i := range 10 {
			s.create(fmt.Sprint("p", i))
			for _, told := range all {
				s.next(told)
			}
		}
		// A look each 50 ms at most, and one for each change.
		if n, most := st.looks.Load()-before, 10+int64(time.Since(began)/(50*time.Millisecond))+2; n > most {
			t.Errorf("20 listeners had the feed read %d times in %v, want at most %d", n, time.Since(began), most)
		}
		cut()
		for _, told := range all {
			for range told {
			}
		}
	})
}

func TestAnIDThatIsNoneIsRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for _, id := range []string{"$ne", "garbage"} { // the second is base64, of no cursor
			r, _ := http.NewRequestWithContext(t.Context(), "GET", s.url+"/events", nil)
			r.Header.Set("Last-Event-ID", id)
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			var p api.Problem
			err = json.NewDecoder(a.Body).Decode(&p)
			a.Body.Close()
			if err != nil || a.StatusCode != 422 || p.Code != "invalid_cursor" || len(p.Fields) != 1 || p.Fields[0].Location != "header.Last-Event-ID" {
				t.Errorf("%s: %s %+v, %v", id, a.Status, p, err)
			}
		}
		if status, text := s.ask("GET", "/changes?after=xx", ""); status != 422 || !strings.Contains(text, `"location":"query.after"`) {
			t.Errorf("after=xx: %d %s", status, text)
		}
	})
}

// A listener whose token is revoked gets nothing more.
func TestEventsEndWithWhatLetTheListenerIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.json")
	token, hash := auth.NewToken()
	err := auth.Edit(path, true, func(a *auth.Access) error {
		a.Tokens = []auth.Token{{ID: "a", SHA256: hash, Scopes: auth.Scopes{auth.Read}}, {ID: "b", SHA256: strings.Repeat("0", 64), Scopes: auth.Scopes{auth.Read}}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	access, err := auth.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := auth.New(auth.Config{Access: access, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t)
	srv := httptest.NewServer(guard.Wrap(s.api, s.api.Scope))
	defer srv.Close()
	r, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+api.Root+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	a, err := http.DefaultClient.Do(r)
	if err != nil || a.StatusCode != 200 {
		t.Fatalf("%v %v", a, err)
	}
	defer a.Body.Close()
	in := bufio.NewReader(a.Body)
	for { // until its first cursor arrives: from then on it listens
		if line, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		} else if strings.HasPrefix(line, "id:") {
			break
		}
	}
	if err := auth.Edit(path, false, func(a *auth.Access) error { a.Tokens = a.Tokens[1:]; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := access.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.st.CreatePlan(t.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "secret"}); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { a.Body.Close() })
	rest, err := io.ReadAll(in)
	if !late.Stop() || err != nil || strings.Contains(string(rest), "secret") {
		t.Errorf("after its token was revoked it is told %q, %v", rest, err)
	}
}
