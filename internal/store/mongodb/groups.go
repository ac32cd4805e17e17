package mongodb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// readGroups reads all groups, by name.
func (s *Store) readGroups(ctx context.Context) (docs []groupDoc, groups []plan.Group, err error) {
	docs, err = wire.Find[groupDoc](ctx, s.groups, d(), wire.Query{Sort: d("_id", 1)})
	about(&err, "read groups")
	for i := range docs {
		groups = append(groups, docs[i].domain())
	}
	return docs, groups, err
}

// Groups implements store.Reader.
func (s *Store) Groups(ctx context.Context) ([]plan.Group, error) {
	_, groups, err := s.readGroups(ctx)
	return groups, err
}

// PutGroup implements store.Admin. It takes back what it wrote if the groups are not as they must be
// afterwards: of two writers that do not see each other before, the later one sees the other after.
func (s *Store) PutGroup(ctx context.Context, was, g plan.Group) (err error) {
	defer func() {
		if !refusal.Is(err) { // these name the group
			about(&err, "write group %q", g.Name)
		}
	}()
	for range tries {
		docs, groups, err := s.readGroups(ctx)
		if err != nil {
			return err
		}
		change, err := rules.SetGroup(groups, &was, &g)
		if err != nil {
			return err
		}
		is := slices.IndexFunc(docs, func(d groupDoc) bool { return d.Name == g.Name })
		if !change {
			return s.putIn(ctx, g.Parent, func() error { return s.outOf(ctx, &docs[is]) })
		}
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		g.Changed = time.Time{}
		made, text := true, g.Text()
		if is < 0 {
			taken, err := s.Insert(ctx, s.groups, groupDoc{Name: g.Name, Doc: text, Changed: now})
			if err != nil {
				return err
			}
			made = taken == 0
		} else {
			where, set := d("_id", g.Name, "doc", docs[is].Doc), d("doc", text, "changed", now)
			respend(&where, &set, docs[is].Spent, rules.GroupSpent(groups, &g, now))
			if made, err = s.UpdateOne(ctx, s.groups, where, d("$set", set)); err != nil {
				return err
			}
		}
		if !made {
			continue
		}
		back := func() error {
			if is < 0 {
				_, err := s.Remove(ctx, s.groups, d("_id", g.Name, "doc", text))
				return err
			}
			_, err := s.UpdateOne(ctx, s.groups, d("_id", g.Name, "doc", text), d("$set", d("doc", docs[is].Doc, "changed", docs[is].Changed)))
			return err
		}
		if err := s.putIn(ctx, g.Parent, back); err != nil {
			return err
		}
		if g.Parent != "" {
			if _, groups, err = s.readGroups(ctx); err != nil {
				return err
			}
			if err := rules.CheckGroup(groups, &g); err != nil {
				return cmp.Or(back(), err)
			}
		}
		return s.wakeOthers(ctx, true) // more may be claimed now
	}
	return plan.ErrConflict
}

// putIn is called once something says that it is in a group, and keeps a deletion from the group that
// has not seen that. If the group is gone, it takes back what was written.
func (s *Store) putIn(ctx context.Context, group string, back func() error) error {
	if group == "" {
		return nil
	}
	there, err := s.UpdateOne(ctx, s.groups, d("_id", group), d("$unset", ones("leaving")))
	if err != nil || there {
		return err
	}
	return cmp.Or(back(), refusal.New(plan.ErrNotFound, "group %q is not there any more; make it again: sluice group create %s", group, group))
}

// outOf takes a group out of its parent.
func (s *Store) outOf(ctx context.Context, g *groupDoc) error {
	is := plan.GroupOf(g.Name, g.Doc)
	is.Parent = ""
	_, err := s.UpdateOne(ctx, s.groups, d("_id", g.Name, "doc", g.Doc), d("$set", d("doc", is.Text())))
	return err
}

// DeleteGroup implements store.Admin. A writer that puts something into the group takes the mark off,
// and the deletion then does not happen: see putIn.
func (s *Store) DeleteGroup(ctx context.Context, was plan.Group) error {
	mark := bson.NewObjectID()
	doc, err := s.deletable(ctx, &was)
	if err != nil {
		return err
	}
	marked, err := s.UpdateOne(ctx, s.groups, d("_id", was.Name, "doc", doc.Doc), d("$set", d("leaving", mark)))
	if err == nil && marked {
		_, err = s.deletable(ctx, &was)
	}
	if err != nil {
		return err
	}
	n, err := s.Remove(ctx, s.groups, d("_id", was.Name, "doc", doc.Doc, "leaving", mark))
	if err == nil && n == 0 {
		err = refusal.New(plan.ErrConflict, "group %q was changed meanwhile, or something was put into it; look at it, and ask again", was.Name)
	}
	return err
}

// deletable returns the group as it is, or why it cannot be deleted.
func (s *Store) deletable(ctx context.Context, was *plan.Group) (doc groupDoc, err error) {
	docs, groups, err := s.readGroups(ctx)
	if err != nil {
		return doc, err
	}
	queues, err := s.Queues(ctx)
	if err != nil {
		return doc, err
	}
	if err := rules.CheckDeleteGroup(groups, queues, was); err != nil {
		return doc, err
	}
	return docs[slices.IndexFunc(docs, func(d groupDoc) bool { return d.Name == was.Name })], nil
}

// checkInGroup returns why a queue cannot be in its group.
func (s *Store) checkInGroup(ctx context.Context, q *plan.Queue) error {
	if q.Group == "" {
		return nil
	}
	_, groups, err := s.readGroups(ctx)
	if err != nil {
		return err
	}
	return rules.CheckInGroup(groups, q)
}

// putQueueIn is putIn for a queue that was written, and was as it is said to have been.
func (s *Store) putQueueIn(ctx context.Context, was, q plan.Queue) error {
	return s.putIn(ctx, q.Group, func() error {
		if was.Group == q.Group {
			was.Group = ""
		}
		_, err := s.writeQueue(ctx, d("_id", oid(q.ID.ID), "settings", q.Text()), was, was)
		return err
	})
}

// auditGroups takes queues and groups out of groups that are not there, and groups out of groups that
// are in others: a writer died before it could take back what it had written.
func (r *round) auditGroups(ctx context.Context) error {
	queues, err := r.allQueues(ctx, "_id")
	if err != nil {
		return err
	}
	docs, groups, err := r.readGroups(ctx)
	for i := range queues {
		q := queues[i].domain()
		if err != nil || rules.CheckInGroup(groups, &q) == nil {
			continue
		}
		was := q
		q.Group = ""
		_, err = r.writeQueue(ctx, d("_id", queues[i].ID, "settings", string(queues[i].Settings)), was, q)
	}
	for i := range groups {
		if err == nil && rules.CheckGroup(groups, &groups[i]) != nil {
			groups[i].Parent = ""
			err = r.outOf(ctx, &docs[i])
		}
	}
	return err
}
