package exec

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestSlipsInCommandsAreNoted(t *testing.T) {
	const shell, item, ours = "no shell reads a list", "$item is empty", "$SLUICE_"
	for _, c := range []struct {
		name string
		task string // as in a plan file
		want string // how it begins; "": nothing
	}{
		{"a pipe in a list", `run: [ls, -l, "|", wc, -l]`, shell + `: "|" is an argument of ls`},
		{"a redirection in a list", `run: [./list, 7, ">", out.txt]`, shell + `: ">" is`},
		{"one to a file whose path is an expression's", `run: [echo, x, ">>", "${{ params.out }}/x"]`, shell + `: ">>" is`},
		{"two commands in a list", `run: [make, "&&", make, test]`, shell},
		{"an alternative in a list", `run: [ls, x, "||", "true"]`, shell},
		{"a second command in a list", `run: [cd, x, ";", ./do]`, shell},
		{"a bar that is what to look for", `run: [grep, "|", ./file]`, ""},
		{"a separator", `run: [./split, -d, "|", /data/file]`, ""},
		{"the same, of a wrapped program", `run: [nice, cut, "|", ./file]`, ""},
		{"what find ends a command by", `run: [find, ., -exec, ls, "{}", ";"]`, ""},
		{"a command for another machine", `run: [ssh, host, ls, "|", wc]`, ""},
		{"a comparison", `run: [./query, age, ">", "30"]`, ""},
		{"a word between bars", `run: [./query, a, "|", b]`, ""},
		{"a shell's own arguments", `run: [sh, -c, 'ls | wc "$@"', "|", wc]`, ""},
		{"words of a text", `run: "ls | wc > x && true || false; true"`, ""},

		{"an item without foreach", `run: "echo \"$item\" | wc"`, item},
		{"the same in braces", `run: "echo ${item}"`, item},
		{"the same in a shell's list", `run: [bash, -ec, "echo $item"]`, item},
		{"an item of foreach", `foreach: [a, b], run: "echo $item"`, ""},
		{"an item of env", `env: {item: a}, run: "echo $item"`, ""},
		{"an item of a loop", `run: "for item in a b; do echo $item; done"`, ""},
		{"an item that is read", `run: "ls | while read -r item; do echo $item; done"`, ""},
		{"an item with a default", `run: "echo ${item:-x}"`, ""},
		{"an item that comes from elsewhere", `run: ". ./env.sh; echo $item"`, ""},
		{"an item of another language", `run: "perl -e 'print $item'"`, ""},
		{"an item behind a backslash", `run: "echo \\$item"`, ""},
		{"an item in a comment", `run: "make # not $item"`, ""},
		{"a longer name", `run: "echo $items"`, "$items is empty, unless the node has such a variable; give it by env or a param, or write ${items:-} if it may be empty"},
		{"another shell", `shell: pwsh -c, run: "echo $item"`, ""},
		{"no shell", `run: [echo, $item]`, ""},

		{"a name like one of ours", `run: "make > $SLUICE_OUTPT"`, ours + "OUTPT is empty: a command has no variable of that name, nor can env give it one; did you mean $SLUICE_OUTPUT?"},
		{"a longer one", `run: "make > ${SLUICE_OUTPUT_DIR}"`, ours + "OUTPUT_DIR is empty: a command has no variable of that name, nor can env give it one; did you mean $SLUICE_OUTPUT?"},
		{"the node's own", `run: [sh, -c, "sluice plan list --store $SLUICE_STORE"]`, ours + "STORE is empty: a command has no variable of that name, nor can env give it one; what there is: SLUICE_PARAMS"},
		{"all of ours", `run: "echo $SLUICE_PARAMS $SLUICE_OUTPUT $SLUICE_TASK $SLUICE_PLAN $SLUICE_NAME $SLUICE_ATTEMPT $SLUICE_NODE $SLUICE_COMMAND"`, ""},
		{"one that the line sets", `run: "SLUICE_STORE=x; echo $SLUICE_STORE"`, ""},
		{"one that may be missing", `run: "sluice --store ${SLUICE_STORE:-x} plan list"`, ""},
		{"no variable", `run: "echo SLUICE_X"`, ""},
		{"nearly a param", `run: 'ls "$sourc" | wc -l'`, "$sourc is empty, unless the node has such a variable; did you mean $source, the param?"},
		{"a param in capitals", `run: "ls ${SOURCE}"`, "$SOURCE is empty, unless the node has such a variable; did you mean $source, the param?"},
		{"nearly a short param", `run: "echo $ou"`, "$ou is empty, unless the node has such a variable; give it by env or a param"},
		{"nearly a param, set by the line or by env", `run: "Source=1; ls $Source $sources", env: {sources: x}`, ""},
		{"nearly a param, with a default", `run: "ls ${sourc:-.}"`, ""},
		{"nearly a param, of the node", `run: "ls $PATH"`, ""},
		{"another plugin", `plugin: demo, params: {run: "echo $item"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var own map[string]any
			if err := yaml.Unmarshal([]byte("{"+c.task+"}"), &own); err != nil {
				t.Fatal(err)
			}
			given := map[string]json.RawMessage{"out": json.RawMessage(`"/d"`), "source": json.RawMessage(`"data"`), "path": json.RawMessage(`"p"`)}
			if _, ok := own["foreach"]; ok {
				given["item"] = json.RawMessage(`"a"`)
				delete(own, "foreach")
			}
			params, err := json.Marshal(own)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range new(Plugin).Notes(params, given) {
				got = append(got, n.Text)
			}
			if len(got) > 1 || (c.want == "") != (len(got) == 0) || len(got) == 1 && !strings.HasPrefix(got[0], c.want) {
				t.Errorf("noted is %q, want %q", got, c.want)
			}
		})
	}
}
