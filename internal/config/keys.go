package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/plan"
)

// unused is the effect of the one key that no part of Sluice asks for.
const unused = "no effect: its templates are Perl's, and the pages Sluice's own"

// DefaultViews is where Disbatch 4 has its templates. Where a file names another folder somebody wrote templates of their own.
const DefaultViews = "/etc/disbatch/views/"

// forCreateUsers is the effect of a password that no part of Sluice logs in with yet.
const forCreateUsers = "`sluice mongo create-users` makes that user with it"

// forCommands is the effect of what all commands but den and runner log in with.
const forCommands = "`sluice --config` logs in as disbatch_web with it, but den and runner"

// forRunners is the effect of the keys that each runner reads as it starts.
const forRunners = "`sluice runner --config` logs in as task_runner with it"

// A key is one that a file may have, and how it is read; the node is nil where the file does not have it.
type key struct {
	name string
	read func(r *reader, n *node)
}

// keys are those of a file, in the order of Disbatch's documentation.
func keys() []key {
	return []key{
		{"mongohost", (*reader).readHost},
		{"database", (*reader).readDatabase},
		{"attributes", (*reader).readAttributes},
		{"auth", (*reader).readAuth},
		{"plugins", (*reader).readPlugins},
		{"monitoring", func(r *reader, n *node) {
			r.Monitoring = r.flag("monitoring", n, "whether `sluice dci --config` looks at the nodes for GET /monitoring")
		}},
		{"balance", (*reader).readBalance},
		{"web_extensions", (*reader).readExtensions},
		{"task_runner", (*reader).readTaskRunner},
		{"gfs", (*reader).readGFS},
		{"quiet", func(r *reader, n *node) {
			r.Quiet = r.flag("quiet", n, "whether task_runner is told --quiet; `sluice den --config` tells it so anyway")
		}},
		{"testing", func(r *reader, n *node) {
			r.Testing = r.flag("testing", n, "whether `sluice den --config` tells task_runner --testing")
		}},
		{"web_root", func(r *reader, n *node) {
			r.WebRoot = r.path("web_root", n, "/etc/disbatch/htdocs/", "whose files `sluice dci --config` serves, before its own")
		}},
		{"views_dir", (*reader).readViews},
		{"log4perl", (*reader).readLog},
		{"activequeues", func(r *reader, n *node) {
			r.ActiveQueues = r.queues("activequeues", n, "the only queues of `sluice den --config`; none: see ignorequeues")
		}},
		{"ignorequeues", (*reader).readIgnored},
	}
}

func (r *reader) read(root *node) {
	all := keys()
	var names []string
	for _, k := range all {
		names = append(names, k.name)
	}
	given := r.members("", root, names)
	for _, name := range names[:2] {
		if given[name] == nil {
			r.failf(root.from, "%s is missing; add %q: …", name, name)
		}
	}
	for _, k := range all {
		k.read(r, given[k.name])
	}
}

// members returns the values of an object by their keys, and warns of unknown keys. As in Perl, the
// last value of a repeated key counts, and null counts as missing.
func (r *reader) members(of string, n *node, known []string) map[string]*node {
	given := map[string]*node{}
	for i := range n.members {
		m := &n.members[i]
		if !slices.Contains(known, m.name) {
			r.warnf(m.at, "%q is not a key%s and has no effect%s", m.name, of, hint.Meant(m.name, known))
			continue
		}
		if given[m.name] != nil {
			r.warnf(m.at, "%q is there twice; this one counts, so take the other out", m.name)
		}
		given[m.name] = &m.value
		if m.value.kind == null {
			delete(given, m.name)
		}
	}
	return given
}

// is reports whether a value is of a kind, and tells if not, with an example.
func (r *reader) is(key string, n *node, want kind, example string) bool {
	if n.kind != want {
		r.failf(n.from, "%s is %s; it has to be %s, as in %s", key, n.kind, want, example)
	}
	return n.kind == want
}

// truth reads what Perl takes for true or false.
func truth(n *node) (value, ok bool) {
	switch n.word {
	case "true", "1":
		return true, n.word == "1" || n.kind == boolean
	case "false", "0", "":
		return false, n.word == "0" || n.kind == boolean || n.kind == text && n.word == ""
	}
	return false, false
}

// bool reads a value that is true or false.
func (r *reader) bool(key string, n *node) bool {
	value, ok := truth(n)
	if !ok {
		r.failf(n.from, "%s is %s; it has to be true or false", key, described(n))
	}
	return value
}

