package exec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/plugins"
)

// Notes implements plugins.Noter: of slips, and of texts for a shell that use a param as a variable, which it is not. They get what the
// node has under that name, or nothing.
func (p *Plugin) Notes(params json.RawMessage, given map[string]json.RawMessage) []plugins.Note {
	noVariable := !allVariables(given) && bytes.Contains(params, []byte("$"))
	if !noVariable && !maySlip.Match(params) {
		return nil // as nearly all
	}
	s, err := readSettings(params)
	if err != nil {
		return nil // the task says so itself
	}
	notes := s.slips(given)
	item, line := s.script()
	if !noVariable || line == "" {
		return notes
	}
	names := slices.DeleteFunc(slices.Collect(maps.Keys(given)), func(name string) bool {
		_, ok := asVariable(name, given[name])
		return ok || noVariables[name] || has(s.env, name) || strings.HasPrefix(name, "SLUICE_") || ofShells[name]
	})
	for _, u := range uses(line, names, given) {
		notes = append(notes, plugins.Note{Key: "run", Item: item, Word: u.text, Text: whyNot(u.name, given[u.name])})
	}
	return notes
}

// ofShells are variables that shells set themselves.
var ofShells = map[string]bool{"PWD": true, "OLDPWD": true, "IFS": true, "RANDOM": true, "SECONDS": true, "LINENO": true, "PPID": true, "UID": true,
	"EUID": true, "OPTARG": true, "OPTIND": true, "HOSTNAME": true, "REPLY": true}

func allVariables(given map[string]json.RawMessage) bool {
	for name, raw := range given {
		if _, ok := asVariable(name, raw); !ok {
			return false
		}
	}
	return true
}

// whyNot says why a param is no variable, and what to write.
func whyNot(name string, raw json.RawMessage) string {
	what, value := fmt.Sprintf("the param %q", name), "params."+name
	if name == "item" {
		what, value = "item", name
	}
	if !named(name) {
		as := strings.ToUpper(strings.Map(wordOnly, name))
		if noShellName(name) {
			return fmt.Sprintf("$%s is not %s: no variable has such a name; write env: {%s: \"${{ %s }}\"} and $%s, or name the param %s", name, what, as, value, as, strings.ToLower(as))
		}
		if strings.HasSuffix(name, proxySuffix) {
			return fmt.Sprintf("$%s is not %s, but what the node has under that name, or empty: params that end in %s become no variables; write env: {%s: \"${{ %s }}\"}",
				name, what, proxySuffix, name, value)
		}
		return fmt.Sprintf("$%s is not %s, but what the node has under that name, or empty: only params in lower case become variables; "+
			"write env: {%s: \"${{ %s }}\"}, or name the param in lower case", name, what, name, value)
	}
	kind := "too long for a variable"
	switch raw[0] {
	case '[':
		kind = "a list"
	case '{':
		kind = "an object"
		var keys map[string]json.RawMessage
		if json.Unmarshal(raw, &keys) == nil {
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				if _, ok := scalar(keys[key]); ok && variable.MatchString(key) {
					as := strings.ToUpper(key)
					return fmt.Sprintf("$%s is empty: %s is an object, which becomes no variable; take of it what is needed, as by env: {%s: \"${{ %s.%s }}\"} and $%s, "+
						"or read it from the file $SLUICE_PARAMS", name, what, as, value, key, as)
				}
			}
		}
	case 'n':
		kind = "null"
	}
	return fmt.Sprintf("$%s is empty: %s is %s, which becomes no variable; read it from the file $SLUICE_PARAMS", name, what, kind)
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

// script returns the text of a command that a shell reads which has variables as POSIX says: its line, or which argument of a list. "" is
// none.
func (s *settings) script() (item int, text string) {
	if s.argv == nil {
		if words := strings.Fields(s.shell); len(words) > 0 && !isShell(words[0]) {
			return -1, ""
		}
		return -1, s.line
	}
	if !isShell(s.argv[0]) {
		return -1, ""
	}
	for i, arg := range s.argv[1:] { // options up to one with a c, as in -ec
		switch {
		case !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "--") || strings.Contains(arg, "o"):
			return -1, ""
		case strings.Contains(arg, "c") && i+2 < len(s.argv):
			return i + 2, s.argv[i+2]
		}
	}
	return -1, ""
}

func isShell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"}, strings.TrimSuffix(filepath.Base(program), ".exe"))
}

// A use is where a line first uses a param as a variable.
type use struct {
	name string
	text string // the line from there on
}

// uses returns which of the names a shell line uses as variables, in the order of the line: $NAME and ${NAME…}, where a shell replaces
// them. A name that the line may set itself is none of them, and what cannot be told for certain is left out.
func uses(line string, names []string, given map[string]json.RawMessage) (used []use) {
	if setsUnseen.MatchString(line) || strings.Contains(line, "$(") && strings.Contains(line, "case") { // whose ) do not pair
		return nil
	}
	found := map[string]bool{}
	joined := strings.ReplaceAll(line, "\\\n", "  ")
	scan(line, func(rest string) {
		text, _, _ := strings.Cut("$"+rest, "\n")
		rest = strings.TrimPrefix(rest, "{")
		name := shellName.FindString(rest)
		if name == "" {
			return
		}
		for _, n := range names {
			switch {
			case n == name && noLonger(rest, names, n):
			case noShellName(n) && shellName.FindString(n) == name && !has(given, name) && whole(rest, n):
			default:
				continue
			}
			if !found[n] && !sets(joined, name) {
				found[n] = true
				used = append(used, use{n, text})
			}
		}
	})
	return used
}

