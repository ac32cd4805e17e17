package mongodb

import (
	"encoding/json"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// planDoc is a plan as it is kept.
type planDoc struct {
	ID        bson.ObjectID  `bson:"_id"`
	Name      string         `bson:"name"`
	Run       int            `bson:"run"`
	State     plan.Lifecycle `bson:"state"`
	Closing   plan.Closing   `bson:"closing,omitempty"`
	OnFailure plan.OnFailure `bson:"on_failure,omitempty"`
	Params    text           `bson:"params,omitempty"`
	Secrets   []string       `bson:"secrets,omitempty"`
	By        string         `bson:"by,omitempty"`
	Source    string         `bson:"source,omitempty"`
	File      *planFileDoc   `bson:"file,omitempty"` // readers of plans leave it out
	Key       string         `bson:"key,omitempty"`
	Request   string         `bson:"request,omitempty"`
	Own       bool           `bson:"own,omitempty"`
	Keep      time.Duration  `bson:"keep,omitempty"`
	Size      int            `bson:"size,omitempty"`
	Edits     int            `bson:"edits"`
	Fresh     bool           `bson:"fresh,omitempty"`    // it became ready, or was retried, and not all of what that releases is released
	Retry     bson.ObjectID  `bson:"retry,omitempty"`    // the retry that is going on
	Adds      bson.A         `bson:"adds,omitempty"`     // late additions that were confirmed and are not released yet
	Shared    int            `bson:"shared,omitempty"`   // counts how often tasks of no plan were added, or taken back, that need some of it
	Deleting  bool           `bson:"deleting,omitempty"` // its deletion has begun
	Ctime     time.Time      `bson:"ctime"`
	Mtime     time.Time      `bson:"mtime"`
	Ended     time.Time      `bson:"ended,omitempty"`
}

// planFileDoc is a plan.File as it is kept.
type planFileDoc struct {
	Text string `bson:"text"`
	Dir  string `bson:"dir,omitempty"`
}

func (p *planDoc) title() string { return fmt.Sprintf("%s#%d", p.Name, p.Run) }

func (p *planDoc) domain() plan.Plan {
	return plan.Plan{
		ID: planID(p.ID), Name: p.Name, Run: p.Run, State: p.State, Closing: p.Closing, OnFailure: p.OnFailure, Params: json.RawMessage(p.Params),
		Secrets: p.Secrets, By: p.By, Request: p.Request, Source: p.Source, Own: p.Own, Keep: p.Keep, Size: p.Size, Edits: p.Edits, Created: utc(p.Ctime), Modified: utc(p.Mtime), Ended: utc(p.Ended),
	}
}

// runDoc reserves a run of a name while its plan is being inserted. The index on name and run would do alone, but servers on PostgreSQL
// take a second to see that two inserts of one key wait for each other.
type runDoc struct {
	Title string        `bson:"_id"`
	Plan  bson.ObjectID `bson:"plan"`
	At    time.Time     `bson:"at"`
}

// highestRun is the highest run of a name of which plans were deleted, among those: no run comes again.
type highestRun struct {
	Name string `bson:"_id"`
	Run  int    `bson:"run"`
}
