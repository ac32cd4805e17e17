package auth

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sumOf(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

// hashOf hashes with as little work as there is: tests log in often.
func hashOf(password string) string {
	h := passwordHash{memory: 8, passes: 1, lanes: 1, salt: []byte("saltsaltsalt")}
	h.key = h.derive(password, hashKey)
	return h.String()
}

func TestRolesAreSetsOfScopes(t *testing.T) {
	for _, c := range []struct {
		role Role
		want string
	}{
		{Viewer, "read"}, {Operator, "read,operate,approve"}, {Editor, "read,operate,approve,submit"}, {Admins, "read,operate,approve,submit,admin"},
		{"", ""}, {"root", ""},
	} {
		if got := c.role.Scopes().String(); got != c.want {
			t.Errorf("role %q may %s, want %s", c.role, got, c.want)
		}
	}
}

func TestNoScopeContainsAnother(t *testing.T) {
	for _, has := range scopes {
		for _, need := range append([]Scope{"", "write"}, scopes...) {
			if got, want := (Scopes{has}).Has(need), has == need; got != want {
				t.Errorf("%s lets do what needs %q: %v, want %v", has, need, got, want)
			}
		}
		if !(Scopes{has}).Has(Public) {
			t.Errorf("%s does not let do what is public", has)
		}
	}
}

func TestScopesAreRead(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{"submit, read,submit", "read,submit", ""},
		{"", "", `"" is no scope; there are read,operate,approve,submit,admin`},
		{"public", "", `"public" is no scope`},
		{"read,write", "", `"write" is no scope`},
	} {
		got, err := ParseScopes(c.text)
		if got.String() != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("ParseScopes(%q) = %v, %v; want %s, %s", c.text, got, err, c.want, c.err)
		}
	}
}

func TestPasswordsAreKeptAsHashes(t *testing.T) {
	text := HashPassword("correct horse battery")
	if !strings.HasPrefix(text, "$argon2id$v=19$m=19456,t=2,p=1$") || text == HashPassword("correct horse battery") {
		t.Errorf("the hash is %s, or has no salt", text)
	}
	h, err := parsePasswordHash(text)
	if err != nil || !h.matches("correct horse battery") || h.matches("correct horse battery ") || h.matches("") {
		t.Errorf("the hash does not tell passwords apart: %v", err)
	}
	// A test vector of the reference implementation.
	h, err = parsePasswordHash("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	if err != nil || !h.matches("password") {
		t.Errorf("a hash of another program: %v", err)
	}
}

func TestHashesThatAreRefused(t *testing.T) {
	good := hashOf("password")
	for name, text := range map[string]string{
		"a password":                     "hunter2hunter2",
		"bcrypt":                         "$2y$05$abcdefghijklmnopqrstuuZ8Z8Z8Z8Z8Z8Z8Z8Z8Z8Z8Z8Z8Z8Z8",
		"another version":                strings.Replace(good, "v=19", "v=16", 1),
		"Argon2i":                        strings.Replace(good, "argon2id", "argon2i", 1),
		"too much memory":                strings.Replace(good, "m=8", "m=4194304", 1),
		"too little memory":              strings.Replace(good, "m=8", "m=7", 1),
		"no pass":                        strings.Replace(good, "t=1", "t=0", 1),
		"no lane":                        strings.Replace(good, "p=1", "p=0", 1),
		"lanes that do not fit a byte":   strings.Replace(good, "p=1", "p=257", 1),
		"numbers with zeros in front":    strings.Replace(good, "t=1", "t=01", 1),
		"numbers in another order":       strings.Replace(good, "m=8,t=1", "t=1,m=8", 1),
		"a key that is cut":              good[:len(good)-30],
		"an end of line":                 good + "\n",
		"what is no base64":              strings.Replace(good, "c2FsdHNh", "c2F!dHNh", 1),
		"base64 with other loose bits":   good[:len(good)-1] + "/",
		"an empty key":                   good[:strings.LastIndex(good, "$")+1],
		"another part":                   good + "$",
		"something in front of the sign": "x" + good,
	} {
		if _, err := parsePasswordHash(text); err == nil {
			t.Errorf("%s passes for a hash: %s", name, text)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows what may be a password: %v", err)
		}
	}
}

