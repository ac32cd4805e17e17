package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Reporter keeps what tasks report: documents for people and other programs, beside outputs, which are for the tasks that follow.
type Reporter interface {
	// Report keeps a document, a JSON object, under an id that the caller made. One whose id is there already changes nothing.
	Report(ctx context.Context, id plan.ID, document json.RawMessage) error
}

// Report writes a document about the attempt to where the site keeps reports: on MongoDB that is the collection reports, as of Disbatch's
// plugins; where the store has no such place, the document goes to the task's log as a line of JSON. It is encoded as JSON and has to be an
// object; MongoDB reads it as Extended JSON, so that an ObjectID is written {"$oid": "…"} and a date {"$date": "…"}. Nothing takes a report
// back: an attempt whose claim was lost, or that runs again, has left its own.
func (t *Task) Report(ctx context.Context, document any) error {
	text, err := json.Marshal(document)
	if err == nil && text[0] != '{' {
		err = errors.New("it is not an object")
	}
	if err != nil {
		return fmt.Errorf("report of task %s: %w", t.ID, err)
	}
	if t.Reports == nil {
		t.Log.Printf("report: %s", text)
		return nil
	}
	const tries = 3 // a write that had no answer is made again, and does nothing if it was made
	id := plan.NewID(time.Now())
	for range tries {
		if err = t.Reports.Report(ctx, id, text); !errors.Is(err, plan.ErrUnavailable) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("report of task %s: %w", t.ID, err)
	}
	return nil
}
