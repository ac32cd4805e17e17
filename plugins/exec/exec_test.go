//go:build unix

package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// unguarded, in its environment, makes the tests' program one that forgot GuardMain.
const unguarded = "SLUICE_EXEC_TEST_UNGUARDED"

func TestMain(m *testing.M) {
	if os.Getenv(unguarded) != "" {
		fmt.Print(New(Options{}).CheckStart())
		os.Exit(0)
	}
	GuardMain()
	os.Exit(m.Run())
}

func TestAProgramThatForgotGuardMainIsToldAtItsStart(t *testing.T) {
	if err := New(Options{}).CheckStart(); err != nil {
		t.Errorf("with GuardMain: %v", err)
	}
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), unguarded+"=1")
	if said, err := cmd.Output(); err != nil || string(said) != errUnguarded.Error() {
		t.Errorf("without GuardMain: %q, %v", said, err)
	}
}

// object is what tests write as params.
type object = map[string]any

// task returns an attempt with these params.
func task(t testing.TB, params object) *plugins.Task {
	t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	return &plugins.Task{
		ID: plan.TaskID{ID: plan.NewID(time.Unix(1, 0))}, Plan: plan.PlanID{ID: plan.NewID(time.Unix(2, 0))}, Name: "copy[3]", Node: "n1", Attempt: 2,
		Params: raw, Log: &plugins.Log{},
	}
}

// newPlugin returns a plugin whose files are the test's own.
func newPlugin(t testing.TB, o Options) *Plugin {
	t.Helper()
	if o.TempDir == "" {
		o.TempDir = t.TempDir()
	}
	p := New(o)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(o.TempDir); err != nil || len(left) > 0 {
			t.Errorf("%v, %v are left when the plugin is closed", left, err)
		}
	})
	return p
}

// run runs a task and returns its log too.
func run(t testing.TB, params object) (plan.Result, string) {
	t.Helper()
	p, k := newPlugin(t, Options{}), task(t, params)
	r := p.Run(t.Context(), k)
	var printed strings.Builder
	for _, e := range k.Log.Drain() {
		printed.WriteString(e.Text)
	}
	return r, printed.String()
}

