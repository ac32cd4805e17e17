package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"
)

// How long a session lasts: without a request, and at all.
const (
	SessionIdle = 2 * time.Hour
	SessionMost = 12 * time.Hour
)

// How many sessions there are at most, of all and of one user; the one that was used longest ago ends then.
const (
	mostSessions        = 1 << 13
	mostSessionsOfAUser = 32
)

// A session is a login that lasts. They are in memory: who wants to stay when the server restarts logs in again.
type session struct {
	user     string
	password string // its hash, as the file had it at the login: a new password ends the sessions
	csrf     string
	began    time.Time
	used     time.Time
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.used) >= SessionIdle || now.Sub(s.began) >= SessionMost
}

// sessions are found by the hash of their id, so that nothing of an id can be learnt from how long it takes to look one up.
type sessions struct {
	mu  sync.Mutex
	all *recent[[sha256.Size]byte, session]
}

func newSessions() *sessions {
	return &sessions{all: newRecent[[sha256.Size]byte, session](mostSessions)}
}

// begin makes a session of a user and returns its id.
func (s *sessions) begin(u *User, now time.Time) (id string, made session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for e := s.all.order.Front(); e != nil; {
		item, next := e.Value.(*recentItem[[sha256.Size]byte, session]), e.Next()
		if item.value.user == u.Name {
			own++
		}
		if item.value.over(now) || item.value.user == u.Name && own >= mostSessionsOfAUser {
			s.all.delete(item.key)
		}
		e = next
	}
	id = randomText()
	v := s.all.make(sha256.Sum256([]byte(id)))
	*v = session{user: u.Name, password: u.Password, csrf: randomText(), began: now, used: now}
	return id, *v
}

// use returns the session of an id and its user, if both are still there.
func (s *sessions) use(id string, a *Access, now time.Time) (session, *User) {
	key := sha256.Sum256([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.all.get(key)
	if v == nil {
		return session{}, nil
	}
	u := a.user(v.user)
	if v.over(now) || u == nil || u.Password != v.password {
		s.all.delete(key)
		return session{}, nil
	}
	v.used = now
	return *v, u
}

// look returns the user of a session without using it; nil if it is over.
func (s *sessions) look(id string, a *Access, now time.Time) *User {
	key := sha256.Sum256([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.all.at[key]
	if !ok {
		return nil
	}
	v := &e.Value.(*recentItem[[sha256.Size]byte, session]).value
	u := a.user(v.user)
	if v.over(now) || u == nil || u.Password != v.password {
		return nil
	}
	return u
}

// end ends a session.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.delete(sha256.Sum256([]byte(id)))
}

// Cookies that hold the id of a session. Browsers accept __Host- only over TLS and for exactly this
// host. So neither another host of the domain nor somebody on the line can set one.
const (
	cookieTLS   = "__Host-sluice"
	cookiePlain = "sluice"
)

// cookie returns the cookie of a session, or with "" the cookie that removes it. It is Lax and not
// Strict, so that a person who follows a link in a mail or in CI to a plan is logged in there.
// Other checks guard changes.
func cookie(id string, secure bool) *http.Cookie {
	c := &http.Cookie{Name: cookiePlain, Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if secure {
		c.Name, c.Secure = cookieTLS, true
	}
	if id == "" {
		c.MaxAge = -1
	}
	return c
}

// sessionID returns the id of a session that a request carries; "" if none.
func sessionID(r *http.Request, secure bool) string {
	c, err := r.Cookie(cookie("", secure).Name)
	if err != nil {
		return ""
	}
	return c.Value
}

// Where a request has the CSRF token of its session: pages that send forms have it in a field, those that fetch in a header.
const (
	CSRFHeader = "X-CSRF-Token"
	CSRFField  = "csrf_token"
)

// mostForm is how long a form of a page is at most that is read to find the token in it.
const mostForm = 1 << 20

// hasCSRF reports whether a request carries the token of its session. A form is parsed, and is the handler's as r.PostForm then.
func hasCSRF(w http.ResponseWriter, r *http.Request, want string) bool {
	got := r.Header.Get(CSRFHeader)
	if got == "" && isForm(r) {
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		if err := r.ParseForm(); err != nil {
			return false
		}
		got = r.PostForm.Get(CSRFField) // not of the URL, which is in logs and histories
	}
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}
