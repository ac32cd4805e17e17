package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// mostBehind is how many queued tasks are looked at for those that a task waits behind.
const mostBehind = 10_000

// A crowd is queued tasks of one plan, or of none.
type crowd struct {
	plan  plan.PlanID
	items int // of foreach tasks
	count int // items and others
}

// behind says which tasks of its queue a queued task waits behind, and with which plans its own takes
// turns there; "" if there are none.
func (e *explainer) behind(t *plan.Task, q *plan.Queue) (string, error) {
	waiting, err := e.r.Tasks(e.ctx, store.TaskQuery{Queue: q.ID, Statuses: []plan.Status{plan.Queued}, Limit: mostBehind})
	if err != nil {
		return "", err
	}
	ahead, turns := map[plan.PlanID]*crowd{}, map[plan.PlanID]*crowd{}
	for i := range waiting {
		w, in := &waiting[i], ahead
		switch {
		case w.ID == t.ID:
			continue
		case w.Plan != t.Plan && q.Sort == plan.SortDefault:
			in = turns
		case rules.ClaimOrder(q.Sort, w, t) > 0:
			continue
		}
		if in[w.Plan] == nil {
			in[w.Plan] = &crowd{plan: w.Plan}
		}
		if in[w.Plan].count++; !w.Of.IsZero() {
			in[w.Plan].items++
		}
	}
	text, err := e.crowds("behind ", ahead)
	if err != nil {
		return "", err
	}
	with, err := e.crowds("in turn with ", turns)
	if text != "" && with != "" {
		text += ", "
	}
	return text + with, err
}

// crowds lists the largest crowds after a word, as in "behind 323 items of bigd#1"; "" if there are none.
func (e *explainer) crowds(word string, by map[plan.PlanID]*crowd) (string, error) {
	var all []*crowd
	for _, c := range by {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *crowd) int {
		return cmp.Or(cmp.Compare(b.count, a.count), slices.Compare(a.plan.ID[:], b.plan.ID[:]))
	})
	var words []string
	for _, c := range all {
		of := "no plan"
		if !c.plan.IsZero() && len(words) < mostWords {
			p, err := e.r.Plan(e.ctx, c.plan)
			if err != nil {
				return "", err
			}
			of = p.Title()
		}
		what := "task"
		if c.items == c.count {
			what = "item"
		}
		if c.count > 1 {
			what += "s"
		}
		words = append(words, fmt.Sprintf("%d %s of %s", c.count, what, of))
	}
	if len(words) == 0 {
		return "", nil
	}
	return word + few(words), nil
}