func TestHowATaskEnds(t *testing.T) {
	dir := t.TempDir()
	marked := filepath.Join(dir, "marked")
	if err := os.WriteFile(marked, []byte("\uFEFFs3cret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exit := func(code int) *plan.Exit { return &plan.Exit{Code: code} }
	killed := func(signal string) *plan.Exit { return &plan.Exit{Code: -1, Signal: signal} }
	for _, c := range []struct {
		name   string
		params object
		status plan.Status
		reason plan.Reason
		exit   *plan.Exit
		output string
		detail string // what Detail holds
	}{
		{"a line that succeeds", object{"run": "true"}, plan.Succeeded, "", exit(0), "", ""},
		{"a list that succeeds", object{"run": []any{"test", "a b", "=", "a b"}}, plan.Succeeded, "", exit(0), "", ""},
		{"numbers in a list", object{"run": []any{"test", 15, "-eq", 15.0}}, plan.Succeeded, "", exit(0), "", ""},
		{"an exit status", object{"run": "exit 3"}, plan.Failed, "", exit(3), "", "exit status 3"},
		{"what it said last", object{"run": "echo first >&2; echo 'disk full' >&2; echo out; exit 3"}, plan.Failed, "", exit(3), "", "disk full (exit status 3)"},
		{"what it said last, if its end is not quiet", object{"run": "echo 127 >/dev/null; exec 2>/dev/null; nosuch-program"}, plan.Failed, "", exit(127), "", "exit status 127: a program of the line was not found"},
		{"what it said last, before a signal of its own", object{"run": "echo broken >&2; kill -ABRT $$"}, plan.Failed, plan.ReasonSignal, killed("SIGABRT"), "", "broken (ended by SIGABRT)"},
		{"a signal that others send is the cause", object{"run": "echo 10% >&2; kill -KILL $$"}, plan.Failed, plan.ReasonSignal, killed("SIGKILL"), "", "ended by SIGKILL, as the system"},
		{"a line ends at its first failure", object{"run": "false\nexit 3"}, plan.Failed, "", exit(1), "", "exit status 1"},
		{"a program that the line does not find", object{"run": "nosuch-program"}, plan.Failed, "", exit(127), "", "nosuch-program: not found (exit status 127)"},
		{"a file of the line that is no program", object{"run": dir}, plan.Failed, "", exit(126), "", "Permission denied (exit status 126)"},
		{"a signal", object{"run": "kill -TERM $$"}, plan.Failed, plan.ReasonSignal, killed("SIGTERM"), "", "ended by SIGTERM"},
		{"a signal as the system's", object{"run": "kill -KILL $$"}, plan.Failed, plan.ReasonSignal, killed("SIGKILL"), "", "memory"},
		{"another shell", object{"shell": "bash", "run": `[[ -n $BASH_VERSION ]]`}, plan.Succeeded, "", exit(0), "", ""},
		{"bash sees a failure in a pipe", object{"shell": "bash", "run": "false | true"}, plan.Failed, "", exit(1), "", "exit status 1"},
		{"another shell with options", object{"shell": "bash -o pipefail", "run": "false | true"}, plan.Failed, "", exit(1), "", "exit status 1"},

		{"an output", object{"run": `echo '{"a": [1, 2]}' > "$SLUICE_OUTPUT"`}, plan.Succeeded, "", exit(0), `{"a": [1, 2]}`, ""},
		{"an output with a byte order mark", object{"run": `printf '\357\273\277{"a": 1}' > "$SLUICE_OUTPUT"`}, plan.Succeeded, "", exit(0), `{"a": 1}`, ""},
		{"a secret from a file with a byte order mark", object{"run": `test "$KEY" = s3cret`, "env": object{"KEY": object{"from_file": marked}}}, plan.Succeeded, "", exit(0), "", ""},
		{"an empty output", object{"run": `echo > "$SLUICE_OUTPUT"`}, plan.Succeeded, "", exit(0), "", ""},
		{"whether an output is JSON is for others to judge", object{"run": `echo hello > "$SLUICE_OUTPUT"`}, plan.Succeeded, "", exit(0), "hello", ""},
		{"the output of a failure does not count", object{"run": `echo 1 > "$SLUICE_OUTPUT"; exit 1`}, plan.Failed, "", exit(1), "", "exit status 1"},
		{"an output that is there before it starts", object{"run": `test -f "$SLUICE_OUTPUT"`}, plan.Succeeded, "", exit(0), "", ""},
		{"an output that replaces the file", object{"run": `echo 1 > "$SLUICE_OUTPUT.new"; mv "$SLUICE_OUTPUT.new" "$SLUICE_OUTPUT"`}, plan.Succeeded, "", exit(0), "1", ""},
		{"an output that vanished", object{"run": `echo 1 > "$SLUICE_OUTPUT"; rm "$SLUICE_OUTPUT"`}, plan.Queued, plan.ReasonLost, exit(0), "", "somebody removed its $SLUICE_OUTPUT"},
		{"an output whose folder vanished, so that it failed", object{"run": `rm -r "${SLUICE_OUTPUT%/*}"; echo 1 > "$SLUICE_OUTPUT"`}, plan.Queued, plan.ReasonLost, exit(2), "", "let TMPDIR of the node name a folder that nothing tidies"},
		{"a failure that removed its output", object{"run": `rm "$SLUICE_OUTPUT"; exit 3`}, plan.Failed, "", exit(3), "", "exit status 3"},
		{"a FIFO as its output", object{"run": `rm "$SLUICE_OUTPUT"; mkfifo "$SLUICE_OUTPUT"`}, plan.Failed, plan.ReasonOutput, exit(0), "", "no longer a file"},
		{"other files beside its output", object{"run": `mkdir "$SLUICE_OUTPUT.d"; echo 1 > "$SLUICE_OUTPUT.d/x"; cp "$SLUICE_OUTPUT.d/x" "$SLUICE_OUTPUT"`}, plan.Succeeded, "", exit(0), "1", ""},

		{"a program that is missing", object{"run": []any{"nosuch-program"}}, plan.Failed, plan.ReasonError, nil, "", `"nosuch-program"`},
		{"a folder that is missing", object{"run": "true", "dir": dir + "/gone"}, plan.Failed, plan.ReasonError, nil, "", dir + "/gone"},
		{"a shell that is missing", object{"run": "true", "shell": "nosuch-shell"}, plan.Failed, plan.ReasonError, nil, "", `"nosuch-shell"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, printed := run(t, c.params)
			if r.Status != c.status || r.Reason != c.reason || string(r.Output) != c.output || !reflect.DeepEqual(r.Exit, c.exit) {
				t.Errorf("status %v, reason %q, exit %+v, output %q; want %v, %q, %+v, %q; it printed %q",
					r.Status, r.Reason, r.Exit, r.Output, c.status, c.reason, c.exit, c.output, printed)
			}
			if !strings.Contains(r.Detail, c.detail) || (c.detail == "") != (r.Detail == "") {
				t.Errorf("detail %q, want %q in it", r.Detail, c.detail)
			}
		})
	}
}

func TestALineThatUsesWhatIsNotThereIsNotStarted(t *testing.T) {
	many := object{"z": strings.Repeat("x", 200<<10)}
	for i := range 20 {
		many[fmt.Sprintf("list%02d", i)] = []string{strings.Repeat("x", 90<<10)}
	}
	t.Setenv("DB", "the node's")
	for _, c := range []struct {
		name   string
		params object // in addition to run
		run    string
		says   string
	}{
		{"a capital letter", object{"Base": "b"}, `rm -rf "$HOME/nosuch/$Base"`, `$Base is not the param "Base": only params in lower case become variables; write env: {Base: "${{ params.Base }}"}`},
		{"one that the node has, too", object{"DB": "test"}, `echo "$DB"`, `$DB is not the param "DB"`},
		{"one with a default", object{"DB": "test"}, `echo "${DB:-none}"`, `$DB is not the param "DB"`},
		{"a dash", object{"my-param": "b"}, `echo "$my-param"`, `write env: {MY_PARAM: "${{ params.my-param }}"}`},
		{"a text that is too long", object{"long": strings.Repeat("x", 200<<10)}, `echo "$long"`, `$long is not the param "long", which is too long for a variable`},
		{"a list that is too long", object{"long": []string{strings.Repeat("x", 200<<10)}}, `echo "$long"`, `$long is not the param "long", which is too long for a variable`},
		{"lists that are too long together", many, `echo "$list19"`, `$list19 is not the param "list19", which is too long`},
		{"a NUL byte", object{"zero": "a\x00b"}, `echo "$zero"`, `$zero is not the param "zero", which has a NUL byte`},
		{"an item where there is none", nil, `echo "$item"`, `$item is empty: only a task with foreach has an item`},
		{"what parents gave", object{"needs": object{"a": 1}}, `echo "$needs"`, `$needs is empty: what parents gave becomes no variable`},
		{"a name like ours", nil, `echo "$SLUICE_OUT"`, `$SLUICE_OUT is empty`},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := object{"run": "echo started; " + c.run}
			for k, v := range c.params {
				params[k] = v
			}
			r, printed := run(t, params)
			if printed != "" || r.Status != plan.Failed || r.Reason != plan.ReasonError || !strings.Contains(r.Detail, c.says) {
				t.Errorf("it is %v, %q, %q, and printed %q; want a failure before it starts that says %q", r.Status, r.Reason, r.Detail, printed, c.says)
			}
		})
	}
}

func TestWhatACommandSees(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("from a file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]string{
		"SLUICE_STORE": "mongodb://u:pw@h/d", "SLUICE_TEST_MONGODB": "x", "MONGODB_URI": "mongodb://u:pw@h/d", "SLUICE_ATTEMPT": "77",
		"OF_THE_NODE": "node", "taken": "the node's", "REPLACED": "the node's", "TOKEN": "from the node",
	} {
		t.Setenv(name, v)
	}
	for _, c := range []struct {
		name   string
		params object // in addition to run
		run    string
		want   string
	}{
		{"what the node has", nil, `echo "$OF_THE_NODE"`, "node\n"},
		{"but not what is the node's own", nil, `echo "${SLUICE_STORE-}${SLUICE_TEST_MONGODB-}$MONGODB_URI"`, "\n"},
		{"who it is", nil, `echo "$SLUICE_NAME $SLUICE_ATTEMPT $SLUICE_NODE $(printf %s "$SLUICE_TASK" | wc -c) $(printf %s "$SLUICE_PLAN" | wc -c)"`, "copy[3] 2 n1 24 24\n"},
		{"params as variables", object{"domain": "example.com", "n": 1.5, "yes": true, "item": "i"}, `echo "$domain $n $yes $item"`, "example.com 1.5 true i\n"},
		{"a param as it is, whatever is in it", object{"domain": "$(echo no) `x` 'y'\nz"}, `echo "$domain"`, "$(echo no) `x` 'y'\nz\n"},
		{"params that are no variables", object{"Upper": 1, "with-dash": 1, "http_proxy": "x", "needs": "n", "args": "a", "zero": "a\x00b"},
			`env | grep -c -i -e ^upper= -e ^with -e proxy= -e ^needs= -e ^args= -e ^zero= || true`, "0\n"},
		{"a param replaces a variable of the node", object{"taken": "the param's"}, `echo "$taken"; env | grep -c ^taken=`, "the param's\n1\n"},
		{"and hides it where it is too long", object{"taken": strings.Repeat("x", 200<<10)}, `env | grep -c ^taken= || true`, "0\n"},
		{"lists, objects and null, as JSON", object{"list": []any{1, "a b"}, "map": object{"a": 1}, "nothing": nil, "item": object{"name": "north"}},
			`echo "$list $map $nothing $item"`, `[1,"a b"] {"a":1} null {"name":"north"}` + "\n"},
		{"params that the line sets itself", object{"Upper": 1, "needs": object{}}, `Upper=2; for needs in a; do echo "$Upper$needs"; done`, "2a\n"},
		{"a name that only looks like an item's", nil, `echo "${item:-none} ${items}"`, "none \n"},
		{"a list is read by no shell", object{"run": []string{"echo", "$Upper"}, "Upper": 1}, "", "$Upper\n"},
		{"but env goes before it", object{"taken": "the param's", "env": object{"taken": "env's"}}, `env | grep ^taken=`, "taken=env's\n"},
		{"nor one of env", object{"a": "the param's", "env": object{"a": "of env"}}, `echo "$a"`, "of env\n"},
		{"env replaces a variable of the node, once", object{"env": object{"REPLACED": "new"}}, `env | grep ^REPLACED=`, "REPLACED=new\n"},
		{"values of env", object{"env": object{"A": "text", "B": 0.10, "C": false}}, `echo "$A $B $C"`, "text 0.1 false\n"},
		{"a param that is too long for a variable", object{"long": strings.Repeat("x", 200<<10)}, `grep -c xxx "$SLUICE_PARAMS"`, "1\n"},
		{"the params as a file", object{"needs": object{"p": object{"x": 1}}, "args": []any{object{"x": 1}}},
			`tr -d ' ' < "$SLUICE_PARAMS" | sed 's/,"run":.*/}/'`, `{"args":[{"x":1}],"needs":{"p":{"x":1}}}`},
		{"nothing to read", nil, "wc -c | tr -d ' '", "0\n"},
		{"the params to read", object{"stdin": "params"}, `cmp - "$SLUICE_PARAMS" && echo same`, "same\n"},
		{"its folder, by its name too", object{"dir": dir}, `pwd; env | grep ^PWD=`, dir + "\nPWD=" + dir + "\n"},
		{"a settings' name in capitals is only a param", object{"RUN": "exit 9", "Dir": "/nosuch", "ENV": "x"}, "echo fine", "fine\n"},
		{"files that others cannot read", nil, `ls -ld "$SLUICE_PARAMS" "$(dirname "$SLUICE_PARAMS")" | cut -c 1-10`, "drwx------\n-rw-------\n"},
		{"secrets, which are not seen in what it prints", object{"env": object{"A": object{"from_env": "TOKEN"}, "B": object{"from_file": secret}}},
			`exec >&2; echo "$A, ${#A}"; echo "$B, ${#B}"; test "$A" = "from the node" && test "$B" = "from a file" && echo right`, "***, 13\n***, 11\nright\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := object{"run": c.run}
			for k, v := range c.params {
				params[k] = v
			}
			r, printed := run(t, params)
			if printed != c.want || r.Status != plan.Succeeded {
				t.Errorf("it printed %q, want %q; %v, %s", printed, c.want, r.Status, r.Detail)
			}
		})
	}
}

func TestAnOutputThatIsTooLargeIsReadNoFurtherThanThat(t *testing.T) {
	r, _ := run(t, object{"run": fmt.Sprintf(`head -c %d /dev/zero | tr '\0' 1 > "$SLUICE_OUTPUT"`, plan.MaxOutput+5000)})
	if len(r.Output) != plan.MaxOutput+1 {
		t.Errorf("%d bytes were read, want %d", len(r.Output), plan.MaxOutput+1)
	}
	ended := rules.Conclude(&protocol.ClaimedTask{}, r, nil)
	if ended.Status != plan.Failed || ended.Reason != plan.ReasonOutput {
		t.Errorf("it ends as %v, %q; want failed for its output", ended.Status, ended.Reason)
	}
}

func TestParamsThatMakeNoSense(t *testing.T) {
	t.Setenv("SLUICE_STORE", "mongodb://u:pw@h/d")
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(t.TempDir(), "huge")
	if err := errors.Join(os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 1<<40)); err != nil { // without room on the disk
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		params any
		want   []string
	}{
		{"no mapping", 5, []string{"params of exec"}},
		{"no command", object{}, []string{"run", "no command"}},
		{"an empty line", object{"run": " \n"}, []string{"run", "empty"}},
		{"an empty list", object{"run": []any{}}, []string{"run", "empty"}},
		{"a number", object{"run": 5}, []string{"run", "5", "list"}},
		{"a list in a list", object{"run": []any{"echo", []any{1}}}, []string{"run", "argument 1", "[1]"}},
		{"a secret as an argument", object{"run": []any{"echo", object{"from_env": "X"}}}, []string{"argument 1", "pass it by env"}},
		{"a folder that is no text", object{"run": "true", "dir": 5}, []string{"dir", "5"}},
		{"a shell that is no text", object{"run": "true", "shell": []any{}}, []string{"shell", "[]"}},
		{"something else to read", object{"run": "true", "stdin": "file"}, []string{"stdin", `"file"`, "params"}},
		{"an environment that is no mapping", object{"run": "true", "env": []any{"A=1"}}, []string{"env", `["A=1"]`}},
		{"a variable that is no scalar", object{"run": "true", "env": object{"A": []any{1}}}, []string{"env A", "[1]", "$SLUICE_PARAMS"}},
		{"a variable that is nothing", object{"run": "true", "env": object{"A": nil}}, []string{"env A", "null"}},
		{"a variable without a name", object{"run": "true", "env": object{"": "x"}}, []string{"env", `""`}},
		{"a variable whose name holds =", object{"run": "true", "env": object{"A=B": "x"}}, []string{"env", `"A=B"`}},
		{"a variable of Sluice's own", object{"run": "true", "env": object{"SLUICE_OUTPUT": "x"}}, []string{"env", "SLUICE_OUTPUT", "take another"}},
		{"a variable that holds NUL", object{"run": "true", "env": object{"A": "a\x00b"}}, []string{"env A", "NUL"}},
		{"a secret of two places", object{"run": "true", "env": object{"A": object{"from_env": "X", "from_file": "y"}}}, []string{"env A", "from_env"}},
		{"a secret of no place", object{"run": "true", "env": object{"A": object{"from": "X"}}}, []string{"env A", "from_env"}},
		{"a secret that is not there", object{"run": "true", "env": object{"A": object{"from_env": "NOSUCH_VARIABLE"}}}, []string{"env A", "NOSUCH_VARIABLE", "set it"}},
		{"the node's own secrets", object{"run": "true", "env": object{"A": object{"from_env": "SLUICE_STORE"}}}, []string{"env A", "SLUICE_STORE", "no task gets it"}},
		{"a file that is not there", object{"run": "true", "env": object{"A": object{"from_file": "/nosuch/file"}}}, []string{"env A", "/nosuch/file", "on the node"}},
		{"a file that is too large", object{"run": "true", "env": object{"A": object{"from_file": huge}}}, []string{"env A", huge, "has 1099511627776 bytes", "131072 are the most"}},
		{"a FIFO instead of a file", object{"run": "true", "env": object{"A": object{"from_file": fifo}}}, []string{"env A", fifo, "not a file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			params, _ := c.params.(object)
			k := task(t, params)
			if params == nil {
				k.Params = json.RawMessage(fmt.Sprint(c.params))
			}
			r := newPlugin(t, Options{}).Run(t.Context(), k)
			if r.Status != plan.Failed || r.Reason != plan.ReasonError {
				t.Errorf("status %v, reason %q; want failed, error", r.Status, r.Reason)
			}
			for _, part := range c.want {
				if !strings.Contains(r.Detail, part) {
					t.Errorf("%q says nothing of %q", r.Detail, part)
				}
			}
			if strings.Contains(r.Detail, "pw@") {
				t.Errorf("%q has a secret in it", r.Detail)
			}
		})
	}
}

func TestWhatIsRefusedAsItIsAdded(t *testing.T) {
	given := map[string]json.RawMessage{"item": json.RawMessage(`""`)}
	ofPlan := map[string]json.RawMessage{"run": json.RawMessage(`"true"`), "env": json.RawMessage(`"prod"`)}
	for _, c := range []struct {
		name   string
		params string
		given  map[string]json.RawMessage
		key    string // "": it is not refused
		want   string
	}{
		{"no command", `{}`, given, "run", "run: there is no command; give a shell line, or a list of a program and its arguments"},
		{"no params", `null`, nil, "run", "run: there is no command"},
		{"an empty line", `{"run": " "}`, nil, "run", "the shell line is empty; write a command"},
		{"an environment that is no mapping", `{"run": "true", "env": "prod"}`, nil, "env", `env: "prod" is not a mapping`},
		{"a variable that is no scalar", `{"run": "true", "env": {"A": [1]}}`, nil, "env", "env A: [1]"},
		{"a name that no variable can have", `{"run": "true", "env": {"A=B": "${{ item }}"}}`, given, "env", `env: "A=B" cannot be a variable's name`},
		{"a variable of Sluice's own", `{"run": "true", "env": {"SLUICE_TASK": "x"}}`, nil, "env", "env: SLUICE_TASK: names that begin with SLUICE_ are Sluice's own"},
		{"a folder that is no text", `{"run": "true", "dir": 5}`, nil, "dir", "dir: 5 is not a text"},
		{"something else to read", `{"run": "true", "stdin": "file"}`, nil, "stdin", `stdin is "file"`},
		{"a line with a NUL byte", `{"run": "echo a\u0000b"}`, nil, "run", "run has a NUL byte, and no process can be given one; remove it"},
		{"an argument with a NUL byte", `{"run": ["echo", "${{ item }}\u0000"]}`, given, "run", "run: argument 1 has a NUL byte"},
		{"a variable with a NUL byte", `{"run": "true", "env": {"A": "\u0000"}}`, nil, "env", "env A has a NUL byte"},
		{"a folder with a NUL byte", `{"run": "true", "dir": "/a\u0000"}`, nil, "dir", "dir has a NUL byte"},
		{"a line", `{"run": "true", "other": [1]}`, nil, "", ""},
		{"a list", `{"run": ["true"], "env": {"A": {"from_env": "NOSUCH_VARIABLE"}}, "stdin": "params"}`, nil, "", ""},
		{"an expression", `{"run": ["true", "${{ item }}"], "env": {"A": "${{ item }}"}, "stdin": "${{ item }}"}`, given, "", ""},
		{"an environment that an expression gives", `{"run": "true", "env": "${{ params.env }}"}`, given, "", ""},
		{"a command that the plan gives", `{"dir": "/"}`, ofPlan, "", ""},
		{"no mapping, which is refused for that", `5`, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, err := newPlugin(t, Options{}).Refuse(json.RawMessage(c.params), c.given)
			if key != c.key || (err != nil) != (c.key != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %q, %v; want %q, %s", c.params, key, err, c.key, c.want)
			}
		})
	}
}

func TestShellsOfOtherSystems(t *testing.T) {
	for _, c := range []struct {
		shell, goos string
		want        string // "" is an error
	}{
		{"", "linux", "/bin/sh|-ec|line"},
		{"", "windows", ""},
		{"bash", "windows", "bash|--noprofile|--norc|-eo|pipefail|-c|line"},
		{"bash -u", "linux", "bash|-u|-ec|line"},
		{"cmd", "windows", "cmd|/d|/c|line"},
		{"CMD.EXE", "windows", "CMD.EXE|/d|/c|line"},
		{"pwsh", "linux", "pwsh|-NoProfile|-NonInteractive|-Command|line"},
		{"powershell.exe", "windows", "powershell.exe|-NoProfile|-NonInteractive|-Command|line"},
		{"/usr/bin/zsh -f", "linux", "/usr/bin/zsh|-f|-ec|line"},
	} {
		s := settings{line: "line", shell: c.shell}
		args, err := s.command(c.goos)
		if got := strings.Join(args, "|"); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("shell %q on %s: %s, %v; want %s", c.shell, c.goos, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "shell: pwsh") {
			t.Errorf("shell %q on %s: %v has no remedy", c.shell, c.goos, err)
		}
	}
	s := settings{argv: []string{"prog", "a"}}
	if args, err := s.command("windows"); err != nil || strings.Join(args, "|") != "prog|a" {
		t.Errorf("a list on windows: %v, %v", args, err)
	}
}

func TestStopping(t *testing.T) {
	why := errors.New("for this reason")
	for _, c := range []struct {
		name   string
		cause  error
		line   string
		grace  time.Duration
		reason plan.Reason
		exit   plan.Exit
	}{
		{"it ends by SIGTERM", why, "echo ready; exec sleep 100", time.Minute, "", plan.Exit{Code: -1, Signal: "SIGTERM"}},
		{"it has run too long", plugins.ErrTimeout, "echo ready; exec sleep 100", time.Minute, plan.ReasonTimeout, plan.Exit{Code: -1, Signal: "SIGTERM"}},
		{"it ignores SIGTERM", why, "trap '' TERM; echo ready; while :; do sleep 0.01; done", 50 * time.Millisecond, "", plan.Exit{Code: -1, Signal: "SIGKILL"}},
		{"it says that all is well, but was stopped", why, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done", time.Minute, "", plan.Exit{Code: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			p, k := newPlugin(t, Options{Grace: c.grace}), task(t, object{"run": c.line})
			var r plan.Result
			var wg sync.WaitGroup
			wg.Go(func() { r = p.Run(ctx, k) })
			polltest.Until(t, time.Minute, "something is in the log while it runs", func() bool { return len(k.Log.Drain()) > 0 })
			cancel(c.cause)
			wg.Wait()
			if r.Status != plan.Terminated || r.Reason != c.reason || r.Exit == nil || *r.Exit != c.exit || !strings.Contains(r.Detail, c.cause.Error()) {
				t.Errorf("got %+v, exit %+v; want terminated, %q, %+v, for %v", r, r.Exit, c.reason, c.exit, c.cause)
			}
		})
	}
	t.Run("it was not started yet", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		r := newPlugin(t, Options{}).Run(ctx, task(t, object{"run": "true"}))
		if r.Status != plan.Terminated || r.Exit != nil || r.Detail != why.Error() {
			t.Errorf("got %+v; want terminated without an exit", r)
		}
	})
}

