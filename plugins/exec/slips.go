package exec

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/plugins"
)

// slips returns probable mistakes in a command: shell syntax that no shell reads, and variables
// that the command does not have. It leaves out what may be meant.
func (s *settings) slips(given map[string]json.RawMessage) (notes []plugins.Note) {
	if i := operator(s.argv); i >= 0 {
		notes = append(notes, plugins.Note{Key: "run", Item: i, Word: s.argv[i], Text: fmt.Sprintf(
			"no shell reads a list: %q is an argument of %s as any other; write run as one text, and values as variables in it", s.argv[i], s.argv[0])})
	}
	item, shell, line := s.script()
	for _, u := range uses(line, shell, s.unknown(line, given), given) {
		if u.asks {
			continue
		}
		text := lacks(u.name)
		if item < 0 {
			text += "; as it is, the task fails"
		}
		notes = append(notes, plugins.Note{Key: "run", Item: item, Word: u.text, Text: text})
	}
	return notes
}

// unknown returns the names in a line that look like Sluice's own variables, and that a command never has.
func (s *settings) unknown(line string, given map[string]json.RawMessage) (names []string) {
	if !has(given, "item") && !has(s.env, "item") {
		names = append(names, "item")
	}
	if raw := given["item"]; len(raw) > 0 && raw[0] == '{' {
		for _, name := range itemFields.FindAllString(line, -1) {
			if !has(given, name) && !has(s.env, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range sluices.FindAllString(line, -1) {
		if !slices.Contains(sluicesOwn, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// lacks says that a command has no variable of that name, and what was probably meant.
func lacks(name string) string {
	if name == "item" {
		return "$item is empty: only a task with foreach has an item; add foreach, or a param or an env of that name"
	}
	if strings.HasPrefix(name, ofItem) {
		return fmt.Sprintf("$%s is empty: the item has no field %q that is a text, a number, true, false or null; give it one, or write ${%s:-}", name, strings.TrimPrefix(name, ofItem), name)
	}
	const prefix = "SLUICE_"
	words := make([]string, len(sluicesOwn))
	for i, v := range sluicesOwn {
		words[i] = strings.TrimPrefix(v, prefix)
	}
	word := strings.TrimPrefix(name, prefix)
	near := hint.Nearest(word, words)
	if near == "" && strings.HasPrefix(word, "OUT") {
		near = "OUTPUT"
	}
	meant := "what there is: " + strings.Join(sluicesOwn, ", ")
	if near != "" {
		meant = fmt.Sprintf("did you mean $%s%s?", prefix, near)
	}
	return fmt.Sprintf("$%s is empty: a command has no variable of that name, nor can env give it one; %s", name, meant)
}

// maySlip matches commands that have to be checked for slips: a plan may have many.
var maySlip = regexp.MustCompile(`\$\{?(?:item\b|SLUICE_)|"(?:\||>|>>|&&|\|\||;|\\u003e|\\u003e\\u003e|\\u0026\\u0026)"`)

var itemFields = regexp.MustCompile(`\bitem_\w+`)

var sluices = regexp.MustCompile(`\bSLUICE_\w+`)

var (
	operators = []string{"|", ">", ">>", "&&", "||", ";"}

	// takers give such words a meaning of their own, or hand them to a shell, here or elsewhere.
	takers = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "cmd", "powershell", "pwsh", "wsl", "su", "ssh", "rsh", "autossh",
		"mosh", "sshpass", "pssh", "parallel-ssh", "vagrant", "gcloud", "watch", "parallel", "xargs", "find", "fd", "fdfind", "test", "[", "expr", "awk", "gawk",
		"mawk", "sed", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "tr", "cut", "sort", "join", "paste", "column", "jq", "yq", "tmux", "screen",
		"concurrently", "hyperfine", "entr", "eval", "printf"}
	// after are programs that stand after such a word in a shell.
	after = []string{"awk", "bash", "cat", "cd", "chmod", "cp", "curl", "cut", "docker", "echo", "exit", "false", "git", "go", "grep", "gzip", "head", "jq", "less",
		"make", "mail", "mkdir", "mv", "node", "npm", "python", "python3", "rm", "sed", "sh", "sort", "ssh", "tail", "tar", "tee", "touch", "tr", "true", "uniq", "wc",
		"xargs", "zcat"}
)

// operator returns which element of a list only a shell would heed; -1 if none is one for certain: programs may take such words too.
func operator(argv []string) int {
	for i, word := range argv {
		if slices.Contains(takers, strings.TrimSuffix(path.Base(word), ".exe")) {
			return -1
		}
		if i == 0 || i+1 == len(argv) || !slices.Contains(operators, word) {
			continue
		}
		next, ofOption := argv[i+1], strings.HasPrefix(argv[i-1], "-")
		switch {
		case word[0] == '>' && !ofOption && strings.ContainsAny(next, "./") && strings.ContainsFunc(next, unicode.IsLetter),
			word[0] != '>' && !ofOption && (strings.HasPrefix(next, "./") || strings.HasPrefix(next, "/")),
			word[0] != '>' && slices.Contains(after, next):
			return i
		}
	}
	return -1
}
