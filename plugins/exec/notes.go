package exec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/source"
	"github.com/seed-1177d267/sluice/plugins"
)

// Notes implements plugins.Noter. It notes slips, shell text that uses a variable which does not
// exist, texts with variables that no shell reads, and programs that do not exist.
func (p *Plugin) Notes(params json.RawMessage, given map[string]json.RawMessage) []plugins.Note {
	return append(absent(params), variableNotes(params, given)...)
}

func variableNotes(params json.RawMessage, given map[string]json.RawMessage) []plugins.Note {
	as := variables(given)
	noVariable := len(as) < len(given) && bytes.Contains(params, []byte("$"))
	if !noVariable && !strange(params, given) && !mayBeLiteral.Match(params) && !maySlip.Match(params) {
		return nil // as nearly all
	}
	s, err := readSettings(params)
	if err != nil {
		return nil // the task says so itself
	}
	notes := append(s.slips(given), s.literals(given, as)...)
	item, shell, line := s.script()
	if line == "" {
		return notes
	}
	note := func(u use, text string) {
		notes = append(notes, plugins.Note{Key: "run", Item: item, Word: u.text, Text: text})
	}
	for _, u := range uses(line, shell, s.noVariables(given, as), given) {
		text := whyNot(u.name, given[u.name])
		if item < 0 {
			text += "; as it is, the task fails"
		}
		note(u, text)
	}
	used, set := unset(line, shell)
	known := slices.Concat(slices.Sorted(maps.Keys(as)), slices.Sorted(maps.Keys(s.env)), slices.Sorted(maps.Keys(set)))
	for _, u := range used {
		if has(s.env, u.name) || !strangeName(u.name, given) {
			continue
		}
		remedy := fmt.Sprintf("give it by env or a param, or write ${%s:-} if it may be empty", u.name)
		if near := hint.Nearest(u.name, known); near != "" && (len(u.name) > 2 || strings.EqualFold(u.name, near)) {
			remedy = fmt.Sprintf("did you mean $%s%s", near, origin(near, as, s.env))
		}
		note(u, fmt.Sprintf("$%s is empty, unless the node has such a variable; %s", u.name, remedy))
	}
	return notes
}

// origin ends a question with what sets a variable.
func origin[V any](name string, as map[string]string, env map[string]V) string {
	switch {
	case has(env, name):
		return ", of env?"
	case name == "item":
		return ", the item?"
	case has(as, name):
		return ", the param?"
	}
	return ", which the line sets?"
}

// strange reports whether the params of a command may use a variable that nothing known sets. It
// spares most commands the shell's parser.
func strange(params json.RawMessage, given map[string]json.RawMessage) bool {
	for _, m := range dollar.FindAllSubmatch(params, -1) {
		if strangeName(string(m[1]), given) {
			return true
		}
	}
	return false
}

// strangeName reports whether a variable has a name that neither the params, nor a shell, nor Sluice,
// nor the environment of this process gives a command. A param with another sign in its name is
// noted by itself.
func strangeName(name string, given map[string]json.RawMessage) bool {
	if has(given, name) || name == "item" || strings.HasPrefix(name, ofItem) || ofShell(name) || strings.HasPrefix(name, "SLUICE_") {
		return false
	}
	if _, ok := os.LookupEnv(name); ok && !source.Private(name) {
		return false
	}
	for param := range given {
		if noShellName(param) && shellName.FindString(param) == name {
			return false
		}
	}
	return true
}

var dollar = regexp.MustCompile(`\$\{?([A-Za-z_]\w*)`)

// noVariables returns the params that are not among the variables as, though a line could name them.
func (s *settings) noVariables(given map[string]json.RawMessage, as map[string]string) (names []string) {
	for name := range given {
		if !has(as, name) && !slices.Contains(settingsOwn, name) && !has(s.env, name) && !strings.HasPrefix(name, "SLUICE_") && !ofShells[name] {
			names = append(names, name)
		}
	}
	return names
}

