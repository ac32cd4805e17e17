package mongodb

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Schedules = (*Store)(nil)

// A scheduleDoc is a schedule: one JSON text beside what queries ask for.
type scheduleDoc struct {
	ID       bson.ObjectID `bson:"_id"`
	Name     string        `bson:"name"`
	Revision int64         `bson:"revision"`
	Due      *time.Time    `bson:"due"` // none: nothing is to be looked for
	Doc      string        `bson:"doc"`
	File     string        `bson:"file"` // the text of its plan file
}

// PutSchedules implements store.Schedules: new schedules in one command, and changes in another. A
// read tells which of them were refused.
func (s *Store) PutSchedules(ctx context.Context, schedules []plan.Schedule) (refused []error, err error) {
	defer about(&err, "write schedules")
	refused = make([]error, len(schedules))
	var made []any
	var changes []wire.Change
	written := make([]scheduleDoc, len(schedules))
	for i := range schedules {
		w := &written[i]
		*w = scheduleDoc{ID: oid(schedules[i].ID.ID), Name: schedules[i].Name, Revision: schedules[i].Revision + 1}
		if w.Doc, w.File, refused[i] = schedules[i].Text(); refused[i] != nil {
			continue
		}
		if at := schedules[i].Due(); !at.IsZero() {
			w.Due = &at
		}
		if w.Revision == 1 {
			made = append(made, w)
			continue
		}
		set := d("revision", w.Revision, "due", w.Due, "doc", w.Doc)
		set = addIf(set, w.File != "", "file", w.File)
		changes = append(changes, wire.Change{ID: w.ID, Where: d("revision", schedules[i].Revision), Update: d("$set", set)})
	}
	taken, err := s.Insert(ctx, s.schedules, made...)
	if err != nil {
		return nil, err
	}
	matched, err := s.Bulk(ctx, s.schedules, changes)
	if err != nil || taken == 0 && matched == len(changes) {
		return refused, err
	}
	ids := make(idList, len(written))
	for i := range written {
		ids[i] = written[i].ID
	}
	found, err := wire.Find[scheduleDoc](ctx, s.schedules, d("_id", d("$in", ids)), wire.Query{Fields: ones("revision doc")})
	if err != nil {
		return nil, err
	}
	there := make(map[bson.ObjectID]*scheduleDoc, len(found))
	for i := range found {
		there[found[i].ID] = &found[i]
	}
	for i := range written {
		w, is := &written[i], there[written[i].ID]
		switch {
		case refused[i] != nil, is != nil && is.Revision == w.Revision && is.Doc == w.Doc:
		case is != nil:
			refused[i] = fmt.Errorf("schedule %q was changed meanwhile: %w", w.Name, plan.ErrConflict)
		case w.Revision == 1:
			refused[i] = fmt.Errorf("schedule %q: %w", w.Name, plan.ErrExists)
		default:
			refused[i] = fmt.Errorf("schedule %q: %w", w.Name, plan.ErrNotFound)
		}
	}
	return refused, nil
}

// Schedules implements store.Schedules.
func (s *Store) Schedules(ctx context.Context, q store.ScheduleQuery) (found []plan.Schedule, err error) {
	defer about(&err, "read schedules")
	look := wire.Query{Sort: d("name", 1), Limit: cmp.Or(q.Limit, 100)}
	match := d()
	switch {
	case q.Name != "":
		match = d("name", q.Name)
	case !q.Due.IsZero():
		match, look.Sort = d("due", d("$lte", q.Due)), d("due", 1)
	case q.After != "":
		match = d("name", d("$gt", q.After))
	}
	if !q.Files {
		look.Fields = d("file", 0)
	}
	docs, err := wire.Find[scheduleDoc](ctx, s.schedules, match, look)
	if err != nil {
		return nil, err
	}
	for i := range docs {
		one, err := plan.ScheduleOf(docs[i].Doc, docs[i].Revision, docs[i].File)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// DeleteSchedule implements store.Schedules.
func (s *Store) DeleteSchedule(ctx context.Context, id plan.ScheduleID) error {
	n, err := s.Remove(ctx, s.schedules, d("_id", oid(id.ID)))
	if err == nil && n == 0 {
		err = plan.ErrNotFound
	}
	about(&err, "schedule %s", id)
	return err
}
