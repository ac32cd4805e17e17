package den

import (
	"sync"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// mostReached is of how many attempts a node tells how far they are: their texts are in one document of the store.
const mostReached = 10_000

// A board has what running attempts said last of how far they are, for the heart to tell. Any number of goroutines may use it.
type board struct {
	mu   sync.Mutex
	said map[*attempt]plan.Progress
	news bool // it is not what the heart took last
}

// set takes what an attempt says.
func (b *board) set(a *attempt, p plan.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, known := b.said[a]
	if a.over || known && was == p || !known && len(b.said) >= mostReached {
		return
	}
	if b.said == nil {
		b.said = map[*attempt]plan.Progress{}
	}
	b.said[a], b.news = p, true
}

// drop forgets an attempt that is over. A process that the attempt left behind may still report; the node ignores these reports.
func (b *board) drop(a *attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.over = true; len(b.said) > 0 {
		_, known := b.said[a]
		delete(b.said, a)
		b.news = b.news || known
	}
}

// take returns what all attempts said, not nil, if that is new; else nil.
func (b *board) take() []protocol.Reached {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.news {
		return nil
	}
	b.news = false
	all := make([]protocol.Reached, 0, len(b.said))
	for a, p := range b.said {
		all = append(all, protocol.Reached{Claim: a.task.Claim, Progress: p})
	}
	return all
}

// again says that the store may not have got what was taken.
func (b *board) again() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.news = true
}