// described is what a message calls a value that is no secret.
func described(n *node) string {
	switch n.kind {
	case number, boolean:
		return n.word
	case text:
		return strconv.Quote(n.word)
	}
	return string(n.kind)
}

// flag reads a setting that is false by default, and lists it.
func (r *reader) flag(key string, n *node, effect string) bool {
	value := n != nil && r.bool(key, n)
	r.list(key, n, strconv.FormatBool(value), effect)
	return value
}

// path reads a setting that is the path of something, and lists it.
func (r *reader) path(key string, n *node, value, effect string) string {
	if n != nil && r.is(key, n, text, strconv.Quote(value)) {
		if value = n.word; value == "" {
			r.failf(n.from, "%s is empty; write a path, or leave it out", key)
		}
	}
	r.list(key, n, value, effect)
	return value
}

func (r *reader) readViews(n *node) {
	if r.ViewsDir = r.path("views_dir", n, DefaultViews, unused); r.ViewsDir != "" && r.ViewsDir != DefaultViews {
		r.notef(n.from, "views_dir has no effect: its templates are Perl's, and the pages Sluice's own; files that browsers load, as scripts, may be in web_root, "+
			"and pages of your own are routes in web_extensions")
	}
}

// texts reads a list of texts; valid says what is wrong with one.
func (r *reader) texts(key string, n *node, example string, valid func(string) (wrong string)) []string {
	if n == nil || !r.is(key, n, list, "["+example+"]") {
		return nil
	}
	var all []string
	for i := range n.items {
		item := &n.items[i]
		if !r.is(fmt.Sprintf("%s[%d]", key, i), item, text, example) {
			continue
		}
		if wrong := valid(item.word); wrong != "" {
			r.failf(item.from, "%s[%d] is %q, %s", key, i, item.word, wrong)
		}
		all = append(all, item.word)
	}
	return all
}

// listed writes a list as people see it.
func listed(words []string) string {
	if len(words) == 0 {
		return "[]"
	}
	b, _ := json.Marshal(words) // texts have JSON
	return string(b)
}

func (r *reader) readHost(n *node) {
	const effect = "where `sluice --config` connects"
	if n == nil {
		r.list("mongohost", n, "", effect)
		return
	}
	if r.is("mongohost", n, text, `"mongodb://mongodb01.example.com:27017"`) {
		h, wrong := parseHost(n.word)
		if wrong != "" {
			r.failf(n.from, "mongohost %s", wrong)
		}
		r.host = h
	}
	r.list("mongohost", n, r.host.redacted(), effect)
}

func (r *reader) readDatabase(n *node) {
	if n != nil && r.is("database", n, text, `"disbatch"`) {
		if r.Database = n.word; n.word == "" || len(n.word) > 63 || strings.ContainsAny(n.word, "/\\. \"$\x00") {
			r.failf(n.from, `database is %q, which cannot be the name of one; it has 1 to 63 bytes, and none of / \ . " $ and blanks`, n.word)
		}
	}
	r.list("database", n, r.Database, "the database of `sluice --config`")
}

func (r *reader) readAuth(n *node) {
	if n == nil || !r.is("auth", n, object, `{"disbatchd": "…", "disbatch_web": "…", "task_runner": "…", "plugin": "…"}`) {
		r.list("auth", n, "", "nobody logs in by name")
		return
	}
	var names []string
	for _, u := range users {
		names = append(names, string(u))
	}
	given := r.members(" of auth", n, names)
	r.Auth = map[User]string{}
	if r.host.login != "" {
		r.notef(n.from, "mongohost has a user of its own, who counts; auth has no effect")
	}
	for _, u := range users {
		p := given[string(u)]
		switch {
		case p != nil && r.is("auth."+string(u), p, text, `"…"`):
			if r.Auth[u] = p.word; p.word == "" {
				r.warnf(p.from, "auth.%s is empty, so that one cannot log in; write its password", u)
			}
		case p == nil && u != QueueBalance:
			r.warnf(n.from, `auth has no %s, so that one cannot log in; add %q: "…"`, u, u)
		}
		value, effect := "", forCreateUsers
		if p != nil {
			value = stars
		}
		switch {
		case r.host.login != "":
			effect = "no effect: mongohost has a user of its own"
		case u == TaskRunner:
			effect = forRunners
		case u == DisbatchWeb:
			effect = forCommands
		case u == Disbatchd:
			effect = "`sluice den --config` logs in as disbatchd with it"
		}
		r.list("auth."+string(u), p, value, effect)
	}
}

