package exec

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainLine matches a line in which a shell sees nothing but words: no quotes, variables, patterns, operators or comments.
var plainLine = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-]+([ \t]+[A-Za-z0-9_@%+=:,./-]+)*$`)

// plainWords returns the words of a line for which a shell would only start the program that they
// name. It returns nil for any other line. As make does, such a line is run without the shell: that
// saves starting one, which costs about as much as starting a small program.
func plainWords(line string) []string {
	line = strings.TrimSpace(line)
	if !plainLine.MatchString(line) {
		return nil
	}
	words := strings.Fields(line)
	if shellWords[words[0]] {
		return nil
	}
	return words
}

// onlyProgram returns the program of a line that does nothing before it starts that one: it is one
// command, without redirections and without commands in its arguments. It returns "" for any other
// line, and for a list.
func (s *settings) onlyProgram() string {
	item, shell, line := s.script()
	if item >= 0 || s.argv != nil {
		return ""
	}
	file := parse(line, shell)
	if file == nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 {
		return ""
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	does := false
	syntax.Walk(call, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			does = true
		}
		return !does
	})
	word, whole := static(call.Args[0])
	if does || !whole || shellWords[word] {
		return ""
	}
	return word
}

// shellWords are the words that a shell handles itself at the beginning of a line: reserved words
// and built-ins of POSIX, dash, bash, ksh and busybox.
var shellWords = func() map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.Fields(`
		. : [ ! case coproc do done elif else esac fi for function if in select then time until while
		alias autoload bg bind break builtin caller cd chdir command compgen complete compopt continue declare dirs disown echo enable eval
		exec exit export false fc fg functions getopts hash help hist history integer jobs kill let local logout mapfile nameref
		popd print printf pushd pwd read readarray readonly return set shift shopt sleep source stop suspend test times trap true type
		typeset ulimit umask unalias unset wait whence`) {
		words[w] = true
	}
	return words
}()
