package mongodb

import (
	"context"
	"encoding/json"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Reporter = (*Store)(nil)

// Report implements store.Reporter: the document goes into the collection reports, where Disbatch's plugins write theirs. It is read as
// Extended JSON, so that it can have ids and dates; an _id of its own gives way to the id.
func (s *Store) Report(ctx context.Context, id plan.ID, document json.RawMessage) error {
	var fields bson.D
	if err := bson.UnmarshalExtJSON(document, false, &fields); err != nil {
		return fmt.Errorf("a report is an object in JSON, or MongoDB's Extended JSON: %w", err)
	}
	doc := d("_id", oid(id))
	for _, f := range fields {
		if f.Key != "_id" {
			doc = append(doc, f)
		}
	}
	if _, err := s.Insert(ctx, s.DB.Collection("reports"), doc); err != nil {
		return fmt.Errorf("write to the collection reports: %w", err)
	}
	return nil
}