var pluginName = regexp.MustCompile(`^[\w:]+$`)

func (r *reader) readPlugins(n *node) {
	r.Plugins = r.texts("plugins", n, `"Disbatch::Plugin::Demo"`, func(name string) string {
		if !pluginName.MatchString(name) {
			return "which cannot be a plugin's name; it has letters, digits, _ and :"
		}
		return ""
	})
	r.list("plugins", n, listed(r.Plugins), "what `sluice den --config` and `sluice runner` may run, unless --allow is given; what `sluice dci --config` lets queues have")
}

func (r *reader) readBalance(n *node) {
	given := map[string]*node{}
	if n != nil && r.is("balance", n, object, `{"enabled": true}`) {
		r.BalanceText = r.raw(n)
		given = r.members(" of balance", n, []string{"enabled", "log", "verbose", "pretend"})
	}
	r.Balance.Enabled = r.flag("balance.enabled", given["enabled"], "`sluice den --config` balances the queues, one node at a time; `sluice dci --config` looks for GET /monitoring whether one does")
	read := func(key, effect string) bool {
		if !r.Balance.Enabled {
			effect = "no effect while balance.enabled is false"
		}
		return r.flag("balance."+key, given[key], effect)
	}
	r.Balance.Log = read("log", "who balances logs each change of a queue")
	r.Balance.Verbose = read("verbose", "who balances logs each round, and each change of a queue")
	r.Balance.Pretend = read("pretend", "who balances changes no queue")
}

// ownExtensions are the Perl packages whose routes Sluice has itself.
var ownExtensions = []string{"Disbatch::Web::Files", "Disbatch::Web::Tasks", "Disbatch::Web::V3"}

// raw returns a value as strict JSON.
func (r *reader) raw(n *node) json.RawMessage { return bytes.Clone(r.strict[n.from:n.to]) }

// has reports whether an object has a key.
func (n *node) has(name string) bool {
	return slices.ContainsFunc(n.members, func(m member) bool { return m.name == name })
}

func (r *reader) readExtensions(n *node) {
	if n != nil && r.is("web_extensions", n, object, `{"Disbatch::Web::Files": null}`) {
		r.Extensions = map[string]json.RawMessage{}
		perl := false
		for i := range n.members {
			m := &n.members[i]
			r.WebExtensions = append(r.WebExtensions, m.name)
			r.Extensions[m.name] = r.raw(&m.value)
			perl = perl || !slices.Contains(ownExtensions, m.name) && !m.value.has("routes")
		}
		if perl {
			r.notef(n.from, "web_extensions are Perl packages, which Sluice cannot run")
		}
	}
	r.list("web_extensions", n, listed(r.WebExtensions), "routes that `sluice dci --config` has besides")
}

func (r *reader) readTaskRunner(n *node) {
	const disbatchs = "/usr/bin/task_runner"
	if n == nil {
		r.list("task_runner", n, disbatchs, "`sluice den --config` runs tasks itself where it is not set")
		return
	}
	if r.is("task_runner", n, text, strconv.Quote(disbatchs)) {
		switch r.TaskRunner = n.word; {
		case n.word == "":
			r.failf(n.from, "task_runner is empty; write the path of a program, as in %q, or leave it out", disbatchs)
		case !strings.HasPrefix(n.word, "/"):
			r.notef(n.from, "task_runner is %q: a node looks for it from the folder that it is started in", n.word)
		}
	}
	r.list("task_runner", n, r.TaskRunner, "`sluice den --config` has it run the tasks of `plugins`, unless --task-runner is given")
}

func (r *reader) readGFS(n *node) {
	r.GFS = protocol.GFSAuto
	if n != nil && (n.kind != text || n.word != string(protocol.GFSAuto)) {
		always, ok := truth(n)
		switch {
		case !ok:
			r.failf(n.from, `gfs is %s; it has to be true, false or "auto"`, described(n))
		case always:
			r.GFS = protocol.GFSAlways
		default:
			r.GFS = protocol.GFSNever
		}
	}
	r.list("gfs", n, string(r.GFS), "where `sluice den --config` keeps what tasks print")
}

// levels are those of Log4perl, as slog has them.
var levels = map[string]slog.Level{
	"ALL": LevelAll, "TRACE": LevelTrace, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERROR": slog.LevelError,
	"FATAL": LevelFatal, "OFF": LevelOff,
}

