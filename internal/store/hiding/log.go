package hiding

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// How many more entries of a log are read around a page of it, for a secret that another entry
// begins or ends. The entries before are read in up to two steps, because the first is nearly
// always enough.
const (
	entriesAfter  = 100
	entriesBefore = 100
	mostBefore    = 1000
)

// Log implements store.Reader. A secret is found also where entries cut it, be they in the same page or not.
func (r *reader) Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, 0, err
	}
	entries, next, err := r.Store.Log(ctx, id, after, limit)
	if err != nil || len(entries) == 0 {
		return entries, next, err
	}
	owns, err := r.owns(ctx, s, []plan.TaskID{id})
	if err != nil {
		return nil, 0, err
	}
	o, there := owns[id]
	if !there {
		for i := range entries {
			entries[i].Text = secret.Hidden + "\n"
		}
		return entries, next, nil
	}
	reach, goesOn := secret.LogReach(entries, o.values)
	before, err := r.logBefore(ctx, id, after, entries, reach)
	if err != nil {
		return nil, 0, err
	}
	var behind []plan.LogEntry
	if goesOn {
		if behind, _, err = r.Store.Log(ctx, id, next, entriesAfter); err != nil {
			return nil, 0, err
		}
	}
	secret.HideLog(before, entries, behind, o.values)
	return entries, next, nil
}

// logBefore returns what is before entries, which come after the cursor: so many bytes of each of their streams, if they are among the last
// mostBefore entries.
func (r *reader) logBefore(ctx context.Context, id plan.TaskID, after int64, entries []plan.LogEntry, bytes int) (before []plan.LogEntry, err error) {
	if bytes == 0 || after <= 0 {
		return nil, nil
	}
	for _, n := range []int64{entriesBefore, mostBefore} {
		from := max(0, after-n)
		if before, err = r.upTo(ctx, id, from, after); err != nil || from == 0 || secret.LogReaches(before, entries, bytes) {
			break
		}
	}
	return before, err
}

// upTo returns the entries after one cursor up to another. Each entry raises a cursor by one, or by more.
func (r *reader) upTo(ctx context.Context, id plan.TaskID, from, to int64) ([]plan.LogEntry, error) {
	read, next, err := r.Store.Log(ctx, id, from, int(to-from))
	if err != nil || next <= to {
		return read, err
	}
	least, most := 0, len(read)-1 // numbers are left out, and so entries behind were read, too: how many are not is found by halves
	for least < most {
		half := (least + most + 1) / 2
		if _, next, err = r.Store.Log(ctx, id, from, half); err != nil {
			return nil, err
		}
		if next <= to {
			least = half
		} else {
			most = half - 1
		}
	}
	return read[:least], nil
}
