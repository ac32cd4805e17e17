package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Why a password did not let its user in.
var (
	errPassword = errors.New("the name or the password is wrong")
	errBusy     = errors.New("too many passwords are being checked; try again in a moment")
)

// A waitError says that too many passwords were wrong.
type waitError struct{ wait time.Duration }

func (e *waitError) Error() string {
	return fmt.Sprintf("too many passwords were wrong; try again in %d s", e.seconds())
}

func (e *waitError) seconds() int { return int((e.wait + time.Second - 1) / time.Second) }

// The limits on the cost of password checks, whoever sends the passwords.
const (
	atOnce      = 2  // are hashed
	mostWaiting = 64 // for that
	rightFor    = 5 * time.Minute
	mostRight   = 1 << 10
)

// A verifier checks passwords. Old clients send a password with each request, by HTTP's Basic
// authentication. The verifier remembers a right one for some minutes, by a hash whose key dies
// with the process.
type verifier struct {
	limits  *limits
	key     []byte
	slots   chan struct{}
	waiting atomic.Int32
	nobody  passwordHash // is of no password: what costs those their time who have none

	mu    sync.Mutex
	right *recent[[sha256.Size]byte, time.Time] // when each was checked
}

func newVerifier() *verifier {
	v := &verifier{
		limits: newLimits(), key: make([]byte, sha256.Size), slots: make(chan struct{}, atOnce),
		nobody: passwordHash{memory: hashMemory, passes: hashPasses, lanes: hashLanes, salt: make([]byte, hashSalt), key: make([]byte, hashKey)},
		right:  newRecent[[sha256.Size]byte, time.Time](mostRight),
	}
	rand.Read(v.key)
	rand.Read(v.nobody.key)
	return v
}

// verify returns the user of a name and a password. It does as much work for a name that nobody has.
func (v *verifier) verify(ctx context.Context, a *Access, name, password string, c caller) (*User, error) {
	u, hash, kept := a.user(name), v.nobody, ""
	if u != nil {
		hash, kept = u.hash, u.Password
	}
	seen := v.digest(name, password, kept)
	if v.wasRight(seen, time.Now()) && u != nil {
		return u, nil
	}
	account, network := v.limits.account(name, u != nil), c.network()
	if wait := v.limits.wait(account, network, time.Now()); wait > 0 {
		return nil, &waitError{wait}
	}
	if v.waiting.Add(1) > mostWaiting {
		v.waiting.Add(-1)
		return nil, errBusy
	}
	defer v.waiting.Add(-1)
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := time.Now()
	if v.wasRight(seen, now) && u != nil { // of several at once the first was
		return u, nil
	}
	if wait := v.limits.take(account, network, now); wait > 0 {
		return nil, &waitError{wait}
	}
	if len(password) > MostPassword || !hash.matches(password) || u == nil {
		return nil, errPassword
	}
	now = time.Now()
	v.limits.right(account, network, now)
	v.mu.Lock()
	defer v.mu.Unlock()
	*v.right.make(seen) = now
	return u, nil
}

func (v *verifier) wasRight(seen [sha256.Size]byte, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.right.get(seen)
	return at != nil && now.Sub(*at) < rightFor
}

// digest identifies a name and a password while the file keeps that hash of it.
func (v *verifier) digest(name, password, kept string) (sum [sha256.Size]byte) {
	m := hmac.New(sha256.New, v.key)
	for _, part := range []string{name, password, kept} {
		_ = binary.Write(m, binary.BigEndian, uint64(len(part))) // a hash takes all
		m.Write([]byte(part))
	}
	return [sha256.Size]byte(m.Sum(nil))
}

// user returns the user of that name; nil if there is none.
func (a *Access) user(name string) *User {
	i := slices.IndexFunc(a.Users, func(u User) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return &a.Users[i]
}
