package expr

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
)

// Script returns the first argument that a program reads as code and in which bad finds something.
// It also returns the name of the program that reads it. Such arguments are the line of `sh -c`,
// the text of `python3 -c` or `perl -e`, and the words behind `ssh HOST`. Script returns -1 if
// there is none.
//
// Many programs start another one, and have options of their own before it (sudo, timeout, docker
// exec). So the name of a shell or of a usual interpreter counts at any place where it is a word of
// its own. Other names count only where a program must be.
func Script(argv []string, bad func(string) bool) (i int, program string) {
	for at, word := range argv {
		name := programName(word)
		for _, i := range scriptsOf(name, argv[at+1:], started(argv[:at])) {
			if bad(argv[at+1+i]) {
				return at + 1 + i, name
			}
		}
	}
	return -1, ""
}

// isolating are programs that start another one without the variables of the task, with the option
// by which the other one reads what they are given on standard input; "" if it always does.
var isolating = map[string]string{
	"docker": "-i", "podman": "-i", "nerdctl": "-i", "kubectl": "-i", "oc": "-i", "crictl": "-i",
	"lxc": "", "lxc-attach": "", "incus": "", "machinectl": "", "systemd-run": "--pipe", "sudo": "", "doas": "",
}

// Isolator returns the program that keeps the variables of the task from the script at argument i,
// as ssh and docker do. It returns "" if the script has them, and the last program if there are
// several. option is the option by which that program passes standard input on, or "".
func Isolator(argv []string, i int) (program, option string) {
	for at, word := range argv[:i] {
		name := programName(word)
		_, far := remote[name]
		with, isolates := isolating[name]
		if (far || isolates) && started(argv[:at]) {
			program, option = name, with
		}
	}
	return program, option
}

// StandardInput says how the script at argument i, which the program reads, has the value of a
// variable that another program before it does not pass on. It returns "" if the script has the
// variables of the task.
func StandardInput(argv []string, i int, program, variable string) string {
	isolator, option := Isolator(argv, i)
	if isolator == "" {
		return ""
	}
	if option == "-i" {
		command := "exec"
		if slices.Contains(argv[:i], "run") {
			command = "run"
		}
		option = command + " -i"
	}
	if option != "" {
		option = " " + option
	}
	script := "…"
	if _, far := remote[program]; far || slices.Contains(shells, program) {
		script = fmt.Sprintf("… 'read -r %s; …'", variable)
	}
	return fmt.Sprintf(`%s passes no variables on, so let the script read standard input: printf '%%s\n' "$%s" | %s%s %s`,
		isolator, variable, isolator, option, script)
}

