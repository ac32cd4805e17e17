package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

const needed = `"mongohost": "localhost", "database": "disbatch"`

// of reads a file that has the two keys that all need, and some more.
func of(t *testing.T, more string) *Config {
	t.Helper()
	c, err := Parse("c", []byte("{"+needed+", "+more+"}"))
	if err != nil {
		t.Fatalf("%s: %v", more, err)
	}
	return c
}

func messages(found []textfile.Error) string {
	var all []string
	for _, e := range found {
		all = append(all, e.Message)
	}
	return strings.Join(all, "\n")
}

func id(t *testing.T, s string) plan.QueueID {
	t.Helper()
	v, err := plan.ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return plan.QueueID{ID: v}
}

func TestEachKeyIsReadAndHasItsDefault(t *testing.T) {
	const queue = "571f8951b75bf335634ec271"
	for _, c := range []struct {
		file string
		get  func(*Config) any
		want any
	}{
		{``, func(c *Config) any { return c.Database }, "disbatch"},
		{``, func(c *Config) any { return c.Auth }, map[User]string(nil)},
		{`"auth": {"disbatchd": "a", "disbatch_web": "b", "task_runner": "c", "plugin": "d", "queuebalance": "e"}`, func(c *Config) any { return c.Auth },
			map[User]string{Disbatchd: "a", DisbatchWeb: "b", TaskRunner: "c", Plugin: "d", QueueBalance: "e"}},
		{``, func(c *Config) any { return c.Plugins }, []string(nil)},
		{`"plugins": ["Disbatch::Plugin::Demo", "exec",]`, func(c *Config) any { return c.Plugins }, []string{"Disbatch::Plugin::Demo", "exec"}},
		{``, func(c *Config) any { return c.Monitoring }, false},
		{`"monitoring": true`, func(c *Config) any { return c.Monitoring }, true},
		{`"monitoring": 1`, func(c *Config) any { return c.Monitoring }, true},
		{`"monitoring": "1"`, func(c *Config) any { return c.Monitoring }, true},
		{`"monitoring": 0`, func(c *Config) any { return c.Monitoring }, false},
		{`"monitoring": "0"`, func(c *Config) any { return c.Monitoring }, false},
		{`"monitoring": ""`, func(c *Config) any { return c.Monitoring }, false},
		{`"monitoring": null`, func(c *Config) any { return c.Monitoring }, false},
		{``, func(c *Config) any { return c.Balance }, Balance{}},
		{`"balance": {"enabled": true, "log": 1}`, func(c *Config) any { return c.Balance }, Balance{Enabled: true, Log: true}},
		{`"balance": {"verbose": true, "pretend": true}`, func(c *Config) any { return c.Balance }, Balance{Verbose: true, Pretend: true}},
		{`"web_extensions": {"Disbatch::Web::Files": null, "B": {"x": []}}`, func(c *Config) any { return c.WebExtensions }, []string{"Disbatch::Web::Files", "B"}},
		{`"web_extensions": {"B": {"x": [1, # one
			], "y": "ä",}, "C": null}`, func(c *Config) any { return compact(c.Extensions["B"]) + compact(c.Extensions["C"]) }, `{"x":[1],"y":"ä"}null`},
		{`"balance": {"enabled": 0, # off
			"log": 1,}`, func(c *Config) any { return compact(c.BalanceText) }, `{"enabled":0,"log":1}`},
		{``, func(c *Config) any { return c.BalanceText == nil }, true},
		{``, func(c *Config) any { return c.TaskRunner }, ""},
		{`"task_runner": "/opt/run"`, func(c *Config) any { return c.TaskRunner }, "/opt/run"},
		{`"task_runner": "./bin/task_runner"`, func(c *Config) any { return c.TaskRunner }, "./bin/task_runner"},
		{``, func(c *Config) any { return []bool{c.Quiet, c.Testing} }, []bool{false, false}},
		{`"quiet": true, "testing": "1"`, func(c *Config) any { return []bool{c.Quiet, c.Testing} }, []bool{true, true}},
		{``, func(c *Config) any { return c.GFS }, protocol.GFSAuto},
		{`"gfs": "auto"`, func(c *Config) any { return c.GFS }, protocol.GFSAuto},
		{`"gfs": true`, func(c *Config) any { return c.GFS }, protocol.GFSAlways},
		{`"gfs": 1`, func(c *Config) any { return c.GFS }, protocol.GFSAlways},
		{`"gfs": false`, func(c *Config) any { return c.GFS }, protocol.GFSNever},
		{`"gfs": 0`, func(c *Config) any { return c.GFS }, protocol.GFSNever},
		{``, func(c *Config) any { return c.WebRoot }, "/etc/disbatch/htdocs/"},
		{`"web_root": "/w"`, func(c *Config) any { return c.WebRoot }, "/w"},
		{``, func(c *Config) any { return c.ViewsDir }, "/etc/disbatch/views/"},
		{`"views_dir": "/v"`, func(c *Config) any { return c.ViewsDir }, "/v"},
		{``, func(c *Config) any { return c.Log }, Log{false, slog.LevelDebug, []string{"/var/log/disbatchd.log"}}},
		{`"log4perl": {}`, func(c *Config) any { return c.Log }, Log{true, slog.LevelDebug, nil}},
		{`"log4perl": {"level": "TRACE"}`, func(c *Config) any { return c.Log.Level }, LevelTrace},
		{`"log4perl": {"level": "INFO"}`, func(c *Config) any { return c.Log.Level }, slog.LevelInfo},
		{`"log4perl": {"level": "WARN"}`, func(c *Config) any { return c.Log.Level }, slog.LevelWarn},
		{`"log4perl": {"level": "ERROR"}`, func(c *Config) any { return c.Log.Level }, slog.LevelError},
		{`"log4perl": {"level": "FATAL"}`, func(c *Config) any { return c.Log.Level }, LevelFatal},
		{`"log4perl": {"level": "OFF"}`, func(c *Config) any { return c.Log.Level }, LevelOff},
		{`"log4perl": {"level": "all"}`, func(c *Config) any { return c.Log.Level }, LevelAll},
		{`"log4perl": {"appenders": {"f": {"type": "Log::Log4perl::Appender::File", "args": {"mode": "append", "filename": "/l"}}, "s": {"type": "X::Screen"}}}`,
			func(c *Config) any { return c.Log.Files }, []string{"/l"}},
		{``, func(c *Config) any { return c.ActiveQueues }, []plan.QueueID(nil)},
		{`"activequeues": ["` + queue + `"]`, func(c *Config) any { return c.ActiveQueues }, []plan.QueueID{id(t, queue)}},
		{`"ignorequeues": ["` + strings.ToUpper(queue) + `"]`, func(c *Config) any { return c.IgnoreQueues }, []plan.QueueID{id(t, queue)}},
		{`"activequeues": ["` + queue + `"], "ignorequeues": ["` + queue + `"]`, func(c *Config) any { return c.IgnoreQueues }, []plan.QueueID(nil)},
	} {
		if got := c.get(of(t, c.file)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("{%s}: got %v, want %v", c.file, got, c.want)
		}
	}
}