// whole reports whether a text begins with a name that no shell takes as one, and is not only like it.
func whole(rest, name string) bool {
	after, ok := strings.CutPrefix(rest, name)
	return ok && (after == "" || wordOnly(rune(after[0])) == '_' && after[0] != '_' && after[0] != '-')
}

// noLonger reports whether none of the names that begin with this one stands there.
func noLonger(rest string, names []string, name string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return len(n) > len(name) && whole(rest, n) })
}

// setsUnseen matches what may set variables of any name.
var setsUnseen = regexp.MustCompile(
	`(^|[\s;&|({])((\.|source|eval)\s|(export|declare|typeset|readonly|local)(\s+-\w+)*\s+"?[$` + "`])")

// sets reports whether a line may give a variable a value itself.
func sets(line, name string) bool {
	for at := 0; ; {
		i := strings.Index(line[at:], name)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(name)
		at = to
		if from > 0 && isWord(line[from-1]) || to < len(line) && isWord(line[to]) {
			continue
		}
		after := line[to:]
		if from > 0 && line[from-1] == '{' {
			if strings.HasPrefix(after, "=") || strings.HasPrefix(after, ":=") {
				return true
			}
			continue
		}
		if from > 0 && line[from-1] == '$' {
			continue
		}
		before := line[strings.LastIndexAny(line[:from], "\n;&|({")+1 : from]
		if takesNames.MatchString(before) {
			return true
		}
		if strings.HasPrefix(after, "=") || strings.HasPrefix(after, "+=") || strings.HasPrefix(after, "[") {
			if assigns(before) {
				return true
			}
		}
	}
}

// assigns reports whether what comes after this beginning of a command, and looks like an assignment, may be one and no argument.
func assigns(before string) bool {
	if before != "" && strings.TrimRight(before, " \t") == before {
		return false // it is the end of a word, as in --name=
	}
	if strings.ContainsAny(before, "\"'`)}\\") {
		return true // words are not told for certain
	}
	for _, word := range strings.Fields(before) {
		if !strings.Contains(word, "=") && !slices.Contains([]string{"if", "then", "else", "elif", "do", "while", "until", "!", "time"}, word) {
			return false
		}
	}
	return true
}

// takesNames matches the beginning of a command that sets the variables which it names.
var takesNames = regexp.MustCompile(`(^|\s)(read|for|select|local|export|declare|typeset|readonly|mapfile|readarray|getopts|printf|let|unset)\s`)

func isWord(c byte) bool { return wordOnly(rune(c)) == rune(c) }

// scan calls found with what follows each $ of a line that a shell replaces: not in single quotes, after a backslash, in a comment. Where
// it could not go on for certain it ends: at the text of a here-document, and at $'.
func scan(line string, found func(rest string)) {
	var within []byte // what is open: " or ( or ` or {
	in := func() byte {
		if len(within) == 0 {
			return 0
		}
		return within[len(within)-1]
	}
	open := func(c byte) { within = append(within, c) }
	end := func() { within = within[:len(within)-1] }
	document := false
	for i := 0; i < len(line); i++ {
		rest := line[i+1:]
		switch c := line[i]; {
		case c == '\\':
			i++
		case c == '`':
			j := strings.IndexByte(rest, '`')
			if j < 0 || strings.Contains(rest[:j], "\\") {
				return // what is between is read twice, the first time for its backslashes
			}
			i += j + 1
		case c == '"':
			if in() == '"' {
				end()
			} else {
				open('"')
			}
		case c == '\'' && in() == '{':
			return // what it means there depends on what is around the braces
		case c == '\'' && in() != '"':
			j := strings.IndexByte(rest, '\'')
			if j < 0 {
				return
			}
			i += j + 1
		case c == '$' && strings.HasPrefix(rest, "{{"): // an expression, of a list
			j := strings.Index(rest, "}}")
			if j < 0 {
				return
			}
			i += j + 2
		case c == '$' && strings.HasPrefix(rest, "'") && in() != '"':
			return
		case c == '$' && strings.HasPrefix(rest, "("):
			open('(')
			i++
		case c == '$' && strings.HasPrefix(rest, "{"):
			found(rest)
			open('{')
			i++
		case c == '$' && rest != "" && strings.IndexByte("$@*#?-!0123456789", rest[0]) >= 0:
			i++
		case c == '$':
			found(rest)
		case c == '}' && in() == '{':
			end()
		case in() == '"' || in() == '{':
		case c == '(':
			open('(')
		case c == ')' && in() == '(':
			end()
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;&|()", line[i-1]) >= 0):
			j := strings.IndexByte(rest, '\n')
			if j < 0 {
				return
			}
			i += j // the newline is next
		case c == '<' && strings.HasPrefix(rest, "<<"):
			i += 2
		case c == '<' && strings.HasPrefix(rest, "<"):
			document = true
			i++
		case c == '\n' && document:
			return
		}
	}
}
