package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// The database of schema 19 has a task of no plan that needed a task of a plan and an item, one whose parent's plan
// was deleted, and a foreach of no plan. All have finished.
func TestEdgesOfFinishedTasksThatLeadOutsideAreCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	unpack(t, filepath.Join("testdata", "edges.db.gz"), path)
	s := openAt(t, path, Options{})
	defer closeStore(t, s)
	found, err := s.Tasks(t.Context(), store.TaskQuery{NoPlan: true, Needs: true, Params: true, Output: true, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	tasks := map[string]plan.Task{}
	for _, x := range found {
		tasks[x.Name] = x
	}
	for name, want := range map[string]struct{ needs, params, output string }{
		"own":     {"", `{}`, `"of own"`},
		"both":    {"own", `{"needs":{"own":"of own","a":"of a","copy[1]":"of copy[1]"},"args":["of own","of a","of copy[1]"]}`, `"of both"`},
		"orphan":  {"", `{"needs":{"b":"of b"},"args":["of b"]}`, `"of orphan"`},
		"list":    {"", `{}`, `["of list[0]","of list[1]"]`},
		"list[0]": {"", `{"item":7}`, `"of list[0]"`},
		"list[1]": {"", `{"item":8}`, `"of list[1]"`},
	} {
		x := tasks[name]
		var needs []string
		for _, id := range x.Needs {
			parent, err := s.Task(t.Context(), id)
			if err != nil {
				t.Errorf("%s needs %s: %v", name, id, err)
			}
			needs = append(needs, parent.Name)
		}
		if got := strings.Join(needs, " "); got != want.needs || string(x.Params) != want.params || string(x.Output) != want.output {
			t.Errorf("%s needs %q, has params %s and output %s; want %+v", name, got, x.Params, x.Output, want)
		}
		if !x.Of.IsZero() || x.Foreach != nil || x.Expanded || x.Items != 0 {
			t.Errorf("%s is of %v, with foreach %v and %d items", name, x.Of, x.Foreach, x.Items)
		}
	}
	if len(tasks) != 6 {
		t.Errorf("there are %d tasks of no plan, want 6", len(tasks))
	}
	for what, n := range left(t, s) {
		if n > 0 {
			t.Errorf("%d %s are left", n, what)
		}
	}
}

func TestAStoreWithUnfinishedTasksThatNeedOthersOutsideIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	unpack(t, filepath.Join("testdata", "edges-unfinished.db.gz"), path)
	for range 2 { // the first refusal changes nothing
		_, err := Open(t.Context(), path, Options{})
		if !errors.Is(err, plan.ErrUnavailable) || !strings.Contains(err.Error(), "waits (6b") || !strings.Contains(err.Error(), "copies (") ||
			!strings.Contains(err.Error(), "finish or cancel them with the sluice that made them") {
			t.Fatalf("the error is %v", err)
		}
	}
}