// missing returns why a command cannot start. Its line uses a variable that the task should have
// and does not have. The shell would use an empty text, or a variable of the node that has the name
// of a param. env is the command's environment. as has the params among its variables.
func (s *settings) missing(env []string, as map[string]string) error {
	item, shell, line := s.script()
	if item >= 0 || !strings.Contains(line, "$") {
		return nil // a list is the caller's own
	}
	names := s.noVariables(s.params, as)
	names = append(names, s.unknown(line, s.params)...)
	names = slices.DeleteFunc(names, func(name string) bool {
		usual := has(s.params, name) && !noShellName(name) && !named(name) // the node's of that name is not what is meant
		return !usual && slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, shellName.FindString(name)+"=") })
	})
	for _, u := range uses(line, shell, names, s.params) {
		switch raw, ok := s.params[u.name]; {
		case ok:
			return fmt.Errorf("run: %s", whyNot(u.name, raw))
		case !u.asks:
			return fmt.Errorf("run: %s", lacks(u.name))
		}
	}
	return nil
}

// ofShells are variables that shells set themselves.
var ofShells = map[string]bool{"PWD": true, "OLDPWD": true, "IFS": true, "RANDOM": true, "SECONDS": true, "LINENO": true, "PPID": true, "UID": true,
	"EUID": true, "OPTARG": true, "OPTIND": true, "HOSTNAME": true, "REPLY": true}

// ofShell reports whether a shell may set a variable by itself. bash sets more than ofShells has.
func ofShell(name string) bool {
	return ofShells[name] || ofBash[name] || strings.HasPrefix(name, "BASH")
}

var ofBash = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range strings.Fields(`_ PATH PS1 PS2 PS3 PS4 SHLVL SHELL SHELLOPTS OPTERR HOSTTYPE MACHTYPE OSTYPE GROUPS FUNCNAME DIRSTACK PIPESTATUS MAPFILE COPROC
		COPROC_PID COLUMNS LINES EPOCHSECONDS EPOCHREALTIME SRANDOM TIMEFORMAT HISTCMD COMP_WORDS COMP_CWORD COMPREPLY READLINE_LINE READLINE_POINT`) {
		names[name] = true
	}
	return names
}()

// whyNot says why a param is no variable, and what to write.
func whyNot(name string, raw json.RawMessage) string {
	what, value := fmt.Sprintf("the param %q", name), "params."+name
	if name == "item" {
		what, value = "item", name
	}
	switch as := strings.ToUpper(strings.Map(wordOnly, name)); {
	case noVariables[name]: // what parents gave
		return fmt.Sprintf("$%s is empty: what parents gave becomes no variable; take of it what is needed, as by env: {VALUE: \"${{ needs.NAME }}\"} and $VALUE, "+
			"or read it from the file $SLUICE_PARAMS", name)
	case noShellName(name):
		return fmt.Sprintf("$%s is not %s: no variable has such a name; write env: {%s: \"${{ %s }}\"} and $%s, or name the param %s", name, what, as, value, as, strings.ToLower(as))
	case strings.HasSuffix(name, proxySuffix):
		return fmt.Sprintf("$%s is not %s: params that end in %s become no variables; write env: {%s: \"${{ %s }}\"}", name, what, proxySuffix, name, value)
	case !named(name):
		return fmt.Sprintf("$%s is not %s: only params in lower case become variables; write env: {%s: \"${{ %s }}\"}, or name the param in lower case",
			name, what, name, value)
	}
	why := "is too long for a variable"
	if text, ok := source.Scalar(raw); ok && strings.Contains(text, "\x00") {
		why = "has a NUL byte, and no variable can"
	}
	return fmt.Sprintf("$%s is not %s, which %s; read it from the file $SLUICE_PARAMS", name, what, why)
}

func wordOnly(r rune) rune {
	if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
		return r
	}
	return '_'
}

var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)

// noShellName reports whether no shell takes the name as a whole for a variable's.
func noShellName(name string) bool { return len(shellName.FindString(name)) != len(name) }

// script returns the text of a command that a POSIX shell reads, and that shell. The text is the
// line (item is -1), or the argument of a list with the number item. "" is none.
func (s *settings) script() (item int, shell, text string) {
	if s.argv == nil {
		words := append(strings.Fields(s.shell), "sh")
		if !isShell(words[0]) {
			return -1, "", ""
		}
		return -1, words[0], s.line
	}
	if !isShell(s.argv[0]) {
		return -1, "", ""
	}
	for i, arg := range s.argv[1:] { // options up to one with a c, as in -ec
		switch {
		case !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "--") || strings.Contains(arg, "o"):
			return -1, "", ""
		case strings.Contains(arg, "c") && i+2 < len(s.argv):
			return i + 2, s.argv[0], s.argv[i+2]
		}
	}
	return -1, "", ""
}

func isShell(path string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"}, program(path))
}