func TestPasswordsThatCannotBeSet(t *testing.T) {
	for password, want := range map[string]string{
		"elevenchars":              "too short",
		"zwölf Zeiche":             "",
		"漢字漢字漢字漢字漢字漢字":             "",
		strings.Repeat("x", 1025):  "too long",
		"a tab\tin the middle":     "control character",
		"not UTF-8 \xff in a word": "not UTF-8",
	} {
		err := CheckPassword(password)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", password, err, want)
		}
	}
}

func TestTokens(t *testing.T) {
	token, hash := NewToken()
	other, _ := NewToken()
	if len(token) != 50 || !strings.HasPrefix(token, "sluice_") || token == other || strings.Contains(hash, token[7:]) {
		t.Fatalf("token %s, hash %s", token, hash)
	}
	now := time.Now()
	weak := "sluice_password"
	a, err := Parse("f", fmt.Appendf(nil, `{"tokens": [
		{"id": "ci", "sha256": %q, "scopes": ["submit"], "expires": %q},
		{"id": "weak", "sha256": "%x", "scopes": ["admin"]}]}`, hash, now.Add(time.Hour).Format(time.RFC3339Nano), sumOf(weak)))
	if err != nil {
		t.Fatal(err)
	}
	if got := a.token(token, now); got == nil || got.ID != "ci" {
		t.Errorf("the token is %v", got)
	}
	for name, c := range map[string]struct {
		secret string
		at     time.Time
	}{
		"another":                      {other, now},
		"none":                         {"", now},
		"its hash":                     {hash, now},
		"one that is over":             {token, now.Add(time.Hour)},
		"one that a person thought of": {weak, now},
		"one with another prefix":      {"Sluice_" + token[7:], now},
	} {
		if got := a.token(c.secret, c.at); got != nil {
			t.Errorf("%s passes for token %s", name, got.ID)
		}
	}
}

