package items

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// ByKey returns the items that a word such as copy[anna] names by their key, or by their value if that is
// a text or a number: several if their list has doubles, and none if the word is no such word. A key that is a
// number stands in quotes, since copy[7] is an index. The items have Needs and Params.
func ByKey(ctx context.Context, r store.TaskReader, p plan.PlanID, word string) (found []plan.Task, err error) {
	of, key, is := strings.Cut(word, "[")
	key, closed := strings.CutSuffix(key, "]")
	if !is || !closed {
		return nil, nil
	}
	if text, quoted := jsontext.TextOf(json.RawMessage(key)); quoted {
		key = text
	} else if _, err := strconv.Atoi(key); err == nil {
		return nil, nil
	}
	heads, err := r.Tasks(ctx, store.TaskQuery{Plan: p, Name: of, Limit: 1})
	if err != nil || len(heads) == 0 {
		return nil, err
	}
	err = store.EachTask(ctx, r, store.TaskQuery{Plan: p, Of: heads[0].ID, Needs: true, Params: true}, func(t *plan.Task) error {
		if rules.HasKey(t, key) {
			found = append(found, *t)
		}
		return nil
	})
	return found, err
}
