package auth

import (
	"container/list"
	"hash/maphash"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// The limits on wrong passwords. One address may be wrong ten times, and then once each half
// minute. One account may be tried wrongly twenty times from any addresses, and then once each ten
// seconds, which is 8,640 a day. Nothing is locked for longer: a refused caller learns how long to
// wait. An address from which the account logged in before does not wait for guesses from
// elsewhere, nor do sessions and tokens. So an attack keeps out only callers from new addresses,
// and only while it lasts.
const (
	addressBurst = 10
	addressEach  = 30 * time.Second
	accountBurst = 20
	accountEach  = 10 * time.Second
	knownFor     = 30 * 24 * time.Hour
)

// The sizes of the limits' memory, so that guesses cannot fill the memory of the process.
const (
	mostAddresses = 1 << 16
	mostKnown     = 1 << 14
	unknownNames  = 1 << 10 // names of no account share that many
)

// A bucket is how many attempts count, and since when. Each counts until its time has passed.
type bucket struct {
	level float64
	at    time.Time
}

// drain brings the bucket to a time.
func (b *bucket) drain(now time.Time, each time.Duration) {
	b.level = max(0, b.level-float64(now.Sub(b.at))/float64(each))
	b.at = now
}

// wait returns how long it takes until one more attempt fits; 0: it does now.
func (b *bucket) wait(burst int, each time.Duration) time.Duration {
	over := b.level + 1 - float64(burst)
	if over <= 0 {
		return 0
	}
	return time.Duration(over * float64(each))
}

// A recent is a table of the keys that were used last. The others are forgotten.
type recent[K comparable, V any] struct {
	most  int
	at    map[K]*list.Element
	order list.List // of *recentItem, the last used in front
}

type recentItem[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{most: most, at: map[K]*list.Element{}}
}

// get returns the value of a key; nil if there is none.
func (r *recent[K, V]) get(key K) *V {
	e, ok := r.at[key]
	if !ok {
		return nil
	}
	r.order.MoveToFront(e)
	return &e.Value.(*recentItem[K, V]).value
}

// make returns the value of a key, which is new and zero if there was none.
func (r *recent[K, V]) make(key K) *V {
	if v := r.get(key); v != nil {
		return v
	}
	if len(r.at) >= r.most {
		last := r.order.Back()
		delete(r.at, r.order.Remove(last).(*recentItem[K, V]).key)
	}
	item := &recentItem[K, V]{key: key}
	r.at[key] = r.order.PushFront(item)
	return &item.value
}

func (r *recent[K, V]) delete(key K) {
	if e, ok := r.at[key]; ok {
		r.order.Remove(e)
		delete(r.at, key)
	}
}

// A knownLogin is an account and an address from which it was logged in to.
type knownLogin struct {
	account string
	address netip.Prefix
}

// limits decides who has to wait before another password is checked.
type limits struct {
	mu        sync.Mutex
	seed      maphash.Seed
	addresses *recent[netip.Prefix, bucket]
	accounts  *recent[string, bucket]
	known     *recent[knownLogin, time.Time]
}

func newLimits() *limits {
	return &limits{
		seed:      maphash.MakeSeed(),
		addresses: newRecent[netip.Prefix, bucket](mostAddresses),
		// An access file has thousands of users at most; all others share some buckets.
		accounts: newRecent[string, bucket](1<<16 + unknownNames),
		known:    newRecent[knownLogin, time.Time](mostKnown),
	}
}

// account returns the bucket of a name. Names without an account share a bounded number of buckets,
// and a caller cannot choose one.
func (l *limits) account(name string, exists bool) string {
	if exists {
		return name
	}
	return ":" + strconv.FormatUint(maphash.String(l.seed, name)%unknownNames, 10) // no name has a colon
}

// wait returns how long an attempt has to wait; 0 means that its password may be checked now.
func (l *limits) wait(account string, address netip.Prefix, now time.Time) time.Duration {
	return l.attempt(account, address, now, 0)
}

// take counts an attempt before its password is checked, so that concurrent attempts cannot slip
// through. If the attempt has to wait, take returns how long. The caller gives the attempt back if
// the password was right.
func (l *limits) take(account string, address netip.Prefix, now time.Time) time.Duration {
	return l.attempt(account, address, now, 1)
}

func (l *limits) attempt(account string, address netip.Prefix, now time.Time, count float64) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.addresses.make(address)
	from.drain(now, addressEach)
	wait = from.wait(addressBurst, addressEach)
	at := l.known.get(knownLogin{account, address})
	known := at != nil && now.Sub(*at) < knownFor
	var to *bucket
	if !known {
		to = l.accounts.make(account)
		to.drain(now, accountEach)
		wait = max(wait, to.wait(accountBurst, accountEach))
	}
	if wait > 0 {
		return wait
	}
	from.level += count
	if to != nil {
		to.level += count
	}
	return 0
}

// right gives back an attempt whose password was right, and remembers the address.
func (l *limits) right(account string, address netip.Prefix, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	login := knownLogin{account, address}
	at := l.known.get(login)
	wasKnown := at != nil && now.Sub(*at) < knownFor
	l.back(account, address, !wasKnown)
	*l.known.make(login) = now
}

func (l *limits) back(account string, address netip.Prefix, toAccount bool) {
	if b := l.addresses.get(address); b != nil {
		b.level = max(0, b.level-1)
	}
	if b := l.accounts.get(account); b != nil && toAccount {
		b.level = max(0, b.level-1)
	}
}

// A quiet lets the log name an address some times, and then once a minute. Refused requests may
// come thousands of times a second.
type quiet struct {
	mu   sync.Mutex
	from *recent[netip.Prefix, bucket]
}

const (
	quietBurst = 20
	quietEach  = time.Minute
)

func newQuiet() *quiet { return &quiet{from: newRecent[netip.Prefix, bucket](mostAddresses)} }

func (q *quiet) tell(address netip.Prefix, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.from.make(address)
	b.drain(now, quietEach)
	if b.wait(quietBurst, quietEach) > 0 {
		return false
	}
	b.level++
	return true
}
