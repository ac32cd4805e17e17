package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Reports runs the suite of store.Reporter on a new, empty store. Kept returns what is kept, as JSON without ids, in the order of them.
func Reports(t *testing.T, s store.Reporter, kept func() []string) {
	ctx := t.Context()
	first, second := plan.NewID(time.Now()), plan.NewID(time.Now().Add(time.Second))
	for _, r := range []struct {
		id       plan.ID
		document string
	}{
		{first, `{"status":"SUCCESS","errors":0,"user":null}`},
		{second, `{"status":"FAILED","errors":2,"of":{"list":[1,"ä"]}}`},
		{first, `{"status":"twice"}`}, // as of a write that had no answer
	} {
		if err := s.Report(ctx, r.id, json.RawMessage(r.document)); err != nil {
			t.Fatalf("report %s: %v", r.document, err)
		}
	}
	for _, bad := range []string{`[1]`, `"text"`, `{"a":`, ``} {
		if err := s.Report(ctx, plan.NewID(time.Now()), json.RawMessage(bad)); err == nil || errors.Is(err, plan.ErrUnavailable) {
			t.Errorf("report %q: %v, want an error that says that it is no object", bad, err)
		}
	}
	want := `{"status":"SUCCESS","errors":0,"user":null} {"status":"FAILED","errors":2,"of":{"list":[1,"ä"]}}`
	if got := strings.Join(kept(), " "); got != want {
		t.Errorf("kept are\n%s, want\n%s", got, want)
	}
}