func TestTheLogHasBothStreamsAndWhatWasLeftOut(t *testing.T) {
	p := newPlugin(t, Options{Limit: 2 << 10})
	k := task(t, object{"run": "echo first; sleep 1; seq 1000; sleep 1; echo last >&2"})
	if r := p.Run(t.Context(), k); r.Status != plan.Succeeded {
		t.Fatalf("%+v", r)
	}
	log := k.Log.Drain()
	first, last := log[0], log[len(log)-1]
	if first.Stream != plan.Stdout || first.Text != "first\n" || last.Stream != plan.Stderr || last.Text != "last\n" {
		t.Errorf("from %+v to %+v: want from first on stdout to last on stderr", first, last)
	}
	var notes []string
	for _, e := range log {
		if e.Stream == plan.System {
			notes = append(notes, e.Text)
		}
	}
	if !strings.Contains(strings.Join(notes, ""), "bytes dropped here") {
		t.Errorf("notes %q say nothing of what was left out", notes)
	}
}

func TestASecretInTheOutputFailsTheTask(t *testing.T) {
	const secret = `hunter2 "quoted" ä/ö`
	t.Setenv("TOKEN", secret)
	t.Setenv("KEY", "first line of it\nsecond line of it")
	env := object{"env": object{"A": object{"from_env": "TOKEN"}, "K": object{"from_env": "KEY"}}}
	for _, c := range []struct {
		name, line string
		reason     plan.Reason
	}{
		{"as JSON", `printf %s '["hunter2 \"quoted\" ä/ö"]' > "$SLUICE_OUTPUT"`, plan.ReasonOutput},
		{"as JSON that has more escapes than it needs", `printf %s '["hunter2 \"quoted\" \u00e4\/\u00F6"]' > "$SLUICE_OUTPUT"`, plan.ReasonOutput},
		{"as a key", `printf %s '{"x": {"hunter2 \"quoted\" \u00e4/ö": 1}}' > "$SLUICE_OUTPUT"`, plan.ReasonOutput},
		{"one line of it", `printf %s '["second line of it"]' > "$SLUICE_OUTPUT"`, plan.ReasonOutput},
		{"as it is, which is not JSON either", `printf %s "$A" > "$SLUICE_OUTPUT"`, plan.ReasonOutput},
		{"not at all", `printf '["hunter2"]' > "$SLUICE_OUTPUT"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			env["run"] = c.line
			r, _ := run(t, env)
			if r.Reason != c.reason || (r.Status == plan.Succeeded) != (c.reason == "") {
				t.Errorf("it ended with %d, %q, %s", r.Status, r.Reason, r.Detail)
			}
			if c.reason != "" && (r.Output != nil || strings.Contains(r.Detail, "hunter2")) {
				t.Errorf("the secret is in output %s or detail %q", r.Output, r.Detail)
			}
		})
	}
}

func TestTheWholeOfWhatACommandPrintsIsCaptured(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := task(t, object{
		"run": `seq 400000; echo "$PASSWORD \377" >&2`, "env": object{"PASSWORD": object{"from_file": secret}},
	})
	c := &plugins.Capture{Dir: t.TempDir()}
	defer c.Close()
	k.Log.CaptureTo(c)
	if r := newPlugin(t, Options{}).Run(t.Context(), k); r.Status != plan.Succeeded {
		t.Fatalf("%+v", r)
	}
	out, errs := c.Streams()
	stdout, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := io.ReadAll(errs)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := range 400_000 {
		fmt.Fprintln(&want, i+1)
	}
	if string(stdout) != want.String() || !strings.HasPrefix(string(stderr), "*** ") {
		t.Errorf("%d bytes, want the %d that it prints; and %q", len(stdout), want.Len(), stderr)
	}
	kept := 0
	for _, e := range k.Log.Drain() {
		kept += len(e.Text)
	}
	if kept > 1<<20+1000 {
		t.Errorf("the log itself keeps %d bytes", kept)
	}
}
