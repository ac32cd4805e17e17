package mongodb

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	// largestDocument is how large a document of the server may be.
	largestDocument = 16 << 20
	// spare is what a document that is inserted leaves of that for what claims and endings write, but for outputs.
	spare = 64 << 10
	// surelyFits is how much JSON fits into a document whatever it is.
	surelyFits = store.FitsAlways
)

var _ store.Fitter = (*Store)(nil)

// A tooLarge says what would not fit into a document of MongoDB. It is a plan.ErrTooLarge.
type tooLarge struct{ text string }

func (e *tooLarge) Error() string { return e.text }
func (e *tooLarge) Unwrap() error { return plan.ErrTooLarge }

// Fits implements store.Fitter: what is to fit is a document of MongoDB.
func (s *Store) Fits(_ context.Context, p plan.Plan, tasks []plan.Task) error {
	if err := rules.CheckPlanParams(len(p.Params)); err != nil { // which is much less than a document takes
		return err
	}
	for i := range tasks {
		if err := fits(&tasks[i]); err != nil {
			return err
		}
	}
	return nil
}

func fits(t *plan.Task) error {
	if store.Size(t) <= surelyFits {
		return nil
	}
	doc, _, err := newTask(t, holdNeeds, time.Time{})
	var raw []byte
	if err == nil {
		raw, err = bson.Marshal(doc)
	}
	if err != nil {
		return fmt.Errorf("task %q: %w", t.Key(), err)
	}
	if len(raw) > largestDocument-spare {
		twice := ""
		if len(doc.Text) > 0 {
			twice = ", its params twice, since they have numbers or names that a document alone would not keep as they are"
		}
		return &tooLarge{fmt.Sprintf("task %q: its document would have %d bytes%s; MongoDB takes at most %d: keep large values in files, and let params be their paths",
			t.Key(), len(raw), twice, largestDocument-spare)}
	}
	return nil
}

// leaveRoom reports whether the document of a task would still have room if these fields of it were set.
func (t *taskDoc) leaveRoom(fields bson.D) (bool, error) {
	raw, err := bson.Marshal(fields)
	return len(raw)+len(t.Def) <= largestDocument-spare, err
}
