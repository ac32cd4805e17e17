package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Reporter keeps the reports of tasks. Reports are documents for people and other programs,
// whereas outputs are for the tasks that follow.
type Reporter interface {
	// Report keeps a document, a JSON object, under an id that the caller made. If the id exists
	// already, it changes nothing.
	Report(ctx context.Context, id plan.ID, document json.RawMessage) error
}

// Report writes a document about the attempt to the place where the site keeps reports. On MongoDB
// that is the collection reports, as with Disbatch's plugins. A store without such a place gets the
// document in the task's log, as a line of JSON. The document is encoded as JSON and has to be an
// object. MongoDB reads it as Extended JSON: an ObjectID is {"$oid": "…"} and a date {"$date":
// "…"}. A report is never taken back: each attempt leaves its own, even if its claim was lost.
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
