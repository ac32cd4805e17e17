package auth

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// By is how somebody was let in.
type By string

// The ways in. They are in the audit log, and are never renamed.
const (
	ByLocal   By = "local"   // on this machine, where there is no access file
	BySession By = "session" // a login on the pages
	ByBasic   By = "basic"   // name and password, with the request
	ByToken   By = "token"
	ByProxy   By = "proxy" // which let the user in
)

// An Identity is who asks, and what they may do. The zero one is nobody, and may do what is public.
type Identity struct {
	Name   string // of the user or the token; "local" where there is no access file
	By     By     // "": nobody
	Scopes Scopes
	// CSRF is the token that forms of the session's pages have as CSRFField, and their scripts send as CSRFHeader; "": none is needed.
	CSRF string

	token string // the hash of the token, to distinguish it from a later token with the same id
}

// May reports whether what needs the scope may be done.
func (i Identity) May(need Scope) bool { return i.Scopes.Has(need) }

// A call is what is known of a request that passed the guard.
type call struct {
	who     Identity
	refused Code // "": it is not, so far
	entry   *Entry
	still   func() bool // whether it would be let in now; nil: nobody asks
}

type callKey struct{}

// From returns who sent the request that the context is of, as the guard found.
func From(ctx context.Context) Identity {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.who
	}
	return Identity{}
}

// May reports whether the caller of the context's request also has the given scope. It is for a
// handler that learns from the body what the request does. Without a guard, every caller may.
func May(ctx context.Context, need Scope) bool {
	c, guarded := ctx.Value(callKey{}).(*call)
	return !guarded || c.who.May(need)
}

// Still reports whether the caller of the context's request still has access. The token or the user
// must exist and have the scope, and the session must not be over. Long answers ask repeatedly.
// Still does not count as use of a session.
func Still(ctx context.Context) bool {
	c, ok := ctx.Value(callKey{}).(*call)
	return !ok || c.still == nil || c.still()
}

// stillMay returns the answer of Still. The credentials of the request stay the same. The access
// file and the sessions may have changed.
func (g *Guard) stillMay(r *http.Request, was *Access, who Identity, scope Scope, from caller) func() bool {
	if was == nil || scope == Public {
		return nil
	}
	password, id := "", sessionID(r, secure(r, from))
	if u := was.user(who.Name); u != nil {
		password = u.Password
	}
	return func() bool {
		a, now := g.Access.Access(), time.Now()
		var may Scopes
		switch who.By {
		case ByToken:
			for i := range a.Tokens {
				if t := &a.Tokens[i]; t.ID == who.Name && t.SHA256 == who.token && t.Valid(now) {
					may = t.Scopes
				}
			}
		case BySession:
			if u := g.sessions.look(id, a, now); u != nil {
				may = u.Role.Scopes()
			}
		case ByBasic:
			if u := a.user(who.Name); u != nil && u.Password == password {
				may = u.Role.Scopes()
			}
		case ByProxy:
			if a.Proxy.trusts(from) {
				may = a.Proxy.roleOf(who.Name).Scopes()
			}
		}
		return may.Has(scope)
	}
}

// identify returns who sends a request.
func (g *Guard) identify(r *http.Request, a *Access, c caller) (Identity, *Refusal) {
	if a == nil {
		return local(r, c)
	}
	if who, refused, there := proxied(r, a, c); there {
		return who, refused
	}
	switch given := r.Header.Values("Authorization"); len(given) {
	case 0:
		if who, ok := g.bySession(r, a, c); ok {
			return who, nil
		}
		return Identity{}, &Refusal{Status: http.StatusUnauthorized, Code: CodeUnauthorized, Detail: "log in, or send a token (Authorization: Bearer " + TokenPrefix + "…)"}
	case 1:
		return g.byAuthorization(r.Context(), given[0], a, c)
	}
	return Identity{}, &Refusal{Status: http.StatusBadRequest, Code: CodeInvalid, Detail: "the request has several Authorization headers, of which none is believed; send one"}
}

// forwardedBy are the headers that show that a proxy passed a request on.
var forwardedBy = []string{
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Forwarded-User",
	"X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Via",
}

// local lets in who is on this machine. Behind a proxy the whole world is: where one shows itself, nobody is let in.
func local(r *http.Request, c caller) (Identity, *Refusal) {
	if !c.local() {
		return Identity{}, &Refusal{Status: http.StatusForbidden, Code: CodeForbidden,
			Detail: "there are no users: only callers on the server's own machine are let in; start it with --access FILE"}
	}
	for _, header := range forwardedBy {
		if r.Header.Get(header) != "" {
			return Identity{}, &Refusal{Status: http.StatusForbidden, Code: CodeForbidden,
				Detail: fmt.Sprintf("the request came through a proxy (it has %s), and there are no users: start the server with --access FILE, which says whom to let in", header)}
		}
	}
	return Identity{Name: "local", By: ByLocal, Scopes: Admins.Scopes()}, nil
}

