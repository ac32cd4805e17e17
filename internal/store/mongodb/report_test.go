package mongodb

import (
	"encoding/json"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/internal/store/storetest"
	"github.com/seed-1177d267/sluice/plan"
)

func TestReports(t *testing.T) {
	s, db, no := openTest(t)
	storetest.Reports(t, s, func() (kept []string) {
		c, err := db.Collection("reports").Find(t.Context(), bson.D{}, options.Find().SetSort(d("_id", 1)).SetProjection(d("_id", 0)))
		no(err)
		for c.Next(t.Context()) {
			var fields bson.D
			no(c.Decode(&fields))
			text, err := bson.MarshalExtJSON(fields, false, false)
			no(err)
			kept = append(kept, string(text))
		}
		return kept
	})
}

func TestAReportHasTheTypesOfMongoDB(t *testing.T) {
	s, db, no := openTest(t)
	id := plan.NewID(time.Now())
	no(s.Report(t.Context(), id, json.RawMessage(`{"_id": 7, "task_id": {"$oid": "56fc05087aa3a33942e42a6a"}, "started": 1448150400, "at": {"$date": "2026-01-02T03:04:05Z"}}`)))
	var got struct {
		ID      bson.ObjectID `bson:"_id"`
		Task    bson.ObjectID `bson:"task_id"`
		Started int32
		At      time.Time
	}
	no(db.Collection("reports").FindOne(t.Context(), bson.D{}).Decode(&got))
	if got.ID != oid(id) || got.Task.Hex() != "56fc05087aa3a33942e42a6a" || got.Started != 1448150400 || got.At.UTC().Format(time.DateTime) != "2026-01-02 03:04:05" {
		t.Errorf("the report is %+v", got)
	}
}
