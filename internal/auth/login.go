package auth

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// LocalPath returns next if it is a path of this server, with or without a query, and otherwise the
// other argument. Anybody may have made the link that names the page after a login.
func LocalPath(next, otherwise string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || len(next) > 2048 ||
		strings.ContainsFunc(next, func(r rune) bool {
			return r == '\\' || r == ' ' || unicode.IsControl(r) || r == unicode.ReplacementChar
		}) {
		return otherwise // browsers take \ for /, and leave out what is no character
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.HasPrefix(u.Path, "//") {
		return otherwise
	}
	return next
}

// Login returns the handler of a login (POST), which has to be behind Wrap and Public. A form has
// name, password, and next, the page to go to. The handler redirects the browser there, or back to
// the login page with ?failed=wrong, wait or busy. A JSON body has name and password. Its answer
// has the name, the scopes, and the token that requests of the session have to carry.
func (g *Guard) Login() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, ok := r.Context().Value(callKey{}).(*call)
		if !ok || r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			g.Error(w, r, Refusal{Status: http.StatusMethodNotAllowed, Code: CodeInvalid, Detail: "a login is a POST"})
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		var in struct{ Name, Password string }
		next, form := g.Home, isForm(r)
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		if form {
			if err := r.ParseForm(); err != nil {
				g.Error(w, r, Refusal{Status: http.StatusBadRequest, Code: CodeInvalid, Detail: "the form cannot be read"})
				return
			}
			in.Name, in.Password = r.PostForm.Get("name"), r.PostForm.Get("password")
			next = LocalPath(r.PostForm.Get("next"), g.Home)
		} else if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			g.Error(w, r, Refusal{Status: http.StatusUnsupportedMediaType, Code: CodeInvalid, Detail: "a login is a form or application/json"})
			return
		} else if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			g.Error(w, r, Refusal{Status: http.StatusBadRequest, Code: CodeInvalid, Detail: `a login is {"name": …, "password": …}`}) // the error cites
			return
		}
		if g.Access == nil {
			g.answerLogin(w, r, done.who, form, next)
			return
		}
		a := g.Access.Access()
		c := from(r, a.Proxy)
		u, err := g.verifier.verify(r.Context(), a, in.Name, in.Password, c)
		if err != nil {
			g.failLogin(w, r, done, refusePassword(a, in.Name, err), form, next)
			return
		}
		tls := secure(r, c)
		if old := sessionID(r, tls); old != "" {
			g.sessions.end(old)
		}
		id, s := g.sessions.begin(u, time.Now())
		http.SetCookie(w, cookie(id, tls))
		done.who = Identity{Name: u.Name, By: BySession, Scopes: u.Role.Scopes(), CSRF: s.csrf}
		g.answerLogin(w, r, done.who, form, next)
	})
}

func (g *Guard) answerLogin(w http.ResponseWriter, r *http.Request, who Identity, form bool, next string) {
	if form {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": who.Name, "scopes": who.Scopes, CSRFField: who.CSRF}) // who hung up wants no answer
}

func (g *Guard) failLogin(w http.ResponseWriter, r *http.Request, done *call, refused *Refusal, form bool, next string) {
	done.who, done.refused = Identity{Name: refused.name}, refused.Code
	if refused.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(refused.RetryAfter))
	}
	if !form || g.LoginPath == "" {
		g.Error(w, r, *refused)
		return
	}
	failed := map[Code]string{CodeUnauthorized: "wrong", CodeWait: "wait", CodeBusy: "busy"}[refused.Code]
	to := url.Values{"failed": {failed}}
	if next != g.Home {
		to.Set("next", next)
	}
	http.Redirect(w, r, g.LoginPath+"?"+to.Encode(), http.StatusSeeOther)
}

// Logout returns the handler that ends a session, POST, which has to be behind Wrap and Public. It sends a browser's form to the login page, and
// answers others without content.
func (g *Guard) Logout() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			g.Error(w, r, Refusal{Status: http.StatusMethodNotAllowed, Code: CodeInvalid, Detail: "a logout is a POST"})
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		if g.Access != nil {
			tls := secure(r, from(r, g.Access.Access().Proxy))
			if id := sessionID(r, tls); id != "" {
				g.sessions.end(id)
				http.SetCookie(w, cookie("", tls))
			}
		}
		if isForm(r) && g.LoginPath != "" {
			http.Redirect(w, r, g.LoginPath, http.StatusSeeOther)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
