package wire

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDatabase(t *testing.T) {
	for _, c := range []struct{ name, uri, want string }{
		{"one host", "mongodb://127.0.0.1:27017/sluice", "sluice"},
		{"a user", "mongodb://me:pa%2Fss@a/sluice?w=1", "sluice"},
		{"several hosts", "mongodb://a:1,b:2/sluice", "sluice"},
		{"several hosts, the last without a port", "mongodb://me:pa%40ss@a:1,b/sluice", "sluice"},
		{"several hosts, one an address with colons", "mongodb://[::1]:1,b:2/sluice?replicaSet=rs", "sluice"},
		{"a cluster", "mongodb+srv://cluster.example/sluice", "sluice"},
		{"an option with odd signs", "mongodb://a/sluice?appName=/@:", "sluice"},
		{"no database", "mongodb://a:1,b/", ""},
		{"no path", "mongodb://a:1,b?w=1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := Database(c.uri); err != nil || got != c.want {
				t.Errorf("Database(%q) = %q, %v; want %q", c.uri, got, err, c.want)
			}
		})
	}
	for _, uri := range []string{"mongodb://me:se/cret@a/x", "mongodb://me:se@cret@a/x", "mongodb://me:sec%ret@a/x"} {
		if got, err := Database(uri); err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("Database(%q) = %q, %v; want an error without the password", uri, got, err)
		}
	}
}

func TestRedact(t *testing.T) {
	for _, c := range []struct{ name, uri, want string }{
		{"nothing secret", "mongodb://127.0.0.1:27017/sluice?w=1", "mongodb://127.0.0.1:27017/sluice?w=1"},
		{"a user without password", "mongodb://me@h/d", "mongodb://me@h/d"},
		{"a password", "mongodb://me:pa%2Fss@a:1,b:2/sluice?w=1", "mongodb://me:***@a:1,b:2/sluice?w=1"},
		{"a password, and an option with an @", "mongodb://me:pass@h:1,i:2/d?x=y@z", "mongodb://me:***@h:1,i:2/d?x=y@z"},
		{"another scheme", "mongodb+srv://me:pass@cluster.example/sluice", "mongodb+srv://me:***@cluster.example/sluice"},
		{"what is not escaped", "mongodb://me:pa ss%zz@a:1/sluice", "mongodb://me:***@a:1/sluice"},
		{"slashes and more in it", "mongodb://me:p/a@ss@a:1/sluice", "mongodb://me:***@a:1/sluice"},
		{"a question mark in it", "mongodb://me:p?ass@a:1/sluice", "mongodb://me:***@a:1/sluice"},
		{"options that hold secrets", "mongodb://h/d?tlsCertificateKeyFilePassword=s&w=1&authMechanismProperties=AWS_SESSION_TOKEN:s",
			"mongodb://h/d?tlsCertificateKeyFilePassword=***&w=1&authMechanismProperties=***"},
		{"a path", "sqlite:/a@b:c/d", "sqlite:/a@b:c/d"},
		{"no colon", "mongodb//me:pass@h/d", "mongodb//me:***@h/d"},
		{"another character", "mongodb;//me:pa:ss@h/d", "mongodb;//me:***@h/d"},
		{"one slash", "mongodb:/me:pa@ss@h/d", "mongodb:/me:***@h/d"},
		{"no slashes", "mongodb:me:pass@h/d?tlsCertificateKeyFilePassword=s", "mongodb:***@h/d?tlsCertificateKeyFilePassword=***"},
		{"no scheme", "me:pass@h/d", "me:***@h/d"},
		{"no scheme, but slashes", "//me:/pass@h/d", "//me:***@h/d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Redact(c.uri); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	said := Redacted(errors.New(`parse "mongodb://me:pass@h/d?proxyPassword=s": no`)).Error()
	if strings.Contains(said, "pass@") || strings.Contains(said, "=s") {
		t.Errorf("an error says %s", said)
	}
}

func TestAServerIsLookedForAsLongAsTheDocumentsSay(t *testing.T) {
	if got := selectionTimeout; got != 10*time.Second {
		t.Errorf("a server is looked for during %v, and the documents say 10 s", got)
	}
}