func TestAccessFilesThatAreRefused(t *testing.T) {
	hash := hashOf("secret")
	user := fmt.Sprintf(`{"name": "alice", "password": %q, "role": "admin"}`, hash)
	_, sum := NewToken()
	for _, c := range []struct{ name, text, want string }{
		{"an empty file", " \n", "f is empty; sluice access user add and"},
		{"what is no JSON", "{\n  users: []}", `f:2:3: it is not JSON: invalid character 'u'`},
		{"half a file", `{"users": [` + user, "the JSON ends too early"},
		{"two objects", `{}{}`, "f:1:3: text follows the end of the object"},
		{"a word that is not known", `{"user": []}`, `f: unknown field "user"`},
		{"a word that is not known, in a user", `{"users": [{"nmae": "x"}]}`, `f: unknown field "nmae"`},
		{"two lists of users", `{"users": [], "tokens": [], "users": []}`, `f: "users" is twice in one object`},
		{"two passwords of a user", `{"users": [{"name": "a", "password": "x", "role": "admin", "Password": "y"}]}`, `f: "Password" is twice in one object`},
		{"another type", `{"users": {}}`, "f:1:11: users cannot be a object"},
		{"a user without a name", `{"users": [` + strings.Replace(user, "alice", "", 1) + `]}`, `user "": "" cannot be a name`},
		{"a name that Basic cannot carry", `{"users": [` + strings.Replace(user, "alice", "a:b", 1) + `]}`, `"a:b" cannot be a name`},
		{"a user that is there twice", `{"users": [` + user + "," + user + `]}`, `f: user "alice": it is there twice`},
		{"a role that is not known", `{"users": [` + strings.Replace(user, "admin", "root", 1) + `]}`, `user "alice": "root" is no role; there are viewer, operator, editor and admin`},
		{"a password as it is", `{"users": [` + strings.Replace(user, hash, "hunter2", 1) + `]}`, `user "alice": the password is not a hash`},
		{"a token without scopes", `{"tokens": [{"id": "ci", "sha256": "` + sum + `"}]}`, `token "ci": no scope was given; give some of read,operate,approve,submit,admin`},
		{"a token of a scope that is not known", `{"tokens": [{"id": "ci", "sha256": "` + sum + `", "scopes": ["all"]}]}`, `token "ci": "all" is no scope`},
		{"a hash that is cut", `{"tokens": [{"id": "ci", "sha256": "ab", "scopes": ["read"]}]}`, `token "ci": sha256 is not 64 hex digits`},
		{"a token by two names", `{"tokens": [{"id": "a", "sha256": "` + sum + `", "scopes": ["read"]}, {"id": "b", "sha256": "` + sum + `", "scopes": ["admin"]}]}`, `token "b": it is the same as token "a"`},
		{"an expiry that is no time", `{"tokens": [{"id": "a", "sha256": "` + sum + `", "scopes": ["read"], "expires": "tomorrow"}]}`, "tomorrow"},
		{"a proxy from nowhere", `{"proxy": {"header": "X-User", "role": "viewer"}}`, "from: it has no address"},
		{"a proxy from a name", `{"proxy": {"from": ["proxy.example.com"], "header": "X-User", "role": "viewer"}}`, `"proxy.example.com" is no address`},
		{"a proxy from IPv4 in IPv6", `{"proxy": {"from": ["::ffff:10.0.0.0/104"], "header": "X-User", "role": "viewer"}}`, "cannot be compared"},
		{"a proxy without roles", `{"proxy": {"from": ["unix"], "header": "X-User"}}`, "names users without a role"},
		{"roles that nobody gets", `{"proxy": {"from": ["unix"], "role": "viewer"}}`, "roles needs header"},
		{"a header with another meaning", `{"proxy": {"from": ["unix"], "header": "authorization", "role": "viewer"}}`, "has a meaning of its own"},
		{"a header that is none", `{"proxy": {"from": ["unix"], "header": "X User", "role": "viewer"}}`, `"X User" cannot be the name of a header`},
		{"a role of the proxy that is not known", `{"proxy": {"from": ["unix"], "header": "X-User", "roles": {"a": "root"}}}`, `roles: "a": "root" is no role`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			for _, secret := range []string{hash, sum, "hunter2"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error shows a secret: %v", err)
				}
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f") {
					t.Errorf("a line does not say where: %s", line)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	_, sum := NewToken()
	f.Add([]byte(fmt.Sprintf(`{"users": [{"name": "a", "password": %q, "role": "admin"}],
		"tokens": [{"id": "ci", "sha256": %q, "scopes": ["read"], "expires": "2030-01-02T03:04:05Z", "note": "x"}],
		"proxy": {"header": "X-User", "from": ["10.0.0.0/8", "::1", "unix"], "roles": {"b": "viewer"}, "role": "viewer", "client_header": "X-Forwarded-For"}}`,
		hashOf("x"), sum)))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"users": [{}], "users": [{"name": "x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Parse("f", data)
		if err != nil {
			return
		}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("f", text)
		if err != nil {
			t.Fatalf("what was read is refused when it is written: %v\n%s", err, text)
		}
		if twice, _ := json.Marshal(again); !reflect.DeepEqual(text, twice) {
			t.Errorf("written again it is\n%s\nand was\n%s", twice, text)
		}
		for _, u := range a.Users {
			if len(u.Role.Scopes()) == 0 || u.hash.key == nil || u.hash.memory > mostMemory || u.hash.passes > mostPasses {
				t.Errorf("user %+v", u)
			}
		}
		for _, token := range a.Tokens {
			if len(token.Scopes) == 0 || token.Scopes.Has("") || len(token.sum) != 32 {
				t.Errorf("token %+v", token)
			}
		}
	})
}