// programName returns the name of a program without its folder, the ending of Windows and its version.
func programName(word string) string {
	name := strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(word, `\`, "/"))), ".exe")
	return strings.TrimRight(name, "0123456789.-")
}

// starters are programs whose arguments are other programs: behind them a word that is the name of a program is one.
var starters = []string{"sudo", "doas", "env", "nice", "ionice", "chrt", "taskset", "timeout", "nohup", "setsid", "stdbuf", "time", "xargs", "sshpass", "setpriv",
	"chroot", "unshare", "nsenter", "systemd-run", "strace", "busybox", "command", "exec"}

// started reports whether a program stands behind these words.
func started(before []string) bool {
	return len(before) == 0 || slices.Contains(starters, programName(before[0]))
}

// interpreters are programs with the options behind which code stands, short ones by their letters, and those behind which another word
// stands that is none.
var interpreters = map[string]struct {
	code   string   // letters: -c CODE, -cCODE, -xc CODE
	long   []string // words: --eval CODE, --eval=CODE, eval CODE
	values string   // letters whose word is the next one, if nothing follows
}{
	"python": {code: "c", values: "WXQm"}, "pythonw": {code: "c", values: "WXQm"}, "pypy": {code: "c", values: "WXQm"}, "py": {code: "c", values: "WXQm"},
	"perl": {code: "eEMm", values: "I"}, "ruby": {code: "e", values: "IrCEK"}, "lua": {code: "e", values: "l"}, "luajit": {code: "e", values: "l"},
	"node":   {code: "ep", long: []string{"--eval", "--print", "-pe", "-ep"}, values: "rC"},
	"nodejs": {code: "ep", long: []string{"--eval", "--print", "-pe", "-ep"}, values: "rC"},
	"bun":    {code: "ep", long: []string{"--eval", "--print"}}, "deno": {long: []string{"eval"}},
	"php":     {code: "rBRE", long: []string{"--run", "--process-begin", "--process-code", "--process-end"}, values: "cdz"},
	"rscript": {code: "e"}, "r": {code: "e"}, "julia": {code: "eE", long: []string{"--eval", "--print"}}, "osascript": {code: "e", values: "l"},
	"elixir": {code: "e", long: []string{"--eval", "--rpc-eval"}}, "erl": {long: []string{"-eval"}}, "groovy": {code: "e"}, "scala": {code: "e"}, "ghc": {code: "e"},
	"guile": {code: "c"}, "emacs": {long: []string{"--eval", "--execute"}},
}

var (
	// usual are the interpreters whose names are hardly ever words of another kind.
	usual = []string{"python", "pypy", "perl", "ruby", "node", "nodejs", "php", "lua", "luajit"}

	// shells run a file. With an option that has a c they run the first word that is no option.
	// Other programs take a line for a shell in that way among words of their own.
	shells = []string{"sh", "bash", "rbash", "dash", "ash", "ksh", "mksh", "pdksh", "zsh", "fish", "csh", "tcsh", "yash"}
	others = []string{"su", "runuser", "sg", "script", "flock"}

	// valued are the long options of shells behind which another word stands that is no script.
	valued = []string{"--rcfile", "--init-file", "--emulate", "--profile", "--profile-startup", "--debug-output", "--features"}

	// remote are programs that pass all words behind a host to a shell there, with the letters of
	// their options that take a word. local are programs that pass all their words to a shell here.
	remote = map[string]string{"ssh": "BbcDEeFIiJLlmOopQRSWw", "slogin": "BbcDEeFIiJLlmOopQRSWw", "autossh": "BbcDEeFIiJLlMmOopQRSWw", "rsh": "lp", "mosh": ""}
	local  = map[string]string{"watch": "n", "parallel": "jSN", "wsl": "du"}
)

// scriptsOf returns which arguments of a program are code. first says that the program is certain to be one, and not a word like it.
func scriptsOf(program string, args []string, first bool) []int {
	in, interprets := interpreters[program]
	host, far := remote[program]
	value, near := local[program]
	switch {
	case interprets && (first || slices.Contains(usual, program)):
		return codeOf(args, in.code, in.long, in.values)
	case slices.Contains(shells, program):
		return shellCode(args, true)
	case program == "pwsh" || program == "powershell" || program == "cmd":
		return commandOf(args)
	case !first:
		return nil
	case slices.Contains(others, program):
		return shellCode(args, false)
	case far:
		return behind(args, host, 1)
	case near:
		return behind(args, value, 0)
	case slices.Contains([]string{"awk", "gawk", "mawk", "nawk", "original-awk"}, program):
		return awkCode(args)
	case program == "env":
		return splitOf(args)
	}
	return nil
}

// codeOf returns what stands at options that take code, up to the first word that is no option.
func codeOf(args []string, code string, long []string, values string) (found []int) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		option, _, attached := strings.Cut(word, "=")
		switch {
		case slices.Contains(long, option) && attached:
			found = append(found, i)
			continue
		case slices.Contains(long, word):
			i++
			if i < len(args) {
				found = append(found, i)
			}
			continue
		case !strings.HasPrefix(word, "-") || word == "-" || word == "--":
			return found
		case strings.HasPrefix(word, "--"):
			continue
		}
		at := strings.IndexAny(word[1:], code+values) + 1
		switch {
		case at == 0:
		case !strings.ContainsAny(word[at:at+1], code): // a value
			if at == len(word)-1 {
				i++
			}
		case at < len(word)-1:
			found = append(found, i)
		default:
			if i++; i < len(args) {
				found = append(found, i)
			}
		}
	}
	return found
}

// shellCode returns the script of a shell, which is the first word after an option with a c that is
// no option itself. file says that a word before it is a file, with arguments after it.
func shellCode(args []string, file bool) (found []int) {
	code := false
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case strings.HasPrefix(word, "--command") || strings.HasPrefix(word, "--init-command") || strings.HasPrefix(word, "--session-command"):
			if strings.Contains(word, "=") {
				found = append(found, i)
			}
			code = true
		case file && slices.Contains(valued, word):
			i++
		case word == "-" || strings.HasPrefix(word, "--"):
		case len(word) > 1 && (word[0] == '-' || word[0] == '+'):
			if strings.ContainsAny(word, "cC") {
				code = true
			} else if last := word[len(word)-1]; last == 'o' || last == 'O' {
				i++
			}
		case code:
			return append(found, i)
		case file:
			return found
		}
	}
	return found
}

// commandOf returns all that stands behind the option of cmd and PowerShell that begins a command; PowerShell needs none.
func commandOf(args []string) (found []int) {
	for i, word := range args {
		option := strings.ToLower(strings.TrimLeft(word, "-/"))
		switch {
		case option == "f" || option == "file":
			return nil
		case option == "c" || option == "k" || option == "r" || strings.HasPrefix("command", option) && option != "", strings.HasPrefix(option, "e") && strings.HasPrefix("encodedcommand", option):
			for j := i + 1; j < len(args); j++ {
				found = append(found, j)
			}
			return found
		}
	}
	return nil
}

// behind returns all words behind so many that are no options, the value of one being no word.
func behind(args []string, values string, words int) (found []int) {
	options := true
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case options && word == "--":
			options = false
		case options && len(word) > 1 && word[0] == '-':
			if len(word) == 2 && strings.Contains(values, word[1:]) {
				i++
			}
		case words > 0:
			words--
		default:
			for ; i < len(args); i++ {
				found = append(found, i)
			}
		}
	}
	return found
}

// awkCode returns the program of awk: what is no option, unless a file has it.
func awkCode(args []string) []int {
	found := codeOf(args, "e", []string{"--source"}, "fFvEil")
	if found != nil || slices.ContainsFunc(args, func(word string) bool {
		return strings.HasPrefix(word, "-f") || strings.HasPrefix(word, "-E") || strings.HasPrefix(word, "--file") || strings.HasPrefix(word, "--exec")
	}) {
		return found
	}
	if program := behind(args, "FvilW", 0); program != nil {
		return program[:1]
	}
	return nil
}

// splitOf returns the texts that env splits into words, which name a program.
func splitOf(args []string) (found []int) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case strings.HasPrefix(word, "--split-string"), strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, "S"):
			if found = append(found, i); i+1 < len(args) {
				found = append(found, i+1)
			}
			return found
		case word == "-u" || word == "-C":
			i++
		case !strings.HasPrefix(word, "-") && !strings.Contains(word, "="):
			return nil
		}
	}
	return nil
}

// InScript returns which argument of a run list is code and has an expression, and why the
// expression is refused, with the remedy. It returns -1 if there is none.
func InScript(run json.RawMessage) (i int, why string) {
	var words []json.RawMessage
	if !MayHold(run) || jsontext.IsText(run) || json.Unmarshal(run, &words) != nil {
		return -1, ""
	}
	argv := make([]string, len(words))
	for i, w := range words {
		if json.Unmarshal(w, &argv[i]) != nil {
			argv[i] = string(w) // a number
		}
	}
	i, program := Script(argv, Has)
	if i < 0 {
		return -1, ""
	}
	remedy := "pass the value by env"
	if read := StandardInput(argv, i, program, "VALUE"); read != "" {
		remedy += " as VALUE; " + read
	}
	return i, fmt.Sprintf("in a script of %s could be read as code; %s", program, remedy)
}
