package exec

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A use is where a shell line first uses a name as a variable.
type use struct {
	name string
	text string // the line from there on, up to its end
	asks bool   // the line says what to do if the variable is missing, as in ${NAME:-x}
}

// uses returns the names that a shell line uses as variables, in the order of the line. A name that the line may set itself is left out.
// So is every name of a line that no parser understands, or that may set any variable, as by eval.
//
// A name need not be one that a shell takes: of a param my-param, $my-param is a use, unless given has the param my.
func uses(line, shell string, names []string, given map[string]json.RawMessage) (used []use) {
	if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(line, shellName.FindString(name)) }) {
		return nil // as nearly all
	}
	file := parse(line, shell)
	if file == nil {
		return nil
	}
	set, any := assigned(file)
	if any {
		return nil
	}
	at := func(name string, from int, asks bool) {
		if set[name] {
			return
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(line[from:], "$"), "{")
		for _, n := range names {
			switch {
			case n == name && noLonger(rest, names, n):
			case noShellName(n) && shellName.FindString(n) == name && !has(given, name) && whole(rest, n):
			default:
				continue
			}
			if !slices.ContainsFunc(used, func(u use) bool { return u.name == n }) {
				text, _, _ := strings.Cut(line[from:], "\n")
				used = append(used, use{n, text, asks})
			}
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			if n.Param != nil && n.Names == 0 {
				at(n.Param.Value, int(n.Pos().Offset()), asks(n))
			}
		case *syntax.ArithmExp:
			eachOperand(n.X, at)
		case *syntax.ArithmCmd:
			eachOperand(n.X, at)
		}
		return true
	})
	return used
}

// parse returns a line as its shell reads it, nil if it cannot be read. The sh of some systems is a shell that takes more than POSIX says.
func parse(line, shell string) *syntax.File {
	variants := []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash}
	switch program(shell) {
	case "bash":
		variants = []syntax.LangVariant{syntax.LangBash}
	case "ksh", "mksh":
		variants = []syntax.LangVariant{syntax.LangMirBSDKorn, syntax.LangBash}
	case "zsh":
		variants = []syntax.LangVariant{syntax.LangZsh}
	}
	for _, v := range variants {
		if file, err := syntax.NewParser(syntax.Variant(v)).Parse(strings.NewReader(line), ""); err == nil {
			return file
		}
	}
	return nil
}

// program returns the name of a program without its folder and Windows' ending.
func program(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }

// asks reports whether an expansion says what to do if the variable is missing.
func asks(p *syntax.ParamExp) bool {
	if p.Exp == nil {
		return false
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return true
	}
	return false
}

// eachOperand calls found with the names that stand in arithmetic without a $, and where they stand.
func eachOperand(x syntax.ArithmExpr, found func(name string, at int, asks bool)) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.DblQuoted:
			return false // the whole line is walked as well
		case *syntax.Word:
			if name := n.Lit(); name != "" && !noShellName(name) {
				found(name, int(n.Pos().Offset()), false)
			}
		}
		return true
	})
}

// takesNames are the commands that set, or unset, the variables that their arguments name.
var takesNames = map[string]bool{"read": true, "getopts": true, "mapfile": true, "readarray": true, "printf": true, "print": true, "unset": true, "let": true,
	"wait": true, "export": true, "declare": true, "typeset": true, "readonly": true, "local": true, "nameref": true, "select": true}

// assigned returns the variables that a line may set; any says that they cannot be told.
func assigned(file *syntax.File) (set map[string]bool, any bool) {
	set = map[string]bool{}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				set[n.Name.Value] = true
			} else if _, whole := static(n.Value); !whole {
				any = true // export "$(cat file)"
			}
		case *syntax.WordIter:
			set[n.Name.Value] = true
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				set[n.Param.Value] = true
			}
		case *syntax.BinaryArithm:
			if op := n.Op.String(); strings.HasSuffix(op, "=") && !slices.Contains([]string{"==", "!=", "<=", ">="}, op) {
				setOperand(set, n.X)
			}
		case *syntax.UnaryArithm:
			if n.Op == syntax.Inc || n.Op == syntax.Dec {
				setOperand(set, n.X)
			}
		case *syntax.CallExpr:
			any = calls(set, n.Args) || any
		}
		return true
	})
	return set, any
}

func setOperand(set map[string]bool, x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok {
		set[w.Lit()] = true
	}
}

// calls notes the variables that a command sets, and reports whether it may set any.
func calls(set map[string]bool, args []*syntax.Word) (any bool) {
	for len(args) > 0 && slices.Contains([]string{"command", "builtin"}, args[0].Lit()) {
		args = args[1:]
	}
	if len(args) == 0 {
		return false
	}
	name := args[0].Lit()
	if name == "." || name == "source" || name == "eval" {
		return true
	}
	if !takesNames[name] {
		return false
	}
	for _, arg := range args[1:] {
		text, whole := static(arg)
		set[shellName.FindString(text)] = true
		if !whole && shellName.FindString(text) == "" && name != "printf" && name != "print" {
			any = true
		}
	}
	return any
}

// static returns the beginning of a word that a shell does not replace, and whether that is all of it.
func static(w *syntax.Word) (text string, whole bool) {
	if w == nil {
		return "", true
	}
	return staticParts(w.Parts)
}

func staticParts(parts []syntax.WordPart) (text string, whole bool) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			text += p.Value
		case *syntax.SglQuoted:
			text += p.Value
		case *syntax.DblQuoted:
			inner, whole := staticParts(p.Parts)
			if text += inner; !whole {
				return text, false
			}
		default:
			return text, false
		}
	}
	return text, true
}

// whole reports whether a text begins with a name that no shell takes as one, and is not only like it.
func whole(rest, name string) bool {
	after, ok := strings.CutPrefix(rest, name)
	return ok && (after == "" || wordOnly(rune(after[0])) == '_' && after[0] != '_' && after[0] != '-')
}

// noLonger reports whether none of the names that begin with this one is at the beginning of rest.
func noLonger(rest string, names []string, name string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return len(n) > len(name) && whole(rest, n) })
}
