package exec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plugins"
)

var _ plugins.Noter = (*Plugin)(nil)

func TestAParamThatIsNoVariableAndIsUsedAsOneIsNoted(t *testing.T) {
	given := map[string]json.RawMessage{}
	for name, value := range map[string]string{
		"DB": `"test"`, "db": `"test"`, "level": `9`, "my-param": `"x"`, "http_proxy": `"x"`, "list": `["a"]`, "config": `{"deep": {}, "host": "h"}`,
		"item": `{"name": "n"}`, "PWD": `"/"`, "SLUICE_NAME": `"x"`, "Mixed": `true`, "long": `"` + strings.Repeat("x", longestVariable+1) + `"`,
	} {
		given[name] = json.RawMessage(value)
	}
	for _, c := range []struct {
		name, run string // run is a text, or a list as JSON
		want      string // names, in their order
	}{
		{"a capital letter", `echo $DB`, "DB"},
		{"one capital letter", `echo $Mixed`, "Mixed"},
		{"in braces", `echo "${DB}"`, "DB"},
		{"with a default", `echo "${DB:-none}" ${DB-none}`, "DB"},
		{"a dash", `echo $my-param`, "my-param"},
		{"a dash in braces", `echo ${my-param}`, "my-param"},
		{"only like one with a dash", `echo $my-params $my-param-x ${my-param_x}`, ""},
		{"a proxy", `echo $http_proxy`, "http_proxy"},
		{"a list, an object and an item", `echo $list "$config" $item`, ""},
		{"a long one", `echo $long`, "long"},
		{"each once, in the order of the text", `echo $long $DB $long`, "long DB"},
		{"variables", `echo $db ${level}`, ""},
		{"no param", `echo $PATH $DBX $XDB`, "DBX XDB"},
		{"Sluice's own, and the shell's", `echo $SLUICE_NAME $PWD`, ""},
		{"in double quotes", `echo "it's $DB"`, "DB"},
		{"in single quotes", `echo '$DB'`, ""},
		{"in single quotes that are in a word", `awk -v x="a"'$DB' f`, ""},
		{"after single quotes", `echo 'it' $DB`, "DB"},
		{"after a backslash", `echo \$DB "\$DB"`, ""},
		{"after two backslashes", `echo \\$DB`, "DB"},
		{"a process number", `echo $$DB $$ "$$DB"`, ""},
		{"in a comment", "# $DB\necho # it's $DB\n", ""},
		{"after a comment", "# it's\necho $DB", "DB"},
		{"a # in a word", `echo a#$DB ${#db} $DB`, "DB"},
		{"in a command that is in quotes", `echo "$(cat $DB)"`, "DB"},
		{"in single quotes of a command that is in quotes", `echo "$(echo '$DB')" "$(echo ")" '$DB')"`, ""},
		{"after a command that is in quotes", `echo "$(date) it's $DB"`, "DB"},
		{"in single quotes of backquotes", "echo \"`echo '$DB'`\"", ""},
		{"in backquotes", "echo `echo $DB`", "DB"},
		{"in braces of another", `echo ${x:-$DB}`, "DB"},
		{"single quotes in quoted braces are not followed", `echo "${x:-'$DB'}"`, ""},
		{"in $' of bash", `["bash", "-c", "echo $'$DB'"]`, ""},
		{"of a here-document in quotes", "cat <<'E'\n$DB\nE\n", ""},
		{"of a here-document", "cat <<E\n$DB\nE\n", "DB"},
		{"before a here-document", "cat <<E >$DB\nit's\nE\n", "DB"},
		{"in arithmetic", `echo $((DB + 1))`, "DB"},
		{"set in arithmetic", `echo $((DB = 1)) $DB`, ""},
		{"asked for", `test -v DB && echo ${#db}`, ""},
		{"set by printf", `printf -v DB x; echo $DB`, ""},
		{"a here-string", "cat <<<x\necho $DB\n", "DB"},
		{"patterns of case are no ends of commands", `echo "$(case x in x) echo '$DB';; esac)"`, ""},
		{"set before", `DB=x; echo $DB`, ""},
		{"set before, as a word's part", `if true; then X=1 DB=x; fi; echo $DB`, ""},
		{"set after a value with blanks", `X="a b" DB=1; echo $DB`, ""},
		{"set after a value of a command", `X=$(date +%s) DB=1; echo $DB`, ""},
		{"set by a loop", `for DB in a b; do echo $DB; done`, ""},
		{"set by read", `while read -r x DB; do echo $DB; done`, ""},
		{"set by export", `export DB; echo $DB`, ""},
		{"set by a default", `: ${DB:=x}; echo $DB`, ""},
		{"set in a function", `f() { DB=x; }; f; echo $DB`, ""},
		{"set by a file", `. ./env.sh; echo $DB`, ""},
		{"set by a file's words", `export $(cat .env); echo $DB`, ""},
		{"set by a text", `declare -x "$name=x"; echo $DB`, ""},
		{"what another is set to", `export PGDATABASE=$DB`, "DB"},
		{"set by read in a line that goes on", "read a \\\n DB\necho $DB", ""},
		{"set by eval", `eval "$(env.sh)"; echo $DB`, ""},
		{"named in an argument", `docker run -e DB=$DB --DB=$DB "DB=$DB"`, "DB"},
		{"a list for no shell", `["echo", "$DB"]`, ""},
		{"a list for a shell", `["sh", "-c", "echo $DB"]`, "DB"},
		{"a list for a shell with options", `["/bin/bash", "-eu", "-xc", "echo $DB", "x"]`, "DB"},
		{"a list for a shell that reads a file", `["bash", "file", "-c", "echo $DB"]`, ""},
		{"an option with a word of its own", `["bash", "-o", "pipefail", "-c", "echo $DB"]`, ""},
		{"a list for a program that starts a shell", `["ssh", "host", "sh", "-c", "echo $DB"]`, ""},
		{"an expression alone", `["sh", "-c", "echo ${{ params.DB }}"]`, ""},
		{"what is not closed", "echo 'x $DB", ""},
		{"a $ at the end", `echo $`, ""},
		{"no command", `{}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := c.run
			if run[0] != '[' && run[0] != '{' {
				quoted, _ := json.Marshal(run)
				run = string(quoted)
			}
			var got []string
			for _, n := range (&Plugin{}).Notes(json.RawMessage(`{"run":`+run+`}`), given) {
				name, _, _ := strings.Cut(n.Text[1:], " ")
				got = append(got, name)
				if n.Key != "run" || !strings.Contains(c.run, strings.SplitN(n.Word, "\"", 2)[0]) || (n.Item >= 0) != (run[0] == '[') {
					t.Errorf("the note is %+v", n)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("notes are of %q, want %q", got, c.want)
			}
		})
	}
}

func TestNoNoteOfWhatEnvSetsNorOfOtherShells(t *testing.T) {
	given := map[string]json.RawMessage{"DB": json.RawMessage(`"x"`)}
	for params, want := range map[string]int{
		`{"run":"echo $DB"}`:                                      1,
		`{"run":"echo $DB","shell":"bash -eu"}`:                   1,
		`{"run":"echo $DB","env":{"DBX":"x"}}`:                    1,
		`{"run":"echo $DB","env":{"DB":"${{ params.DB }}"}}`:      0,
		`{"run":"echo $DB","env":{"DB":{"from_env":"DB"}}}`:       0,
		`{"run":"echo $DB","shell":"pwsh"}`:                       0,
		`{"run":["sh","-c","echo $DB"],"env":{"DB":{"a":"b"}}}`:   0,
		`{"run":["sh","-c","echo $DB"],"env":{"DB":"literally"}}`: 0,
	} {
		if got := (&Plugin{}).Notes(json.RawMessage(params), given); len(got) != want {
			t.Errorf("%s: %d notes, want %d: %+v", params, len(got), want, got)
		}
	}
	if got := (&Plugin{}).Notes(json.RawMessage(`{"run":"echo DB ${db:-x}"}`), nil); len(got) != 0 {
		t.Errorf("without params there are notes: %+v", got)
	}
}

func TestANoteSaysWhatToWrite(t *testing.T) {
	for name, c := range map[string]struct{ value, says string }{
		"DB":         {`"x"`, `write env: {DB: "${{ params.DB }}"}, or name the param in lower case`},
		"my-param":   {`"x"`, `write env: {MY_PARAM: "${{ params.my-param }}"} and $MY_PARAM, or name the param my_param`},
		"http_proxy": {`"x"`, `write env: {http_proxy: "${{ params.http_proxy }}"}`},
		"long":       {`"` + strings.Repeat("x", longestVariable+1) + `"`, `is too long for a variable; read it from the file $SLUICE_PARAMS; as it is, the task fails`},
		"zero":       {`"\u0000"`, `has a NUL byte, and no variable can; read it from the file $SLUICE_PARAMS`},
	} {
		line, _ := json.Marshal(fmt.Sprintf("echo $%s", name))
		got := (&Plugin{}).Notes(json.RawMessage(`{"run":`+string(line)+`}`), map[string]json.RawMessage{name: json.RawMessage(c.value)})
		if len(got) != 1 || !strings.Contains(got[0].Text, c.says) {
			t.Errorf("%s: notes are %+v, want one that says %q", name, got, c.says)
		}
	}
}

func FuzzUsesStandInTheLine(f *testing.F) {
	f.Add("echo \"$(cat '${x:-$DB}')\" `a` <<E\n$DB\nE\n$((DB+1))")
	f.Fuzz(func(t *testing.T, line string) {
		for _, u := range uses(line, "sh", []string{"DB", "my-param"}, nil) {
			if !strings.Contains(line, u.text) || !strings.Contains(u.text, u.name) {
				t.Errorf("%+v does not stand in %q", u, line)
			}
		}
	})
}
