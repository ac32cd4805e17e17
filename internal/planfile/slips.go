package planfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// problems is what is told of a plan.
func (r *reader) problems() plan.Problems { return append(r.notes(r.spec), slips(r.spec)...) }

// slips returns what in commands nearly always is a slip: shell words where no shell reads them, and variables that no command has. What may
// be meant is left out.
func slips(spec *plan.Spec) (found plan.Problems) {
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		params, _ := t.Params.(json.RawMessage)
		if cmp.Or(t.Plugin, plan.DefaultPlugin) != plan.DefaultPlugin || !mayBeSlip(params) {
			continue
		}
		var own struct {
			Run              json.RawMessage
			Shell, Item, Env json.RawMessage
		}
		if json.Unmarshal(params, &own) != nil {
			continue
		}
		note := func(item int, word, format string, args ...any) {
			text := fmt.Sprintf("task %q: %s", t.Name, fmt.Sprintf(format, args...))
			found = append(found, plan.Problem{Task: i, Key: "run", Item: item, Word: word, Message: text})
		}
		var argv []string
		var line string
		item := -1
		if json.Unmarshal(own.Run, &argv) == nil {
			if at := operator(argv); at >= 0 {
				note(at, argv[at], "no shell reads a list: %q is an argument of %s as any other; write run as one text, and values as variables in it", argv[at], argv[0])
			}
			if len(argv) > 2 && isShell(argv[0]) && shellOption.MatchString(argv[1]) {
				item, line = 2, argv[2]
			}
		} else if own.Shell == nil {
			_ = json.Unmarshal(own.Run, &line)
		}
		if _, ok := spec.Params["item"]; !ok && t.Foreach == nil && own.Item == nil && !bytes.Contains(own.Env, []byte(`"item"`)) {
			if use := unset(line, "item"); use != "" {
				note(item, use, "$item is empty: only a task with foreach has an item; add foreach, or a param or an env of that name")
			}
		}
		for _, name := range sluiceVariable.FindAllString(line, -1) {
			if slices.Contains(ofSluice, name) {
				continue
			}
			if use := unset(line, name); use != "" {
				meant := "; what there is: " + strings.Join(ofSluice, ", ")
				if near := nearestOfSluice(name); near != "" {
					meant = fmt.Sprintf("; did you mean $%s?", near)
				}
				note(item, use, "$%s is empty: a command has no variable of that name, nor can env give it one%s", name, meant)
				break
			}
		}
	}
	return found
}

func nearestOfSluice(name string) string {
	const prefix = "SLUICE_"
	words := make([]string, len(ofSluice))
	for i, n := range ofSluice {
		words[i] = strings.TrimPrefix(n, prefix)
	}
	word := strings.TrimPrefix(name, prefix)
	if near := textfile.Nearest(word, words); near != "" {
		return prefix + near
	}
	if strings.HasPrefix(word, "OUT") {
		return prefix + "OUTPUT"
	}
	return ""
}

// mayBeSlip spares most commands from being read again: a plan may have many.
func mayBeSlip(params []byte) bool {
	return bytes.Contains(params, []byte("$item")) || bytes.Contains(params, []byte("${item}")) || bytes.Contains(params, []byte("SLUICE_")) ||
		slices.ContainsFunc(operators, func(o string) bool { return bytes.Contains(params, []byte(`"`+o+`"`)) })
}

var (
	operators = []string{"|", ">", ">>", "&&", "||", ";"}
	// ofSluice are all variables whose names begin so that a command has.
	ofSluice = []string{"SLUICE_PARAMS", "SLUICE_OUTPUT", "SLUICE_TASK", "SLUICE_PLAN", "SLUICE_NAME", "SLUICE_ATTEMPT", "SLUICE_NODE", "SLUICE_COMMAND"}

	sluiceVariable = regexp.MustCompile(`\bSLUICE_\w+`)
	shellOption    = regexp.MustCompile(`^-[eux]*c$`)
	// readsOthers matches a line that may get variables from where they are not seen.
	readsOthers = regexp.MustCompile(`(^|[\s;&|({])(\.|source|eval)\s`)

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

func isShell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"}, strings.TrimSuffix(path.Base(program), ".exe"))
}

// unset returns where a shell line first uses a variable as $NAME or ${NAME}, from there to the end of its line; "" unless it is certain that a
// shell replaces it, and that the line sets it nowhere.
func unset(line, name string) string {
	if !strings.Contains(line, name) || readsOthers.MatchString(line) {
		return ""
	}
	first := -1
	for from := 0; ; {
		i := strings.Index(line[from:], name)
		if i < 0 {
			break
		}
		at, end := from+i, from+i+len(name)
		from = end
		if at > 0 && isNameRune(rune(line[at-1])) || end < len(line) && isNameRune(rune(line[end])) {
			continue // a part of another name
		}
		switch before := line[:at]; {
		case strings.HasSuffix(before, "$"):
			at--
		case strings.HasSuffix(before, "${") && strings.HasPrefix(line[end:], "}"):
			at -= 2
		default:
			return "" // where it may be set, or may be missing
		}
		if first < 0 {
			first = at
		}
	}
	if first < 0 || strings.ContainsAny(line[:first], "'#\\`") || strings.Contains(line[:first], "<<") {
		return "" // it may be quoted
	}
	use, _, _ := strings.Cut(line[first:], "\n")
	return use
}