func TestWhatIsNotMeantIsWarnedOf(t *testing.T) {
	for _, c := range []struct{ file, warning, note string }{
		{`"databse": "x"`, `"databse" is not a key and has no effect; did you mean "database"?`, ""},
		{`"balance": {"verbos": 1}`, `"verbos" is not a key of balance and has no effect; did you mean "verbose"?`, ""},
		{`"log4perl": {"levle": "INFO"}`, `"levle" is not a key of log4perl and has no effect; did you mean "level"?`, ""},
		{`"log4perl": {"appenders": {"f": {"type": "S", "arg": {}}}}`, `"arg" is not a key of an appender and has no effect; did you mean "args"?`,
			"of appenders only those that write a file are known here; without one Sluice logs on standard error"},
		{`"auth": {"disbatchd": "a", "disbatch_web": "b", "task_runner": "c"}`, `auth has no plugin, so that one cannot log in; add "plugin": "…"`, ""},
		{`"attributes": {"flavour": 1}`, `"flavour" is not a key of attributes that Sluice knows, and has no effect`, ""},
		{`"attributes": {"socket_timeout_ms": 1}`, "attributes.socket_timeout_ms has no effect: Go's driver has nothing like it", ""},
		{`"attributes": {"ssl": {"SSL_cafile": "/etc"}}`, `"SSL_cafile" is not a key of ssl that Sluice knows, and has no effect; did you mean "SSL_ca_file"?`, ""},
		{`"attributes": {"j": 0}`, "", "attributes.j has no effect: Sluice always waits for a majority and its journal"},
		{`"attributes": {"ssl": {"SSL_verify_mode": 0, "SSL_ca_file": "/ca"}}`, "",
			"SSL_verify_mode is 0, so the server's certificate is not checked, and SSL_ca_file has no effect"},
		{`"gfs": true, "gfs": false`, `"gfs" is there twice; this one counts, so take the other out`, ""},
		{`"web_extensions": {"A": {}}`, "", "web_extensions are Perl packages, which Sluice cannot run"},
		{`"web_extensions": {"Disbatch::Web::V3": null, "A": {"routes": []}}`, "", ""},
		{`"views_dir": "/srv/views"`, "", "views_dir has no effect: its templates are Perl's, and the pages Sluice's own; " +
			"files that browsers load, as scripts, may be in web_root, and pages of your own are routes in web_extensions"},
		{`"views_dir": "/etc/disbatch/views/"`, "", ""},
		{`"task_runner": "./bin/task_runner", "quiet": true, "testing": 1`, "", `task_runner is "./bin/task_runner": a node looks for it from the folder that it is started in`},
		{`"activequeues": ["571f8951b75bf335634ec271"], "ignorequeues": ["571f8951b75bf335634ec272"]`, "", "activequeues is set too, and only that counts"},
	} {
		got := of(t, c.file)
		if messages(got.Warnings) != c.warning || messages(got.Notes) != c.note {
			t.Errorf("{%s}:\ngot  %q, %q\nwant %q, %q", c.file, messages(got.Warnings), messages(got.Notes), c.warning, c.note)
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for file, want := range map[string]string{
		`{"database": "d"}`:                                                `mongohost is missing; add "mongohost": …`,
		`{"mongohost": "h"}`:                                               `database is missing; add "database": …`,
		`{"mongohost": null, "database": "d"}`:                             `mongohost is missing; add "mongohost": …`,
		`{"mongohost": "http://h", "database": "d"}`:                       "mongohost is not the URI of a MongoDB server; write mongodb://HOST:PORT or mongodb+srv://HOST",
		`{"mongohost": "h/d", "database": "d"}`:                            "mongohost is neither a MongoDB URI nor HOST:PORT; write mongodb://HOST:PORT",
		`{"mongohost": "mongodb://", "database": "d"}`:                     "mongohost names no host, or has a comma too many; write mongodb://HOST:PORT",
		`{"mongohost": "h", "database": "a.b"}`:                            `database is "a.b", which cannot be the name of one; it has 1 to 63 bytes, and none of / \ . " $ and blanks`,
		`{` + needed + `, "plugins": ["a b"]}`:                             `plugins[0] is "a b", which cannot be a plugin's name; it has letters, digits, _ and :`,
		`{` + needed + `, "monitoring": "yes"}`:                            `monitoring is "yes"; it has to be true or false`,
		`{` + needed + `, "balance": {"log": 2}}`:                          `balance.log is 2; it has to be true or false`,
		`{` + needed + `, "gfs": "always"}`:                                `gfs is "always"; it has to be true, false or "auto"`,
		`{` + needed + `, "task_runner": ""}`:                              `task_runner is empty; write the path of a program, as in "/usr/bin/task_runner", or leave it out`,
		`{` + needed + `, "quiet": "no"}`:                                  `quiet is "no"; it has to be true or false`,
		`{` + needed + `, "web_extensions": []}`:                           `web_extensions is a list; it has to be an object, as in {"Disbatch::Web::Files": null}`,
		`{` + needed + `, "activequeues": ["demo"]}`:                       `activequeues[0] is "demo", which is no queue's _id; that has 24 hex digits, and names do not count here`,
		`{` + needed + `, "log4perl": {"level": "LOUD"}}`:                  `log4perl.level is "LOUD"; it is one of TRACE, DEBUG, INFO, WARN, ERROR, FATAL, OFF, ALL`,
		`{` + needed + `, "log4perl": {"appenders": {"f": {}}}}`:           `log4perl.appenders.f has no type; add one, as in "type": "Log::Log4perl::Appender::File"`,
		`{` + needed + `, "attributes": {"ssl": 2}}`:                       `attributes.ssl is 2; it has to be 1, {"SSL_ca_file": "…"} or {"SSL_verify_mode": 0}`,
		`{` + needed + `, "attributes": {"ssl": {"SSL_cert_file": "c"}}}`:  `attributes.ssl has one of SSL_cert_file and SSL_key_file; they are needed together`,
		`{` + needed + `, "attributes": {"connect_timeout_ms": "soon"}}`:   `attributes.connect_timeout_ms is "soon"; it has to be a whole number`,
		`{` + needed + `, "attributes": {"auth_mechanism": "MONGODB-CR"}}`: `attributes.auth_mechanism is "MONGODB-CR"; it is one of SCRAM-SHA-256, SCRAM-SHA-1, MONGODB-X509, MONGODB-AWS, GSSAPI, PLAIN, DEFAULT, NONE`,
		`[]`: `the file is a list; it has to be an object: {"mongohost": …, "database": …}`,
	} {
		_, err := Parse("c", []byte(file))
		var errs textfile.Errors
		if !errors.As(err, &errs) || messages(errs) != want {
			t.Errorf("%s:\ngot  %v\nwant %s", file, err, want)
		}
	}
}

// secretWord is in a file wherever a secret may be.
const secretWord = "GEHEIM"

func TestNoPasswordIsShown(t *testing.T) {
	for _, file := range []string{
		`{` + needed + `, "auth": {"disbatchd": "GEHEIM", "task_runner": "GEHEIM", "plugn": "GEHEIM", "plugin": 5}}`,
		`{` + needed + `, "atuh": {"disbatchd": "GEHEIM", "task_runner": "GEHEIM"}}`,
		`{` + needed + `, "auth": "GEHEIM"}`,
		`{` + needed + `, "auth": ["GEHEIM"]}`,
		`{"mongohost": "mongodb://u:GEHEIM@h/?x=1", "database": 5}`,
		`{"mongohost": "mongodb://u:GEH@GEHEIM@h", "database": "d"}`,
		`{"mongohost": "mongodb://u:GEHEIM?@h", "database": "d"}`,
		`{"mongohost": "u:GEHEIM@h", "database": "d"}`,
		`{"mongohost": "mongodb://h/?tlsCertificateKeyFilePassword=GEHEIM&w=1", "database": ""}`,
		`{` + needed + `, "attributes": {"pasword": "GEHEIM", "password": "GEHEIM", "w": 1}}`,
		`{` + needed + `, "attributes": {"password": {"x": "GEHEIM"}}}`,
		`{` + needed + `, "attributes": {"auth_mechanism_properties": {"AWS_SESSION_TOKEN": "GEHEIM"}, "j": 1}}`,
		`{` + needed + `, "log4perl": {"appenders": {"db": {"type": "DBI", "args": {"password": "GEHEIM"}}}}}`,
		`{` + needed + `, "web_extensions": {"A": {"key": "GEHEIM"}}}`,
		"{" + needed + `, "gfs": 3 # was GEHEIM`,
		"{" + needed + `, "gfs": 3 } # was GEHEIM`,
		`{"auth": {"disbatchd": "GEHEIM" "plugin": "GEHEIM"}}`,
		`{"auth": {"disbatchd": "GEHEIM, "plugin": "GEHEIM"}}`,
		`{"auth": {"disbatchd: "GEHEIM", "plugin": "GEHEIM"}}`,
		`{"auth": {"disbatchd": GEHEIM}}`,
		`{"auth": {'disbatchd': 'GEHEIM'}}`,
		`{"auth": {"disbatchd": "ge"GEHEIM"}}`,
		`{"auth": {"disbatchd": "GEHEIM`,
		`{"auth": {"disbatchd": "\xGEHEIM"}}`,
		"{\"auth\": {\"disbatchd\": \"GEHEI\nGEHEIM",
	} {
		c, err := Parse("c", []byte(file))
		var said strings.Builder
		if err != nil {
			said.WriteString(err.Error())
		}
		for _, e := range slices.Concat(c.Warnings, c.Notes) {
			said.WriteString("\n" + e.Error())
		}
		for _, s := range c.Settings {
			said.WriteString("\n" + s.Key + " " + s.Value + " " + s.Effect)
		}
		if _, err := c.URI(User("nobody")); err != nil {
			said.WriteString("\n" + err.Error())
		}
		if strings.Contains(said.String(), secretWord) {
			t.Errorf("%s says\n%s", file, &said)
		}
	}
}

func TestTheURIIsWhatTheDriverTakes(t *testing.T) {
	const auth = `, "auth": {"disbatchd": "p@s:s/w%rd +?&", "disbatch_web": "b", "task_runner": "c", "plugin": "d"}`
	for _, c := range []struct {
		name, file string
		check      func(*connstring.ConnString) bool
	}{
		{"a host alone", needed, func(u *connstring.ConnString) bool {
			return slices.Equal(u.Hosts, []string{"localhost"}) && u.Database == "disbatch" && !u.UsernameSet && !u.SSLSet && u.AuthSource == ""
		}},
		{"a port of attributes", needed + `, "attributes": {"port": 27018}`, func(u *connstring.ConnString) bool { return u.Hosts[0] == "localhost:27018" }},
		{"several hosts and options", `"mongohost": "mongodb://a:1,b:2/?replicaSet=rs", "database": "d"`, func(u *connstring.ConnString) bool {
			return slices.Equal(u.Hosts, []string{"a:1", "b:2"}) && u.ReplicaSet == "rs" && u.Database == "d"
		}},
		{"auth", needed + auth, func(u *connstring.ConnString) bool {
			return u.Username == "disbatchd" && u.Password == "p@s:s/w%rd +?&" && u.AuthSource == "disbatch"
		}},
		{"the URI names the users' database by its path", `"mongohost": "mongodb://h/users", "database": "d"` + auth, func(u *connstring.ConnString) bool {
			return u.Database == "d" && u.AuthSource == "users"
		}},
		{"the URI names the users' database", `"mongohost": "mongodb://h/?authSource=admin", "database": "d"` + auth, func(u *connstring.ConnString) bool {
			return u.Username == "disbatchd" && u.AuthSource == "admin"
		}},
		{"attributes name the users' database", needed + auth + `, "attributes": {"db_name": "users"}`, func(u *connstring.ConnString) bool {
			return u.AuthSource == "users"
		}},
		{"the URI's own user", `"mongohost": "mongodb://me:p%40w@h", "database": "d"` + auth, func(u *connstring.ConnString) bool {
			return u.Username == "me" && u.Password == "p@w" && u.AuthSource == "admin"
		}},
		{"the attributes' user", needed + `, "attributes": {"username": "é:", "password": "/@"}`, func(u *connstring.ConnString) bool {
			return u.Username == "é:" && u.Password == "/@" && u.AuthSource == "disbatch"
		}},
		{"nobody logs in", needed + auth + `, "attributes": {"auth_mechanism": "NONE"}`, func(u *connstring.ConnString) bool { return !u.UsernameSet }},
		{"a mechanism", needed + auth + `, "attributes": {"auth_mechanism": "SCRAM-SHA-1"}`, func(u *connstring.ConnString) bool {
			return u.AuthMechanism == "SCRAM-SHA-1"
		}},
		{"a mechanism whose users are in no database", needed + `, "attributes": {"auth_mechanism": "GSSAPI", "username": "me", "auth_mechanism_properties": {"SERVICE_NAME": "x"}}`,
			func(u *connstring.ConnString) bool {
				return u.AuthSource == "$external" && u.AuthMechanismProperties["SERVICE_NAME"] == "x"
			}},
		{"ssl", needed + `, "attributes": {"ssl": 1}`, func(u *connstring.ConnString) bool { return u.SSL && !u.SSLInsecure && !u.SSLCaFileSet }},
		{"no ssl", needed + `, "attributes": {"ssl": false}`, func(u *connstring.ConnString) bool { return u.SSLSet && !u.SSL }},
		{"ssl with an authority", needed + `, "attributes": {"ssl": {"SSL_ca_file": "/etc/my ca.pem"}}`, func(u *connstring.ConnString) bool {
			return u.SSL && u.SSLCaFile == "/etc/my ca.pem" && !u.SSLInsecure
		}},
		{"ssl that checks nothing", needed + `, "attributes": {"ssl": {"SSL_verify_mode": 0}}`, func(u *connstring.ConnString) bool { return u.SSL && u.SSLInsecure }},
		{"ssl that checks nothing beside an authority", needed + `, "attributes": {"ssl": {"SSL_ca_file": "/ca", "SSL_verify_mode": 0}}`,
			func(u *connstring.ConnString) bool { return u.SSL && u.SSLInsecure && !u.SSLCaFileSet }},
		{"ssl with a certificate", needed + `, "attributes": {"ssl": {"SSL_cert_file": "/c", "SSL_key_file": "/k"}}`, func(u *connstring.ConnString) bool {
			return u.SSL && u.SSLCertificateFile == "/c" && u.SSLPrivateKeyFile == "/k"
		}},
		{"the URI comes before ssl", `"mongohost": "mongodb://h/?ssl=false", "database": "d", "attributes": {"ssl": 1}`, func(u *connstring.ConnString) bool { return !u.SSL }},
		{"times", needed + `, "attributes": {"connect_timeout_ms": "500", "server_selection_timeout_ms": 600, "heartbeat_frequency_ms": 700, "local_threshold_ms": 8}`,
			func(u *connstring.ConnString) bool {
				return u.ConnectTimeout.Milliseconds() == 500 && u.ServerSelectionTimeout.Milliseconds() == 600 && u.HeartbeatInterval.Milliseconds() == 700 &&
					u.LocalThreshold.Milliseconds() == 8
			}},
		{"for ever", needed + `, "attributes": {"connect_timeout_ms": -1}`, func(u *connstring.ConnString) bool { return u.ConnectTimeoutSet && u.ConnectTimeout == 0 }},
		{"the rest", needed + `, "attributes": {"replica_set_name": "rs", "retry_reads": 0, "retry_writes": false, "compressors": ["zlib"], "zlib_compression_level": 3}`,
			func(u *connstring.ConnString) bool {
				return u.ReplicaSet == "rs" && u.RetryReadsSet && !u.RetryReads && u.RetryWritesSet && !u.RetryWrites &&
					slices.Equal(u.Compressors, []string{"zlib"}) && u.ZlibLevel == 3
			}},
		{"one server", needed + `, "attributes": {"connect_type": "direct"}`, func(u *connstring.ConnString) bool { return u.DirectConnection }},
	} {
		t.Run(c.name, func(t *testing.T) {
			read, err := Parse("c", []byte("{"+c.file+"}"))
			if err != nil {
				t.Fatal(err)
			}
			uri, err := read.URI(Disbatchd)
			if err != nil {
				t.Fatal(err)
			}
			got, err := connstring.ParseAndValidate(uri)
			if err != nil {
				t.Fatalf("%s: %v", uri, err)
			}
			if !c.check(got) {
				t.Errorf("%s is read as %+v", uri, got)
			}
			if len(got.UnknownOptions) > 0 {
				t.Errorf("the driver does not know %v of %s", got.UnknownOptions, uri)
			}
		})
	}
	c := of(t, `"auth": {"disbatchd": "x"}`)
	if _, err := c.URI(QueueBalance); err == nil || err.Error() != "c: auth has no password for queuebalance; add it" {
		t.Errorf("a user without password: %v", err)
	}
}

func TestTheDocumentsExampleIsRead(t *testing.T) {
	doc, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```perl\n")
	example, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the page has no example")
	}
	c, err := Parse("config.json", []byte(example))
	if err != nil || len(c.Warnings) > 0 {
		t.Fatalf("%v\n%s", err, messages(c.Warnings))
	}
	var all []string
	for _, k := range keys() {
		all = append(all, k.name)
		if !strings.Contains(example, `"`+k.name+`"`) || !strings.Contains(string(doc), "| `"+k.name) {
			t.Errorf("the page does not have %s in its example and its table", k.name)
		}
	}
	for _, s := range c.Settings {
		top, _, _ := strings.Cut(s.Key, ".")
		if s.Default || !slices.Contains(all, top) {
			t.Errorf("the example does not say %s", s.Key)
		}
	}
	for name := range attributes {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("the page does not have the attribute %s", name)
		}
	}
}

// compact is JSON without blanks.
func compact(text json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return err.Error()
	}
	return b.String()
}
