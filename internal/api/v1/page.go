package v1

import (
	"context"
	"strings"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A list with params or outputs is read from the store in portions, and its page ends early when it
// has many bytes. So a request holds at most a portion and a page, however many tasks it asks for
// and whatever they contain.
const (
	pageBytes   = 8 << 20 // of params and outputs, plus those of the last plan or task of the page
	plansAtOnce = 64      // whose params have plan.MaxPlanParams at most
	tasksAtOnce = 16      // whose outputs have plan.MaxOutput at most
	fewer       = "A page with more than 8 MiB of params and outputs ends early. There are more if it has a next, however many it holds."
)

// mostLooked is the most plans or tasks that one search reads. It then answers with its results
// so far and the place to continue. So no request occupies the store for long.
const mostLooked = 20_000

// A page counts what is on a page of a list.
type page struct {
	left, bytes int
	next        int  // to read
	atOnce      int  // to read at most
	search      bool // few of those that are read may be on the page, and mostLooked are read
}

// newPage begins a page of so many. First so many are read at once, and then twice as many each time, up to atOnce.
func newPage(first, atOnce, most int) *page { return &page{left: most, next: first, atOnce: atOnce} }

// portion is how many to read next: one more than may be on the page, which tells whether there are
// more.
func (p *page) portion() int {
	n := p.next
	if !p.search {
		n = min(n, p.left)
	}
	p.next = min(2*p.next, p.atOnce)
	return n + 1
}

// add counts one more, and reports whether the page is full.
func (p *page) add(bytes int) bool {
	p.left--
	if p.bytes += bytes; p.bytes >= pageBytes {
		p.left = 0
	}
	return p.left == 0
}

// plans reads a page of the plans whose name has that text.
func (p *page) plans(ctx context.Context, a *API, q store.PlanQuery, state, text string) (*api.PlanList, error) {
	nodes, err := a.inState(ctx, &q, state)
	if err != nil {
		return nil, err
	}
	out := &api.PlanList{Plans: []api.Plan{}}
	for looked, more := 0, true; more && out.Next.IsZero(); {
		q.Limit = p.portion()
		found, err := a.st.Plans(ctx, q)
		if err != nil {
			return nil, err
		}
		more = len(found) == q.Limit
		for i := range found {
			if q.Before = found[i].ID; !contains(found[i].Title(), text) {
				continue
			}
			out.Plans = append(out.Plans, api.ShownPlan(&found[i], nodes))
			if p.add(len(found[i].Params)) && (more || i < len(found)-1) {
				out.Next = q.Before // there may be none after it, and then the next answer is empty
				return out, nil
			}
		}
		if looked += len(found); p.search && more && looked >= mostLooked {
			out.Next = q.Before
		}
	}
	return out, nil
}

// tasks reads a page of the tasks that are kept.
func (p *page) tasks(ctx context.Context, tasks reading, keep func(*plan.Task) bool) (listed []plan.Task, next plan.TaskID, err error) {
	full := false
	for all, more := 0, true; more && next.IsZero(); {
		var found []plan.Task
		var looked int
		if found, looked, more, err = tasks.read(ctx, p.portion()); err != nil {
			return nil, next, err
		}
		for i := range found {
			if !keep(&found[i]) {
				continue
			}
			if full {
				next = listed[len(listed)-1].ID
				break
			}
			listed = append(listed, found[i])
			full = p.add(len(found[i].Params) + len(found[i].Output))
		}
		if all += looked; p.search && more && all >= mostLooked && next.IsZero() {
			next = tasks.at()
		}
	}
	return listed, next, nil
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
