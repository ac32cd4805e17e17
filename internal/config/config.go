// Package config reads the configuration file that a site's Disbatch 4 has, in Perl's relaxed JSON, so that Sluice can work from the same
// file. It owns the keys of that file, their types, defaults and meaning here, and the MongoDB URI that follows from them. It connects to
// nothing and opens no file but the one. No error, warning or note of it, and no setting that it lists, shows a password.
package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// DefaultFile is where Disbatch 4 has its file.
const DefaultFile = "/etc/disbatch/config.json"

// A Config is what a file says, with the defaults for what it does not say.
type Config struct {
	Name          string                     // of the file, as the caller named it
	Database      string                     // in which all collections are
	Auth          map[User]string            // passwords; nil if the file has none, and nobody logs in by name
	Plugins       []string                   // that queues may have
	Monitoring    bool                       // whether GET /monitoring looks
	Balance       Balance                    // of QueueBalance
	BalanceText   json.RawMessage            // the same as the file has it, for who shows it; nil: it has none
	WebExtensions []string                   // names of Perl packages, in the order of the file
	Extensions    map[string]json.RawMessage // their options by name, as the file has them; they may hold secrets
	TaskRunner    string                     // path of the program that runs a task, as the file has it; "": the file does not say
	GFS           protocol.GFS               // where what tasks print is kept
	Quiet         bool                       // whether TaskRunner is told --quiet
	Testing       bool                       // whether TaskRunner is told --testing
	WebRoot       string                     // folder of the pages
	ViewsDir      string                     // folder of the templates
	Log           Log                        // what is logged, and where
	ActiveQueues  []plan.QueueID             // the only queues that a node serves; empty: all but those of IgnoreQueues
	IgnoreQueues  []plan.QueueID             // queues that a node leaves alone; empty where ActiveQueues counts instead
	Settings      []Setting                  // every key with what it is and does, for people
	Warnings      []textfile.Error           // what is probably not meant, in the order of the file
	Notes         []textfile.Error           // what is meant and differs here, in the order of the file
	connection                               // see URI
}

// A Setting is one key of a file, as people see it.
type Setting struct {
	Key     string
	Value   string // without secrets
	Default bool   // the file does not say it
	Effect  string // what it does here
}

// A User is one of Disbatch's processes, and who it is to MongoDB.
type User string

// The users that Disbatch has.
const (
	Disbatchd    User = "disbatchd"    // an execution node
	DisbatchWeb  User = "disbatch_web" // the web server
	TaskRunner   User = "task_runner"
	Plugin       User = "plugin"       // plugins that connect by themselves
	QueueBalance User = "queuebalance" // may be missing from a file
)

var users = []User{Disbatchd, DisbatchWeb, TaskRunner, Plugin, QueueBalance}

// Balance is how QueueBalance works; all is off by default.
type Balance struct{ Enabled, Log, Verbose, Pretend bool }

// Log is what log4perl says.
type Log struct {
	Given bool       // the file has the key; else the others are what Disbatch does without it
	Level slog.Level // DEBUG by default
	Files []string   // of the appenders that write files; /var/log/disbatchd.log by default
}

// Levels of Log4perl that slog has no name for.
const (
	LevelAll   = slog.Level(math.MinInt)
	LevelTrace = slog.LevelDebug - 4
	LevelFatal = slog.LevelError + 4
	LevelOff   = slog.Level(math.MaxInt)
)

// Read reads a file. Mistakes are textfile.Errors: all of them if the file is JSON, else the first.
// With mistakes, only Settings, Warnings and Notes of the Config are usable.
func Read(path string) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return &Config{Name: path}, err
	}
	return Parse(path, data)
}

func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is not there; check the path: %w", path, fs.ErrNotExist)
	}
	return data, err
}

// Parse is Read for the text of a file that has a name.
func Parse(name string, data []byte) (*Config, error) {
	r, root, ok := begin(name, data, secrets, `{"mongohost": …, "database": …}`)
	if !ok {
		return r.Config, r.errs
	}
	r.read(&root)
	return r.Config, r.done()
}

// begin reads what a file holds, which has to be an object, as in the example. No message will show what hide returns.
func begin(name string, data []byte, hide func(*node) []span, example string) (r *reader, root node, ok bool) {
	r = &reader{src: &textfile.Source{Name: name, Text: data}, Config: &Config{Name: name}}
	if !utf8.Valid(data) {
		r.errs = textfile.Errors{{File: name, Message: "the file is not UTF-8 text; save it as UTF-8"}}
		return r, node{}, false
	}
	strict, comments := relax(data)
	r.strict, r.hidden = strict, comments
	if len(bytes.TrimSpace(strict)) == 0 {
		r.failf(len(strict), "the file is empty; it is an object: %s", example)
		return r, node{}, false
	}
	root, wrong, at := parse(data, strict)
	if wrong != "" {
		r.hidden = append(r.hidden, unreadable(strict)...)
		r.failf(at, "%s", wrong)
		return r, node{}, false
	}
	r.hidden = append(r.hidden, hide(&root)...)
	if root.kind != object {
		r.failf(root.from, "the file is %s; it has to be an object: %s", root.kind, example)
	}
	return r, root, root.kind == object
}

// done puts what was found in the order of the file, and returns the mistakes.
func (r *reader) done() error {
	for _, found := range [][]textfile.Error{r.errs, r.Warnings, r.Notes} {
		slices.SortStableFunc(found, func(a, b textfile.Error) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
	}
	if len(r.errs) > 0 {
		return r.errs
	}
	return nil
}

// A reader fills in a Config.
type reader struct {
	*Config
	src    *textfile.Source
	strict []byte // the text as strict JSON, every byte in its place
	hidden []span
	errs   textfile.Errors
}

func (r *reader) failf(at int, format string, args ...any) {
	r.errs = append(r.errs, r.found(at, format, args...))
}

func (r *reader) warnf(at int, format string, args ...any) {
	r.Warnings = append(r.Warnings, r.found(at, format, args...))
}

func (r *reader) notef(at int, format string, args ...any) {
	r.Notes = append(r.Notes, r.found(at, format, args...))
}

// found is an Error at a byte, whose line shows no secrets.
func (r *reader) found(at int, format string, args ...any) textfile.Error {
	e := r.src.Error(at, fmt.Sprintf(format, args...))
	if e.Text = ""; len(r.errs)+len(r.Warnings)+len(r.Notes) < 2*textfile.MaxShown { // each costs as much as the file is long
		shown, there := hide(r.src.Text, r.hidden, at)
		e.Text, e.Caret = (&textfile.Source{Text: shown}).Excerpt(there)
	}
	return e
}

// list tells what a key is and does. A node that is nil is not in the file.
func (r *reader) list(key string, n *node, value, effect string) {
	r.Settings = append(r.Settings, Setting{Key: key, Value: value, Default: n == nil, Effect: effect})
}
