//go:build unix

package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/internal/polltest"
)

func TestGuessingIsSlow(t *testing.T) {
	f, _ := everybody(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, f)
		guess := func(from, name, password string) *httptest.ResponseRecorder {
			return b.do(from, "GET", "/plans", "Authorization", basic(name, password))
		}
		const attacker, home = "192.0.2.66", "198.51.100.1"
		if w := guess(home, "admin", password); w.Code != http.StatusOK {
			t.Fatalf("a login: %d", w.Code)
		}
		looked, began := 0, time.Now()
		for time.Since(began) < 10*time.Minute {
			switch w := guess(attacker, "admin", fmt.Sprint("guess", looked)); w.Code {
			case http.StatusUnauthorized:
				looked++
			case http.StatusTooManyRequests:
				if after := w.Header().Get("Retry-After"); after == "" || after == "0" {
					t.Fatalf("Retry-After is %q", after)
				}
			default:
				t.Fatalf("a guess: %d", w.Code)
			}
			time.Sleep(time.Second)
		}
		if most := addressBurst + int(10*time.Minute/addressEach) + 1; looked > most {
			t.Errorf("%d passwords were looked at in 10 minutes, want %d at most", looked, most)
		}
		// Not even the right one helps who has to wait, or he would know it.
		for guess(attacker, "admin", "wrong").Code != http.StatusTooManyRequests {
		}
		if w := guess(attacker, "editor", password); w.Code != http.StatusTooManyRequests {
			t.Errorf("the right password meanwhile: %d", w.Code)
		}
		if w := guess(home, "admin", password); w.Code != http.StatusOK {
			t.Errorf("admin at home: %d", w.Code)
		}
		if w := guess("203.0.113.5", "editor", password); w.Code != http.StatusOK {
			t.Errorf("editor elsewhere: %d", w.Code)
		}
		// Names of nobody are counted as those of somebody.
		for i := range 2 * addressBurst {
			code := guess("192.0.2.77", "nobody", "x").Code
			if want := map[bool]int{true: 401, false: 429}[i < addressBurst]; code != want {
				t.Errorf("guess %d at nobody: %d, want %d", i+1, code, want)
			}
		}
		time.Sleep(addressEach)
		if w := guess(attacker, "editor", password); w.Code != http.StatusOK {
			t.Errorf("after the wait: %d", w.Code)
		}
	})
}

// atOnceVerify holds n attempts at the check of the password, releases them together, and counts
// how they ended.
func atOnceVerify(t *testing.T, n int, attempt func(v *verifier, i int) error) map[string]int {
	t.Helper()
	v := newVerifier()
	for range atOnce {
		v.slots <- struct{}{}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	ended := map[string]int{}
	for i := range n {
		all.Go(func() {
			err := attempt(v, i)
			mu.Lock()
			defer mu.Unlock()
			ended[strings.TrimRight(fmt.Sprint(err), "0123456789 s")]++
		})
	}
	polltest.Until(t, time.Minute, "all wait", func() bool { return v.waiting.Load() >= int32(min(n, mostWaiting)) })
	for range atOnce {
		<-v.slots
	}
	all.Wait()
	return ended
}

func TestGuessesAtOnceDoNotSlipThrough(t *testing.T) {
	f, _ := everybody(t)
	from := caller{client: network("192.0.2.1").Addr()}
	got := atOnceVerify(t, 50, func(v *verifier, i int) error {
		_, err := v.verify(t.Context(), f.Access(), "admin", fmt.Sprint("guess", i), from)
		return err
	})
	if got[errPassword.Error()] != addressBurst || got["too many passwords were wrong; try again in"] != 50-addressBurst {
		t.Errorf("attempts ended so: %v; want %d passwords looked at", got, addressBurst)
	}
}

func TestOldClientsThatComeAtOnceAreLetIn(t *testing.T) {
	a := &Access{Users: []User{{Name: "alice", Password: HashPassword(password), Role: Viewer}}}
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := atOnceVerify(t, mostWaiting, func(v *verifier, _ int) error {
		_, err := v.verify(t.Context(), a, "alice", password, caller{})
		return err
	})
	runtime.ReadMemStats(&after)
	if got["<nil>"] != mostWaiting {
		t.Errorf("attempts ended so: %v", got)
	}
	if hashed := (after.TotalAlloc - before.TotalAlloc) / (hashMemory << 10); hashed > 2*atOnce {
		t.Errorf("one password was hashed %d times", hashed)
	}
}

func TestPasswordsWaitInALineThatEnds(t *testing.T) {
	f, _ := everybody(t)
	v := newVerifier()
	for range atOnce {
		v.slots <- struct{}{}
	}
	verify := func(ctx context.Context) error {
		_, err := v.verify(ctx, f.Access(), "admin", password, caller{})
		return err
	}
	hangUp, gone := context.WithCancel(t.Context())
	gone()
	if err := verify(hangUp); !errors.Is(err, context.Canceled) || v.waiting.Load() != 0 {
		t.Errorf("who hung up gets %v; %d wait", err, v.waiting.Load())
	}
	var all sync.WaitGroup
	for range mostWaiting {
		all.Go(func() {
			if err := verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	polltest.Until(t, time.Minute, "all wait", func() bool { return v.waiting.Load() >= mostWaiting })
	if err := verify(t.Context()); !errors.Is(err, errBusy) {
		t.Errorf("one more gets %v", err)
	}
	for range atOnce {
		<-v.slots
	}
	all.Wait()
}

func TestANameOfNobodyCostsAsMuchAsOneOfSomebody(t *testing.T) {
	a := &Access{Users: []User{{Name: "alice", Password: HashPassword(password), Role: Viewer}}}
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
	if h, n := a.Users[0].hash, newVerifier().nobody; h.memory != n.memory || h.passes != n.passes || h.lanes != n.lanes || len(h.key) != len(n.key) || len(h.salt) != len(n.salt) {
		t.Errorf("a password costs %+v, none %+v", h, n)
	}
	took := func(name, password string) uint64 { // bytes: what is measured is the work, not the machine
		var before, after runtime.MemStats
		v := newVerifier()
		runtime.ReadMemStats(&before)
		if _, err := v.verify(t.Context(), a, name, password, caller{}); !errors.Is(err, errPassword) {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, wrong := range []string{"wrong", ""} {
		somebody, nobody := took("alice", wrong), took("nobody", wrong)
		if least := uint64(hashMemory) << 10; somebody < least || nobody < least || nobody > 2*least {
			t.Errorf("a wrong password takes %d bytes, a wrong name %d", somebody, nobody)
		}
	}
}