func (r *reader) readLog(n *node) {
	r.Log.Level = slog.LevelDebug
	level := "DEBUG"
	var levelNode, files *node
	if n == nil {
		r.Log.Files = []string{"/var/log/disbatchd.log"}
	} else if r.is("log4perl", n, object, `{"level": "DEBUG"}`) {
		r.Log.Given = true
		given := r.members(" of log4perl", n, []string{"level", "appenders"})
		levelNode, files = given["level"], given["appenders"]
	}
	if levelNode != nil && r.is("log4perl.level", levelNode, text, `"DEBUG"`) {
		l, ok := levels[strings.ToUpper(levelNode.word)]
		if !ok {
			const known = "TRACE, DEBUG, INFO, WARN, ERROR, FATAL, OFF, ALL"
			r.failf(levelNode.from, "log4perl.level is %q; it is one of %s", levelNode.word, known)
		}
		r.Log.Level, level = l, strings.ToUpper(levelNode.word)
	}
	if files != nil && r.is("log4perl.appenders", files, object, `{"filelog": {"type": "Log::Log4perl::Appender::File", …}}`) {
		for i := range files.members {
			r.readAppender(&files.members[i])
		}
	}
	const where = "`sluice den --config` logs to it, unless --log-file is given; none: on standard error"
	if r.Log.Given {
		r.list("log4perl.level", levelNode, level, "`sluice den --config` logs from it on, unless --log-level is given")
		r.list("log4perl.appenders", files, listed(r.Log.Files), where)
		return
	}
	r.list("log4perl.level", nil, level, "`sluice den --config` logs from INFO on where log4perl is not set")
	r.list("log4perl.appenders", nil, listed(r.Log.Files), "`sluice den --config` logs on standard error where log4perl is not set")
}

func (r *reader) readAppender(m *member) {
	name := "log4perl.appenders." + m.name
	if !r.is(name, &m.value, object, `{"type": "Log::Log4perl::Appender::File", "args": {"filename": "…"}}`) {
		return
	}
	given := r.members(" of an appender", &m.value, []string{"type", "layout", "args"})
	if layout := given["layout"]; layout != nil {
		r.notef(layout.from, "the layout has no effect: Sluice's log is text or JSON of its own form")
	}
	kind, args := given["type"], given["args"]
	if kind == nil {
		r.failf(m.at, "%s has no type; add one, as in \"type\": \"Log::Log4perl::Appender::File\"", name)
		return
	}
	if !r.is(name+".type", kind, text, `"Log::Log4perl::Appender::File"`) {
		return
	}
	if !strings.HasSuffix(kind.word, "::File") {
		r.notef(kind.from, "of appenders only those that write a file are known here; without one Sluice logs on standard error")
		return
	}
	if args == nil || args.kind != object {
		r.failf(m.at, "%s writes a file and names none; add \"args\": {\"filename\": \"…\"}", name)
		return
	}
	i := slices.IndexFunc(args.members, func(a member) bool { return a.name == "filename" })
	if i < 0 {
		r.failf(args.from, "%s writes a file and names none; add \"filename\": \"…\"", name)
	} else if file := &args.members[i].value; r.is(name+".args.filename", file, text, `"/var/log/disbatchd.log"`) {
		r.Log.Files = append(r.Log.Files, file.word)
	}
}

var queueID = regexp.MustCompile(`^[0-9a-fA-F]{24}$`)

func (r *reader) queues(key string, n *node, effect string) (ids []plan.QueueID) {
	words := r.texts(key, n, `"571f8951b75bf335634ec271"`, func(id string) string {
		if !queueID.MatchString(id) {
			return "which is no queue's _id; that has 24 hex digits, and names do not count here"
		}
		return ""
	})
	for _, w := range words {
		if id, err := plan.ParseID(strings.ToLower(w)); err == nil {
			ids = append(ids, plan.QueueID{ID: id})
		}
	}
	r.list(key, n, listed(words), effect)
	return ids
}

// readIgnored reads what counts only where activequeues, which was read before, has nothing.
func (r *reader) readIgnored(n *node) {
	effect := "queues that `sluice den --config` leaves alone"
	if len(r.ActiveQueues) > 0 {
		effect = "no effect: activequeues is set"
	}
	r.IgnoreQueues = r.queues("ignorequeues", n, effect)
	if len(r.ActiveQueues) > 0 && len(r.IgnoreQueues) > 0 {
		r.notef(n.from, "activequeues is set too, and only that counts")
		r.IgnoreQueues = nil
	}
}
