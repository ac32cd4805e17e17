package planfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestSlipsInCommandsAreNoted(t *testing.T) {
	const shell, item, ours = "no shell reads a list", "$item is empty", "$SLUICE_"
	for _, test := range []struct {
		name string
		task string
		want string // the place and how it begins; "": nothing
	}{
		{"a pipe in a list", `run: [ls, -l, "|", wc, -l]`, "4:22 " + shell + `: "|" is an argument of ls`},
		{"a redirection in a list", `run: [./list, 7, ">", out.txt]`, "4:25 " + shell + `: ">" is`},
		{"one to a file whose path is an expression's", `run: [echo, x, ">>", "${{ params.out }}/x"]`, "4:23 " + shell + `: ">>" is`},
		{"two commands in a list", `run: [make, "&&", make, test]`, "4:20 " + shell},
		{"an alternative in a list", `run: [ls, x, "||", "true"]`, "4:21 " + shell},
		{"a second command in a list", `run: [cd, x, ";", ./do]`, "4:21 " + shell},
		{"a bar that is what to look for", `run: [grep, "|", ./file]`, ""},
		{"a separator", `run: [./split, -d, "|", /data/file]`, ""},
		{"the same, of a wrapped program", `run: [nice, cut, "|", ./file]`, ""},
		{"what find ends a command by", `run: [find, ., -exec, ls, "{}", ";"]`, ""},
		{"a command for another machine", `run: [ssh, host, ls, "|", wc]`, ""},
		{"a comparison", `run: [./query, age, ">", "30"]`, ""},
		{"a word between bars", `run: [./query, a, "|", b]`, ""},
		{"a shell's own arguments", `run: [sh, -c, 'ls | wc "$@"', "|", wc]`, ""},
		{"words of a text", `run: "ls | wc > x && true || false; true"`, ""},

		{"an item without foreach", `run: "echo \"$item\" | wc"`, "4:20 " + item},
		{"the same in braces", `run: "echo ${item}"`, "4:18 " + item},
		{"the same in a shell's list", `run: [bash, -ec, "echo $item"]`, "4:30 " + item},
		{"an item of foreach", `foreach: [a, b], run: "echo $item"`, ""},
		{"an item of env", `env: {item: a}, run: "echo $item"`, ""},
		{"an item of a loop", `run: "for item in a b; do echo $item; done"`, ""},
		{"an item that is read", `run: "ls | while read -r item; do echo $item; done"`, ""},
		{"an item with a default", `run: "echo ${item:-x}"`, ""},
		{"an item that comes from elsewhere", `run: ". ./env.sh; echo $item"`, ""},
		{"an item of another language", `run: "perl -e 'print $item'"`, ""},
		{"an item behind a backslash", `run: "echo \\$item"`, ""},
		{"an item in a comment", `run: "make # not $item"`, ""},
		{"a longer name", `run: "echo $items $item_1"`, ""},
		{"another shell", `shell: pwsh -c, run: "echo $item"`, ""},
		{"no shell", `run: [echo, $item]`, ""},

		{"a name like one of ours", `run: "make > $SLUICE_OUTPT"`, "4:20 " + ours + "OUTPT is empty: a command has no variable of that name, nor can env give it one; did you mean $SLUICE_OUTPUT?"},
		{"a longer one", `run: "make > ${SLUICE_OUTPUT_DIR}"`, "4:20 " + ours + "OUTPUT_DIR is empty: a command has no variable of that name, nor can env give it one; did you mean $SLUICE_OUTPUT?"},
		{"the node's own", `run: [sh, -c, "sluice plan list --store $SLUICE_STORE"]`, "4:47 " + ours + "STORE is empty: a command has no variable of that name, nor can env give it one; what there is: SLUICE_PARAMS"},
		{"all of ours", `run: "echo $SLUICE_PARAMS $SLUICE_OUTPUT $SLUICE_TASK $SLUICE_PLAN $SLUICE_NAME $SLUICE_ATTEMPT $SLUICE_NODE $SLUICE_COMMAND"`, ""},
		{"one that the line sets", `run: "SLUICE_STORE=x; echo $SLUICE_STORE"`, ""},
		{"one that may be missing", `run: "sluice --store ${SLUICE_STORE:-x} plan list"`, ""},
		{"no variable", `run: "echo SLUICE_X"`, ""},
		{"another plugin", `plugin: demo, params: {run: "echo $item"}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := "plan: x\nparams: {out: /d}\ntasks:\n  a: {" + test.task + "}\n"
			var got []string
			_, err := Parse("f", []byte(file), Options{
				Notes: func(*plan.Spec) plan.Problems { return nil },
				Note: func(e Error) {
					got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Column, strings.TrimPrefix(e.Message, `task "a": `)))
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > 1 || (test.want == "") != (len(got) == 0) || len(got) == 1 && !strings.HasPrefix(got[0], test.want) {
				t.Errorf("noted is %q, want %q", got, test.want)
			}
		})
	}
}
