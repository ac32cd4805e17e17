package mongodb

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// retryDoc is a part of a retry: its first document has the id of the retry.
type retryDoc struct {
	ID    bson.ObjectID `bson:"_id"`
	Retry bson.ObjectID `bson:"retry"`
	Plan  bson.ObjectID `bson:"plan,omitempty"`
	N     int           `bson:"n"`
	At    time.Time     `bson:"at"`
	Fate  string        `bson:"fate,omitempty"` // in the first: done, once all are held, or undone

	// In the first: how the plan was, and the number of its edits since it notes the retry.
	State    plan.Lifecycle `bson:"state"`
	Closing  plan.Closing   `bson:"closing,omitempty"`
	Ending   plan.Lifecycle `bson:"ending,omitempty"`
	Ended    time.Time      `bson:"ended,omitempty"`
	Edits    int            `bson:"edits"`
	Params   text           `bson:"params,omitempty"`   // in the first: those of the plan once the retry is made, if they are others
	Retried  time.Time      `bson:"retried,omitempty"`  // the same of this instant,
	Deadline time.Time      `bson:"deadline,omitempty"` // and of this one
	Timeout  *time.Duration `bson:"timeout,omitempty"`  // and of this timeout, if it is another one

	Tasks []retriedDoc `bson:"tasks"` // children first
}

type retriedDoc struct {
	ID      bson.ObjectID `bson:"id"`
	Status  plan.Status   `bson:"status"` // as it was,
	Hold    string        `bson:"hold,omitempty"`
	Replace text          `bson:"replace,omitempty"` // a task with a new definition, params and queue, as JSON
	Ran     bool          `bson:"ran,omitempty"`     // it keeps Ran
	Anew    bool          `bson:"anew,omitempty"`    // it drops its items and makes them anew
	Leaves  bool          `bson:"leaves,omitempty"`  // it is an item that is not in its list any more
}

// retryParts splits what a retry takes into what one document holds each.
func retryParts(chosen []retriedDoc) (parts [][]retriedDoc) {
	first, bytes := 0, 0
	for i := range chosen {
		size := len(chosen[i].Replace)
		if i > first && (i-first == retryAtOnce || bytes+size > retryBytes) {
			parts = append(parts, chosen[first:i])
			first, bytes = i, 0
		}
		bytes += size
	}
	return append(parts, chosen[first:])
}

// ids returns the ids of its tasks.
func (r *retryDoc) ids() idList {
	return idsFrom(r.Tasks, func(t retriedDoc) bson.ObjectID { return t.ID })
}

// target is what adding is in tasks that are to be looked at when the retry is over.
func (r *retryDoc) target() bson.ObjectID {
	if r.Plan.IsZero() {
		return r.Retry
	}
	return r.Plan
}

// deadRetry is how long a retry is left alone that is not decided yet: whoever makes it may be at it, and says so as long as it takes.
const deadRetry = time.Minute

const (
	retryAtOnce = 500     // tasks in one document of a retry,
	retryBytes  = 8 << 20 // and the bytes of what replaces them, but one task may have more
)
