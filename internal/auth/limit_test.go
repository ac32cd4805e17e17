package auth

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func network(text string) netip.Prefix { return caller{client: netip.MustParseAddr(text)}.network() }

func TestAnAddressMayBeWrongTenTimesAndThenEachHalfMinute(t *testing.T) {
	l, now, from := newLimits(), time.Unix(1e9, 0), network("192.0.2.1")
	for i := range addressBurst {
		if wait := l.take(fmt.Sprint("user", i), from, now); wait != 0 {
			t.Fatalf("attempt %d waits %v", i+1, wait)
		}
	}
	if wait := l.take("other", from, now); wait != addressEach {
		t.Errorf("the next waits %v, want %v", wait, addressEach)
	}
	if wait := l.take("other", network("192.0.2.2"), now); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	if wait := l.take("other", from, now.Add(addressEach)); wait != 0 {
		t.Errorf("after its time it waits %v", wait)
	}
	if wait := l.take("other", from, now.Add(addressEach)); wait == 0 {
		t.Error("two pass after the time of one")
	}
}

func TestAnAddressOfIPv6IsANetwork(t *testing.T) {
	if network("2001:db8::1") != network("2001:db8::ffff:2") || network("2001:db8::1") == network("2001:db8:0:1::1") {
		t.Error("a network of 64 bits is not one address, or others are the same")
	}
	if network("192.0.2.1") == network("192.0.2.2") {
		t.Error("two addresses of IPv4 are one")
	}
}

func TestAnAttackFromManyAddressesIsSlowAndKeepsNobodyOutForGood(t *testing.T) {
	l, now, home := newLimits(), time.Unix(1e9, 0), network("198.51.100.7")
	if l.take("alice", home, now) != 0 {
		t.Fatal("the first attempt waits")
	}
	l.right("alice", home, now)
	let := 0
	const long = time.Hour
	for i := range 20_000 { // addresses, over an hour
		at := now.Add(long * time.Duration(i) / 20_000)
		if l.take("alice", netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32), at) == 0 {
			let++
		}
	}
	if most := accountBurst + int(long/accountEach); let > most || let < most-2 {
		t.Errorf("%d attempts were let through in %v, want %d", let, long, most)
	}
	now = now.Add(long)
	if wait := l.take("alice", home, now); wait != 0 {
		t.Errorf("from an address that alice logged in from she waits %v", wait)
	}
	if wait := l.take("alice", network("203.0.113.1"), now); wait > accountEach {
		t.Errorf("from another one she waits %v, want %v at most", wait, accountEach)
	}
	if wait := l.take("bob", network("203.0.113.2"), now); wait != 0 {
		t.Errorf("bob waits %v", wait)
	}
	if wait := l.take("alice", network("203.0.113.1"), now.Add(accountEach)); wait != 0 {
		t.Errorf("when the attack is over she waits %v", wait)
	}
}

func TestARightPasswordCountsNot(t *testing.T) {
	l, now, from := newLimits(), time.Unix(1e9, 0), network("192.0.2.1")
	for i := range 100 {
		if wait := l.take("alice", from, now); wait != 0 {
			t.Fatalf("login %d waits %v", i+1, wait)
		}
		l.right("alice", from, now)
	}
	for range addressBurst - 1 { // and does not make up for wrong ones
		l.take("bob", from, now)
	}
	l.take("alice", from, now)
	l.right("alice", from, now)
	l.take("bob", from, now)
	if l.wait("bob", from, now) == 0 {
		t.Error("who has an account of his own may guess at others for ever")
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	l, now := newLimits(), time.Unix(1e9, 0)
	for i := range mostAddresses + 1000 {
		from := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
		l.take(l.account(fmt.Sprint("nobody", i), false), from, now)
		l.right("alice", from, now)
	}
	if a, n, k := len(l.addresses.at), len(l.accounts.at), len(l.known.at); a > mostAddresses || n > unknownNames+1 || k > mostKnown {
		t.Errorf("remembered are %d addresses, %d accounts, %d logins", a, n, k)
	}
	if a := l.account("alice", true); a != "alice" || a == l.account("alice", false) {
		t.Errorf("alice counts as %q", a)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s, now := newSessions(), time.Unix(1e9, 0)
	alice, bob := &User{Name: "alice"}, &User{Name: "bob"}
	a := &Access{Users: []User{*alice, *bob}}
	first, _ := s.begin(alice, now)
	kept, _ := s.begin(bob, now)
	for range mostSessionsOfAUser {
		s.begin(alice, now)
	}
	if _, u := s.use(first, a, now); u != nil {
		t.Error("the oldest session of too many goes on")
	}
	if _, u := s.use(kept, a, now); u == nil {
		t.Error("another user's session has ended")
	}
	if got := len(s.all.at); got != mostSessionsOfAUser+1 {
		t.Errorf("there are %d sessions, want %d", got, mostSessionsOfAUser+1)
	}
	s.begin(bob, now.Add(SessionIdle))
	if got := len(s.all.at); got != 1 {
		t.Errorf("there are %d sessions after the others were over, want 1", got)
	}
}
