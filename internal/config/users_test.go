package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/seed-1177d267/sluice/internal/textfile"
)

const someAuth = `"auth": {"disbatchd": "a", "disbatch_web": "b", "task_runner": "c", "plugin": "d"}`

// Users have to be made where they are looked up when they log in.
func TestUsersAreWhereTheyAreLookedUp(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"in the database", `"mongohost": "localhost", "database": "disbatch"`, "disbatch"},
		{"in db_name", `"mongohost": "localhost", "database": "disbatch", "attributes": {"db_name": "accounts"}`, "accounts"},
		{"in the path of mongohost", `"mongohost": "mongodb://localhost/accounts", "database": "disbatch", "attributes": {"db_name": "x"}`, "accounts"},
		{"in authSource of mongohost", `"mongohost": "mongodb://localhost/x?w=1&authSource=accounts", "database": "disbatch"`, "accounts"},
		{"by a mechanism with passwords", `"mongohost": "localhost", "database": "disbatch", "attributes": {"auth_mechanism": "SCRAM-SHA-1"}`, "disbatch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf, err := Parse("c", []byte("{"+c.file+", "+someAuth+"}"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := conf.UsersIn(); err != nil || got != c.want {
				t.Errorf("UsersIn is %q, %v; want %q", got, err, c.want)
			}
			uri, err := conf.URI(Disbatchd)
			if err != nil {
				t.Fatal(err)
			}
			if parsed, err := connstring.ParseAndValidate(uri); err != nil || parsed.AuthSource != c.want {
				t.Errorf("%s: it logs in at %v, %v; want %s", uri, parsed, err, c.want)
			}
		})
	}
}

func TestUsersThatDoNotLogInSoAreRefused(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"mongohost has one for all", `"mongohost": "mongodb://me:s3cret@localhost", "database": "d"`, "c: mongohost has a user, with which every program logs in"},
		{"nobody logs in", `"mongohost": "localhost", "database": "d", "attributes": {"auth_mechanism": "NONE"}`, "c: auth_mechanism is NONE"},
		{"by certificate", `"mongohost": "localhost", "database": "d", "attributes": {"auth_mechanism": "MONGODB-X509"}`, "c: users that log in by MONGODB-X509"},
		{"by LDAP", `"mongohost": "mongodb://localhost/?authMechanism=PLAIN", "database": "d"`, "c: users that log in by PLAIN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf, err := Parse("c", []byte("{"+c.file+", "+someAuth+"}"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := conf.UsersIn(); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("UsersIn is %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestAnAdministratorConnectsAsTheFileSaysAndLogsInOtherwise(t *testing.T) {
	for _, c := range []struct{ name, file, user, want string }{
		{"a host", `"mongohost": "h:1", "attributes": {"ssl": 1, "db_name": "x", "auth_mechanism": "SCRAM-SHA-1"}`, "root",
			"mongodb://root:p%2F%40@h:1/disbatch?tls=true&authSource=admin"},
		{"a URI", `"mongohost": "mongodb://h1,h2/x?replicaSet=rs&authsource=y"`, "root", "mongodb://root:p%2F%40@h1,h2/disbatch?replicaSet=rs&authSource=admin"},
		{"nobody logs in", `"mongohost": "mongodb://h1,h2/x?authSource=y&replicaSet=rs"`, "", "mongodb://h1,h2/disbatch?replicaSet=rs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf, err := Parse("c", []byte(`{"database": "disbatch", `+c.file+", "+someAuth+"}"))
			if err != nil {
				t.Fatal(err)
			}
			got := conf.AdminURI(c.user, "p/@", "admin")
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if _, err := connstring.ParseAndValidate(got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPermissionsOfPlugins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.json")
	read := func(text string) ([]Permission, []textfile.Error, error) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadPermissions(path)
	}
	got, warnings, err := read("# ours\n" + `{"": ["find"], "reports": ["insert", "updat",], "none": [], "a.b": ["createIndex"]}`)
	want := []Permission{{"", []string{"find"}}, {"reports", []string{"insert", "updat"}}, {"a.b", []string{"createIndex"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if m := messages(warnings); m != `"updat" is no action that Sluice knows; MongoDB decides; did you mean "update"?` {
		t.Errorf("it warns of %s", m)
	}
	for text, want := range map[string]string{
		`[]`:                           `the file is a list; it has to be an object: {"reports": ["insert"]}`,
		`{"reports": "insert"}`:        `"reports" is a text; it has to be a list, as in ["find"]`,
		`{"a": ["find"], "a": []}`:     `"a" is there twice; write all of its actions in one list`,
		`{"a": ["find insert"]}`:       `"a"[0] is "find insert", which is no action; those are words such as find, insert, update and remove`,
		`{"a": ["find"]`:               `the file ends before all is closed; add the }, ] or quote that is missing`,
		``:                             `the file is empty; it is an object: {"reports": ["insert"]}`,
		`{"a": [{"$where": "sleep"}]}`: `"a"[0] is an object; it has to be a text, as in "find"`,
	} {
		_, _, err := read(text)
		var found textfile.Errors
		if !errors.As(err, &found) || len(found) != 1 || !strings.HasPrefix(found[0].Message, want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
