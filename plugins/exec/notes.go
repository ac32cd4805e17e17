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

// Notes implements plugins.Noter. It notes slips, shell text that uses a param as a variable which
// does not exist or nearly has a param's name, and programs that do not exist.
func (p *Plugin) Notes(params json.RawMessage, given map[string]json.RawMessage) []plugins.Note {
	return append(absent(params), variableNotes(params, given)...)
}

func variableNotes(params json.RawMessage, given map[string]json.RawMessage) []plugins.Note {
	as := variables(given)
	noVariable := len(as) < len(given) && bytes.Contains(params, []byte("$"))
	near := mistyped(params, given, as)
	if !noVariable && len(near) == 0 && !maySlip.Match(params) {
		return nil // as nearly all
	}
	s, err := readSettings(params)
	if err != nil {
		return nil // the task says so itself
	}
	notes := s.slips(given)
	item, shell, line := s.script()
	names := s.noVariables(given, as)
	for name := range near {
		if !has(s.env, name) {
			names = append(names, name)
		}
	}
	if line == "" {
		return notes
	}
	for _, u := range uses(line, shell, names, given) {
		var text string
		switch meant, ok := near[u.name]; {
		case ok && u.asks:
			continue
		case ok:
			text = fmt.Sprintf("$%s is empty, unless the node has such a variable; did you mean $%s, the param?", u.name, meant)
		default:
			text = whyNot(u.name, given[u.name])
			if item < 0 {
				text += "; as it is, the task fails"
			}
		}
		notes = append(notes, plugins.Note{Key: "run", Item: item, Word: u.text, Text: text})
	}
	return notes
}

// mistyped returns the variables of a command that no param gives it but one nearly does, with the
// name of that param. It leaves out short names that differ in more than case, and what this process
// has in its environment, as $USER beside a param user.
func mistyped(params json.RawMessage, given map[string]json.RawMessage, as map[string]string) map[string]string {
	if len(as) == 0 {
		return nil
	}
	var near map[string]string
	known := slices.Sorted(maps.Keys(as))
	for _, m := range dollar.FindAllSubmatch(params, -1) {
		name := string(m[1])
		if has(given, name) || has(near, name) || ofShells[name] || strings.HasPrefix(name, "SLUICE_") {
			continue
		}
		meant := hint.Nearest(name, known)
		if meant == "" || len(name) < 4 && !strings.EqualFold(name, meant) {
			continue
		}
		if _, ok := os.LookupEnv(name); ok {
			continue
		}
		if near == nil {
			near = map[string]string{}
		}
		near[name] = meant
	}
	return near
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
