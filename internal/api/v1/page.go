package v1

// A list with params or outputs is read from the store in portions, and its page ends early when it
// has many bytes. So a request holds at most a portion and a page, however many tasks it asks for
// and whatever they contain.
const (
	pageBytes   = 8 << 20 // of params and outputs, plus those of the last plan or task of the page
	plansAtOnce = 64      // whose params have plan.MaxPlanParams at most
	tasksAtOnce = 16      // whose outputs have plan.MaxOutput at most
	fewer       = "A page with more than 8 MiB of params and outputs ends early. There are more if it has a next, however many it holds."
)

// A page counts what is on a page of a list.
type page struct{ left, bytes, next, atOnce int }

// newPage begins a page of so many. First so many are read at once, and then twice as many each time, up to atOnce.
func newPage(first, atOnce, most int) *page { return &page{left: most, next: first, atOnce: atOnce} }

// portion is how many to read next.
func (p *page) portion() int {
	n := min(p.next, p.left)
	p.next = min(2*p.next, p.atOnce)
	return n
}

// add counts one more, and reports whether the page is full.
func (p *page) add(bytes int) bool {
	p.left--
	p.bytes += bytes
	return p.left == 0 || p.bytes >= pageBytes
}
