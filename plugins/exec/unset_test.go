package exec

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A misspelt variable is an empty text: rm -rf "$base/$itm" removes more than one item. A line that
// may set variables in a way that cannot be told gets no note.
func TestAVariableThatNothingSetsIsNoted(t *testing.T) {
	t.Setenv("OF_THE_NODE", "x")
	t.Setenv("SLUICE_TEST_PRIVATE", "x")
	t.Setenv("MONGODB_URI", "x")
	for _, c := range []struct {
		name, task string // as in a plan file
		want       string // the names, each with what was meant
	}{
		{"an item", `run: 'rm -rf "$base/$itm"'`, "base itm=item"},
		{"a param of the plan, and env", `env: {TARGET: /d}, run: 'cp "$sorce" "$TARGT"'`, "sorce=source TARGT=TARGET"},
		{"what the line sets", `run: 'total=1; echo $totl'`, "totl=total"},
		{"a short name, which is near to every other", `run: 'n=1; echo $m'`, "m"},
		{"what an earlier line sets", `run: "total=1\ncd x\necho $total"`, ""},
		{"what a later line sets, for a loop", `run: "for i in 1 2; do echo $old; old=$i; done"`, ""},
		{"all that is set", `env: {A: x}, run: 'echo $A $item $source $OF_THE_NODE $PATH $SLUICE_OUTPUT $RANDOM $1 $@ $# $? $$ $PIPESTATUS'`, ""},
		{"what the node does not pass on", `run: 'echo $MONGODB_URI'`, "MONGODB_URI"},
		{"a default", `run: 'echo ${x:-} ${y-1} ${z:+1} ${a:?no} ${b:=1} $b'`, ""},
		{"a default at another place", `run: 'echo ${x:-1}; echo $x'`, ""},
		{"one that is asked for", `run: 'if [ -n "$x" ] && test -z "$y"; then echo "$x$y"; fi'`, ""},
		{"one that bash asks for", `shell: bash, run: '[[ -v x && -n $y ]] && echo "$x$y"'`, ""},
		{"source", `run: 'source ./env; echo $x'`, ""},
		{"a dot", `run: '. ./env; echo $x'`, ""},
		{"eval", `run: 'eval "$(./env)"; echo $x'`, ""},
		{"read", `run: 'read -r x y; echo $x $y'`, ""},
		{"read of another", `run: 'read -r total; echo $totl'`, "totl=total"},
		{"read without a name", `run: 'read; echo $REPLY'`, ""},
		{"getopts", `run: 'while getopts ab: opt; do echo $opt $OPTARG; done'`, ""},
		{"mapfile", `shell: bash, run: 'mapfile -t rows < f; echo "${rows[@]}"; mapfile; echo $MAPFILE'`, ""},
		{"printf -v", `shell: bash, run: 'printf -v x %s a; echo $x'`, ""},
		{"printf -v of a name that a variable has", `shell: bash, run: 'printf -v "$source" a; echo $x'`, ""},
		{"printf of a variable", `run: 'printf "$source\n"; echo $zzz'`, "zzz"},
		{"declare -n", `shell: bash, run: 'declare -n ref=$source; ref=1; echo $x'`, ""},
		{"export of what a command prints", `run: 'export $(cat .env); echo $x'`, ""},
		{"a file descriptor", `shell: bash, run: 'exec {fd}>f; echo x >&$fd'`, ""},
		{"select, for and coproc", `shell: bash, run: 'select a in x; do echo $a; done; for ((i=0;i<2;i++)); do echo $i; done; coproc C { cat; }; echo $C $C_PID'`, ""},
		{"arithmetic", `run: 'count=1; echo $((count + cuont)); : $((k = 2)); echo $k'`, "cuont=count"},
		{"another program's", `run: "awk '{print $NF}' f; perl -e 'print $x'"`, ""},
		{"a here-document", `run: "cat <<E\n$x\nE\ncat <<'E'\n$y\nE"`, "x"},
		{"another shell", `shell: zsh, run: 'echo $x'`, ""},
		{"a list", `run: [echo, $x]`, ""},
		{"a list for a shell", `run: [sh, -c, 'echo $itm']`, "itm=item"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var own map[string]any
			if err := yaml.Unmarshal([]byte("{"+c.task+"}"), &own); err != nil {
				t.Fatal(err)
			}
			params, err := json.Marshal(own)
			if err != nil {
				t.Fatal(err)
			}
			given := map[string]json.RawMessage{"source": json.RawMessage(`"data"`), "item": json.RawMessage(`"a"`)}
			var got []string
			for _, n := range new(Plugin).Notes(params, given) {
				name, text, _ := strings.Cut(n.Text[1:], " is empty, unless the node has such a variable; ")
				if near, ok := strings.CutPrefix(text, "did you mean $"); ok {
					near, _, _ = strings.Cut(near, ",")
					name += "=" + near
				}
				got = append(got, name)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("noted is %q, want %q", s, c.want)
			}
		})
	}
}

// No shell reads env, dir and the words of a list.
func TestAVariableThatNoShellReadsIsNoted(t *testing.T) {
	t.Setenv("OF_THE_NODE", "x")
	given := map[string]json.RawMessage{"source": json.RawMessage(`"data"`), "item": json.RawMessage(`"a"`)}
	for params, want := range map[string]string{
		`{"run":"true","env":{"PATH":"$PATH:/opt/x"}}`:                             `$PATH in env PATH stays as it is written, because no shell reads it; set it in the line, as in PATH="$PATH:/opt/x"`,
		`{"run":"true","env":{"A":"${OF_THE_NODE}/x"}}`:                            `$OF_THE_NODE in env A stays`,
		`{"run":"true","env":{"A":"1","B":"$A"}}`:                                  `$A in env B stays`,
		`{"run":"true","env":{"A":"$source/x"}}`:                                   `$source in env A stays as it is written, because no shell reads it; write ${{ params.source }}`,
		`{"run":"true","env":{"A":"$item"}}`:                                       `write ${{ item }}`,
		`{"run":"true","dir":"/work/$OF_THE_NODE"}`:                                `$OF_THE_NODE in dir stays as it is written, because no shell reads it; write the path, or cd in the line`,
		`{"run":"true","env":{"A":"$2y$10$abc","B":"${{ item }}","C":"$unknown"}}`: "",
		`{"run":"echo $source","env":{"A":"x"},"dir":"/x"}`:                        "",
		`{"run":"true","env":{"A":{"from_env":"PATH"}}}`:                           "",
	} {
		var got []string
		for _, n := range new(Plugin).Notes(json.RawMessage(params), given) {
			got = append(got, n.Text)
		}
		if s := strings.Join(got, "\n"); !strings.Contains(s, want) || (s == "") != (want == "") {
			t.Errorf("%s: noted is %q, want %q", params, s, want)
		}
	}
}
