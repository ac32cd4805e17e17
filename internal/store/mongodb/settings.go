package mongodb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// settingsTogether is the version of the schema from which on a queue has its plan.QueueSettings in one field.
const settingsTogether = 3

// apartSettings are the fields that a queue had before.
type apartSettings struct {
	ID      bson.ObjectID `bson:"_id"`
	OnLost  word          `bson:"onlost"`
	Secrets nodeNames     `bson:"secrets"`
	Keep    bson.RawValue `bson:"keep"`
}

// gatherSettings puts the settings that queues have in fields of their own into one.
func (s *Store) gatherSettings(ctx context.Context) error {
	apart := d("$or", bson.A{d("onlost", d("$exists", true)), d("secrets", d("$exists", true)), d("keep", d("$exists", true))})
	g := s.Series(ctx)
	for _, raw := range wire.FindIn[bson.Raw](g, s.queues, apart, wire.Query{Fields: ones("onlost secrets keep")}) {
		var q apartSettings
		if err := bson.Unmarshal(raw, &q); err != nil {
			return fmt.Errorf("the settings of a queue: %w", err)
		}
		var keep map[string]word
		_ = q.Keep.Unmarshal(&keep) // what cannot be read was ignored before, too
		maps.DeleteFunc(keep, func(_ string, age word) bool {
			_, err := time.ParseDuration(string(age))
			return err != nil
		})
		text, err := json.Marshal(map[string]any{"on_lost": q.OnLost, "secrets": q.Secrets, "keep": keep})
		if err != nil {
			return fmt.Errorf("the settings of queue %s: %w", q.ID.Hex(), err)
		}
		said := plan.QueueSettingsOf(string(text))
		g.UpdateOne(s.queues, d("_id", q.ID), d("$set", d("settings", said.Text()), "$unset", ones("onlost secrets keep")))
	}
	return g.Err
}
