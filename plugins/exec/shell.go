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
	eachUse(file, at)
	return used
}

// unset returns the names that a line uses as variables and does not set itself, in the order of the
// line, and the names that it sets. It leaves out a name for which the line has a default, or of which
// it asks whether it is empty. It returns nothing of a line that no parser understands, that may set
// any variable, as by eval, or whose shell has ways of its own to set one.
func unset(line, shell string) (used []use, set map[string]bool) {
	if p := program(shell); p == "zsh" || strings.HasSuffix(p, "ksh") {
		return nil, nil
	}
	file := parse(line, shell)
	if file == nil {
		return nil, nil
	}
	set, any := assigned(file)
	if any {
		return nil, nil
	}
	asked := askedFor(file)
	eachUse(file, func(name string, from int, asks bool) {
		switch {
		case asks:
			asked[name] = true
		case !set[name] && !noShellName(name) && !slices.ContainsFunc(used, func(u use) bool { return u.name == name }):
			text, _, _ := strings.Cut(line[from:], "\n")
			used = append(used, use{name: name, text: text})
		}
	})
	return slices.DeleteFunc(used, func(u use) bool { return asked[u.name] }), set
}

// askedFor returns the variables of which a line asks whether they are set or empty, as in
// [ -n "$x" ].
func askedFor(file *syntax.File) map[string]bool {
	asked := map[string]bool{}
	ask := func(w *syntax.Word) {
		syntax.Walk(w, func(n syntax.Node) bool {
			if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil {
				asked[p.Param.Value] = true
			}
			return true
		})
		asked[w.Lit()] = true // of -v
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.UnaryTest:
			if w, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.TsEmpStr || n.Op == syntax.TsNempStr || n.Op == syntax.TsVarSet) {
				ask(w)
			}
		case *syntax.CallExpr:
			if len(n.Args) == 0 || n.Args[0].Lit() != "[" && n.Args[0].Lit() != "test" {
				return true
			}
			for i, w := range n.Args[1:] {
				if op := n.Args[i].Lit(); op == "-n" || op == "-z" || op == "-v" {
					ask(w)
				}
			}
		}
		return true
	})
	return asked
}

// eachUse calls found with the names that a line uses as variables, and where they stand.
func eachUse(file *syntax.File, found func(name string, at int, asks bool)) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			if n.Param != nil && n.Names == 0 {
				found(n.Param.Value, int(n.Pos().Offset()), asks(n))
			}
		case *syntax.ArithmExp:
			eachOperand(n.X, found)
		case *syntax.ArithmCmd:
			eachOperand(n.X, found)
		}
		return true
	})
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
		case *syntax.DeclClause:
			for _, a := range n.Args { // of declare -n
				if text, _ := static(a.Value); a.Naked && a.Name == nil && strings.HasPrefix(text, "-") && strings.Contains(text, "n") {
					any = true
				}
			}
		case *syntax.Redirect:
			if n.N != nil { // of exec {fd}>file
				set[strings.Trim(n.N.Value, "{}")] = true
			}
		case *syntax.CoprocClause:
			if n.Name != nil {
				text, _ := static(n.Name)
				set[text], set[text+"_PID"] = true, true
			}
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
	for i, arg := range args[1:] {
		text, whole := static(arg)
		set[shellName.FindString(text)] = true
		if args[i].Lit() == "-v" && !whole { // of printf
			any = true
		}
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
