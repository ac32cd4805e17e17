package plugins_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// reports fails so many times before it keeps a document.
type reports struct {
	fails int
	err   error
	ids   []plan.ID
	kept  string
}

func (r *reports) Report(_ context.Context, id plan.ID, document json.RawMessage) error {
	r.ids = append(r.ids, id)
	if len(r.ids) <= r.fails {
		return fmt.Errorf("insert: %w", r.err)
	}
	r.kept = string(document)
	return nil
}

func TestReport(t *testing.T) {
	other := errors.New("no such thing")
	for name, c := range map[string]struct {
		reports
		tries int
		err   error
	}{
		"is kept":                            {reports{}, 1, nil},
		"is written again without an answer": {reports{fails: 2, err: plan.ErrUnavailable}, 3, nil},
		"is given up in the end":             {reports{fails: 9, err: plan.ErrUnavailable}, 3, plan.ErrUnavailable},
		"that is refused is not tried again": {reports{fails: 9, err: other}, 1, other},
	} {
		task := plugins.Task{Log: new(plugins.Log), Reports: &c.reports}
		err := task.Report(t.Context(), map[string]any{"errors": 2})
		if !errors.Is(err, c.err) || len(c.ids) != c.tries {
			t.Errorf("a report %s: %v after %d tries; want %v after %d", name, err, len(c.ids), c.err, c.tries)
		}
		for _, id := range c.ids {
			if id.IsZero() || id != c.ids[0] {
				t.Errorf("a report %s: its ids are %v, want one", name, c.ids)
			}
		}
		if err == nil && c.kept != `{"errors":2}` {
			t.Errorf("a report %s: %s", name, c.kept)
		}
	}
}

func TestAReportGoesToTheLogWhereNobodyKeepsIt(t *testing.T) {
	task := plugins.Task{Log: new(plugins.Log)}
	if err := task.Report(t.Context(), map[string]any{"errors": 2}); err != nil {
		t.Fatal(err)
	}
	if e := task.Log.Drain(); len(e) != 1 || e[0].Text != "report: {\"errors\":2}\n" {
		t.Errorf("the log is %+v", e)
	}
	if err := task.Report(t.Context(), []int{1}); err == nil {
		t.Error("a list was taken for a document")
	}
}