// proxied returns the user whom the proxy let in, if it says so. Whatever else the request shows is the proxy's affair then: it may have asked
// for a password of its own.
func proxied(r *http.Request, a *Access, c caller) (who Identity, refused *Refusal, there bool) {
	if !c.proxy || a.Proxy.Header == "" {
		return who, nil, false
	}
	values := r.Header.Values(a.Proxy.Header)
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return who, nil, false
	}
	if len(values) > 1 || checkProxied(values[0]) != nil {
		return who, &Refusal{Status: http.StatusBadRequest, Code: CodeInvalid,
			Detail: fmt.Sprintf("%s does not name one user; have the proxy replace what callers send in it", a.Proxy.Header)}, true
	}
	who = Identity{Name: values[0], By: ByProxy, Scopes: a.Proxy.roleOf(values[0]).Scopes()}
	if len(who.Scopes) == 0 {
		return Identity{}, &Refusal{Status: http.StatusForbidden, Code: CodeForbidden,
			Detail: fmt.Sprintf("user %q has no role here; the access file gives one (proxy.roles)", who.Name)}, true
	}
	return who, nil, true
}

func (g *Guard) bySession(r *http.Request, a *Access, c caller) (Identity, bool) {
	id := sessionID(r, secure(r, c))
	if id == "" {
		return Identity{}, false
	}
	s, u := g.sessions.use(id, a, time.Now())
	if u == nil {
		return Identity{}, false
	}
	return Identity{Name: u.Name, By: BySession, Scopes: u.Role.Scopes(), CSRF: s.csrf}, true
}

func (g *Guard) byAuthorization(ctx context.Context, header string, a *Access, c caller) (Identity, *Refusal) {
	scheme, name, secret := parseAuthorization(header)
	switch scheme {
	case "bearer":
		if t := a.token(secret, time.Now()); t != nil {
			return Identity{Name: t.ID, By: ByToken, Scopes: t.Scopes, token: t.SHA256}, nil
		}
		return Identity{}, &Refusal{Status: http.StatusUnauthorized, Code: CodeUnauthorized, guess: true,
			Detail: "the token is not known, or its time is over; sluice access token list shows which there are"}
	case "basic":
		u, err := g.verifier.verify(ctx, a, name, secret, c)
		if err != nil {
			return Identity{}, refusePassword(a, name, err)
		}
		return Identity{Name: u.Name, By: ByBasic, Scopes: u.Role.Scopes()}, nil
	}
	return Identity{}, &Refusal{Status: http.StatusUnauthorized, Code: CodeUnauthorized, Detail: "the Authorization header is neither a token (Bearer) nor a name and a password (Basic)"}
}

// parseAuthorization takes an Authorization header apart: scheme is bearer, basic or "".
func parseAuthorization(header string) (scheme, name, secret string) {
	scheme, rest, _ := strings.Cut(header, " ")
	rest = strings.Trim(rest, " ")
	switch scheme = strings.ToLower(scheme); scheme {
	case "bearer":
		return scheme, "", rest
	case "basic":
		data, err := base64.StdEncoding.DecodeString(rest)
		name, secret, ok := strings.Cut(string(data), ":")
		if err == nil && ok && utf8.Valid(data) {
			return scheme, name, secret
		}
	}
	return "", "", ""
}

// refusePassword is why a name and a password let nobody in.
func refusePassword(a *Access, name string, err error) *Refusal {
	refused := &Refusal{Status: http.StatusUnauthorized, Code: CodeUnauthorized, Detail: err.Error(), guess: true}
	if a.user(name) != nil {
		refused.name = name // no other is logged: it may be a password in the wrong field
	}
	switch err := err.(type) {
	case *waitError:
		refused.Status, refused.Code, refused.RetryAfter = http.StatusTooManyRequests, CodeWait, err.seconds()
	default:
		if err != errPassword {
			refused.Status, refused.Code, refused.RetryAfter, refused.guess = http.StatusServiceUnavailable, CodeBusy, 1, false
		}
	}
	return refused
}

// secure reports whether the caller reaches the server by TLS, which may end at the proxy.
func secure(r *http.Request, c caller) bool {
	return r.TLS != nil || c.proxy && r.Header.Get("X-Forwarded-Proto") == "https"
}
