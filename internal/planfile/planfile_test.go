package planfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAPlanFileBecomesASpec(t *testing.T) {
	s, err := Parse("plan.yaml", []byte(`
# a comment
plan: migrate-example-com
params: {domain: example.com, hosts: [a, b], retries: 5}
env: {LANG: C, DEPTH: 2}
dir: work
queue: batch
on_failure: stop
keep: 30d
defaults:
  timeout: 30m
  retry: {attempts: 2}
  env: {DEPTH: 3, MODE: 0644}
tasks:
  list:
    description: what is there
    run: ./list "$domain" > "$SLUICE_OUTPUT"
    timeout: 1h30m
  copy:
    needs: [list]
    foreach: ${{ needs.list.mailboxes }}
    run: [./copy, "${{ item }}", 0.10, true]
    env: {PASSWORD: {from_env: IMAP_PASSWORD}, TOKEN: {from_file: token}, MODE: "0600"}
    dir: /srv/copy
    retry: {attempts: 5, delay: 1s, factor: 2, max: 1m}
    on_lost: fail
    max_rescues: 7
  sleep:
    needs: list
    queue: naps
    when: all_done
    plugin: demo
    params: {sleep: 1s, list: [1, 2.50, null, {deep: yes}]}
    continue-on-error: true
    estimate: 2d12h
  verify:
    needs: [copy]
    shell: bash
    stdin: params
    foreach: {glob: "logs/*"}
    run: ./verify
`), Options{Dir: "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	retry := plan.Retry{Attempts: 2}
	want := &plan.Spec{
		Name: "migrate-example-com", OnFailure: plan.Stop, Keep: 30 * 24 * time.Hour,
		Params: map[string]json.RawMessage{"domain": raw(`"example.com"`), "hosts": raw(`["a","b"]`), "retries": raw(`5`)},
		Tasks: []plan.TaskSpec{
			{Name: "list", Description: "what is there", Queue: "batch", Timeout: 90 * time.Minute, Retry: retry,
				Params: raw(`{"run":"./list \"$domain\" > \"$SLUICE_OUTPUT\"","dir":"/home/me/work","env":{"DEPTH":"3","LANG":"C","MODE":"0644"}}`)},
			{Name: "copy", Queue: "batch", Needs: []string{"list"}, Foreach: &plan.Foreach{Value: "needs.list.mailboxes"},
				Timeout: 30 * time.Minute, Retry: plan.Retry{Attempts: 5, Delay: time.Second, Factor: 2, Max: time.Minute},
				OnLost: plan.OnLostFail, MaxRescues: 7,
				Params: raw(`{"run":["./copy","${{ item }}","0.10","true"],"dir":"/srv/copy",` +
					`"env":{"DEPTH":"3","LANG":"C","MODE":"0600","PASSWORD":{"from_env":"IMAP_PASSWORD"},"TOKEN":{"from_file":"/home/me/token"}}}`)},
			{Name: "sleep", Queue: "naps", Plugin: "demo", Needs: []string{"list"}, When: plan.AllDone, Timeout: 30 * time.Minute, Retry: retry,
				ContinueOnError: true, Estimate: 60 * time.Hour, Params: raw(`{"sleep":"1s","list":[1,2.50,null,{"deep":"yes"}]}`)},
			{Name: "verify", Queue: "batch", Needs: []string{"copy"}, Foreach: &plan.Foreach{Glob: "logs/*"}, Timeout: 30 * time.Minute, Retry: retry,
				Params: raw(`{"run":"./verify","shell":"bash","dir":"/home/me/work","stdin":"params","env":{"DEPTH":"3","LANG":"C","MODE":"0644"}}`)},
		},
	}
	if s.File.Dir != "/home/me" || !strings.Contains(s.File.Text, "migrate-example-com") {
		t.Errorf("the file to be kept is %+v", s.File)
	}
	s.File = plan.File{}
	if !reflect.DeepEqual(s, want) {
		for i := range want.Tasks {
			if !reflect.DeepEqual(s.Tasks[i], want.Tasks[i]) {
				t.Errorf("task %d:\ngot  %+v\n     %s\nwant %+v\n     %s", i, s.Tasks[i], s.Tasks[i].Params, want.Tasks[i], want.Tasks[i].Params)
			}
		}
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

func TestDefaultsYieldToWhatATaskSays(t *testing.T) {
	const tasks = `
tasks:
  own: {run: own, dir: own}
  demo: {plugin: demo, params: {a: 1}}
  none: {description: takes all}
`
	for _, c := range []struct{ name, defaults, own, demo, none string }{
		{"a command for all", `{run: all, dir: sub, shell: bash, stdin: params, env: {A: b}}`,
			`{"run":"own","shell":"bash","dir":"/d/own","stdin":"params","env":{"A":"b"}}`, `{"a":1}`,
			`{"run":"all","shell":"bash","dir":"/d/sub","stdin":"params","env":{"A":"b"}}`},
		{"a plugin for all", `{plugin: demo, params: {b: 2}, dir: sub, env: {A: b}}`,
			`{"run":"own","dir":"/d/own","env":{"A":"b"}}`, `{"a":1}`, `{"b":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse("plan.yaml", []byte("plan: x\ndefaults: "+c.defaults+tasks), Options{Dir: "/d"})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{c.own, c.demo, c.none} {
				if got := string(s.Tasks[i].Params.(json.RawMessage)); got != want {
					t.Errorf("params of %s: %s, want %s", s.Tasks[i].Name, got, want)
				}
			}
		})
	}
}

func TestADelayOfNothingIsNotTheDefault(t *testing.T) {
	for text, want := range map[string]plan.Retry{
		"{attempts: 3}":                        {Attempts: 3},
		"{attempts: 3, delay: 0s}":             {Attempts: 3, Delay: plan.NoDelay},
		"{attempts: 3, delay: 2s, max: 0.0ms}": {Attempts: 3, Delay: 2 * time.Second, Max: plan.NoDelay},
	} {
		s, err := Parse("plan.yaml", []byte("plan: x\ntasks: {a: {run: make, retry: "+text+"}}"), Options{Dir: "/d"})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Tasks[0].Retry; got != want {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
}

func TestAValueBecomesTheJSONThatItMeans(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"words that YAML 1.1 took for others", `[yes, no, on, off, y, n, Yes]`, `["yes","no","on","off","y","n","Yes"]`},
		{"keys that YAML 1.1 took for others", `{on: 1, yes: 2, n: 3}`, `{"on":1,"yes":2,"n":3}`},
		{"true, false and nothing", `[true, False, TRUE, ~, null, Null, ]`, `[true,false,true,null,null,null]`},
		{"an empty value", `{a: , b: ""}`, `{"a":null,"b":""}`},
		{"times are text", `[2020-01-01, 2020-01-01T10:00:00Z, 12:30, 1:30:00]`, `["2020-01-01","2020-01-01T10:00:00Z","12:30","1:30:00"]`},
		{"versions are text, but not all of them", `[1.2.3, 1.20, v1]`, `["1.2.3",1.20,"v1"]`},
		{"huge numbers are exact", `[123456789012345678901234567890, 0.1234567890123456789012345, 1e400, -9223372036854775809]`,
			`[123456789012345678901234567890,0.1234567890123456789012345,1e400,-9223372036854775809]`},
		{"numbers as JSON has them", `[+5, .5, 5., -.5, +.5e3, 1.E+2, 0, -0, 0.0]`, `[5,0.5,5,-0.5,0.5e3,1E+2,0,-0,0.0]`},
		{"other bases", `[0xFF, 0o17, 0xffffffffffffffffff]`, `[255,15,4722366482869645213695]`},
		{"what looks like a number", `[1_000, 0b11, 0x, 0xg, 1e, 1e+, ., +, -, "-a", +a, .a, 1.2.3, 0o8, e5]`,
			`["1_000","0b11","0x","0xg","1e","1e+",".","+","-","-a","+a",".a","1.2.3","0o8","e5"]`},
		{"quotes make text", `["5", '5', "true", 'null', "0644"]`, `["5","5","true","null","0644"]`},
		{"tags say so too", `[!!str 5, !!str true, !!int 5, !!float 5, !!float 0.5, !!bool true, !!null ~, !!int "5", !!seq [], !!map {}]`,
			`["5","true",5,5,0.5,true,null,5,[],{}]`},
		{"all that JSON escapes", `"a\"b\\c\nd\te\u0001é\u2028😀"`, `"a\"b\\c\nd\te\u0001é` + "\u2028" + `😀"`},
		{"block texts", "|\n       a\n         b\n       c", `"a\n  b\nc\n"`},
		{"folded texts", ">-\n       a\n       b\n\n       c", `"a b\nc"`},
		{"an anchor and its aliases", `{a: &x [1, 2], b: *x, c: [*x, *x]}`, `{"a":[1,2],"b":[1,2],"c":[[1,2],[1,2]]}`},
		{"a merge, which the own keys win over", `{a: &x {k: 1, l: 2}, b: {<<: *x, l: 3, m: 4}}`, `{"a":{"k":1,"l":2},"b":{"l":3,"m":4,"k":1}}`},
		{"a merge of several, the earlier win", `{a: &x {k: 1}, b: &y {k: 2, l: 3}, c: {<<: [*x, *y]}}`, `{"a":{"k":1},"b":{"k":2,"l":3},"c":{"k":1,"l":3}}`},
		{"merges in merges", `{a: &x {k: 1}, b: &y {<<: *x, l: 2}, c: {<<: *y}}`, `{"a":{"k":1},"b":{"l":2,"k":1},"c":{"l":2,"k":1}}`},
		{"a key that is only the text of a merge", `{"<<": {a: 1}}`, `{"<<":{"a":1}}`},
		{"a key by alias", `{a: &x key, *x : 1}`, `{"a":"key","key":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := "plan: x\ntasks:\n  a:\n    plugin: demo\n    params:\n     v: " + c.yaml + "\n"
			s, err := Parse("plan.yaml", []byte(file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := string(s.Tasks[0].Params.(json.RawMessage))
			if want := `{"v":` + c.want + `}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if !json.Valid([]byte(got)) {
				t.Errorf("%s is not JSON", got)
			}
		})
	}
}

func TestJSONIsYAML(t *testing.T) {
	const file = "{\n\t\"plan\": \"x\",\n\t\"params\": {\"face\": \"\\ud83d\\ude00\", \"half\": \"\\ud83d!\", \"text\": \"\\\\ud83d\\ude00 \\/\", \"n\": 1E400},\n" +
		"\t\"tasks\": {\"a\": {\"run\": [\"echo\", \"\\uD83D\\uDE00\"], \"needs\": []}}\n}\n"
	s, err := Parse("plan.json", []byte(file), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"face": `"😀"`, "half": "\"\uFFFD!\"", "text": `"\\ud83d` + "\uFFFD" + ` /"`, "n": "1E400"} {
		if got := string(s.Params[name]); got != want {
			t.Errorf("param %s is %s, want %s", name, got, want)
		}
	}
	if got, want := string(s.Tasks[0].Params.(json.RawMessage)), `{"run":["echo","😀"]}`; got != want {
		t.Errorf("params are %s, want %s", got, want)
	}
}

func TestPathsStartInTheFolderOfTheFile(t *testing.T) {
	file := `
plan: x
params: {base: /mnt, sub: logs, n: 5, odd: "${{ '${{' }} item }}"}
tasks:
  a: {run: ls}
  b: {run: ls, dir: ../up}
  c: {run: ls, dir: "${{ params.base }}/x"}
  d: {run: ls, dir: "${{ params.sub }}"}
  e: {run: ls, needs: [a], dir: "${{ needs.a.dir }}"}
  f: {run: ls, dir: "x/${{ params.n }}"}
  g: {plugin: demo, foreach: {lines: list.txt}}
  h: {plugin: demo, foreach: {glob: "${{ params.base }}/*"}}
  i: {run: ls, foreach: {glob: "*.log"}}
  j: {run: ls, dir: "../y${{ params.n }}/../z"}
  k: {run: ls, dir: "${{ params.odd }}/x"}
  l: {run: ls, dir: "${{ params.odd }}/${{ needs.a }}", needs: a}
  m: {run: ls, dir: "/${{ params.odd }}"}
`
	s, err := Parse("plan.yaml", []byte(file), Options{Dir: "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "/home/me", "b": "/home/up", "c": "/mnt/x", "d": "/home/me/logs", "e": "${{ needs.a.dir }}",
		"f": "/home/me/x/${{ params.n }}", "g": "/home/me/list.txt", "h": "/mnt/*", "i": "*.log",
		"j": "/home/y${{ params.n }}/../z", "k": "/home/me/${{ '${{ item }}/x' }}", "l": "/home/me/${{ '${{ item }}/' }}${{ needs.a }}",
		"m": "/${{ params.odd }}"}
	for _, task := range s.Tasks {
		var params struct{ Dir string }
		if raw, ok := task.Params.(json.RawMessage); ok {
			if err := json.Unmarshal(raw, &params); err != nil {
				t.Fatal(err)
			}
		}
		got := params.Dir
		if task.Foreach != nil {
			got = task.Foreach.Lines + task.Foreach.Glob
		}
		if filepath.ToSlash(got) != want[task.Name] {
			t.Errorf("task %s: %q, want %q", task.Name, got, want[task.Name])
		}
	}
}

func TestAParamWithChoicesIsOneOfThem(t *testing.T) {
	const file = "plan: x\nparams: {site: test, level: , other: 1}\nchoices:\n  site: [test, prod]\n  level: [1, 2, max, true]\ntasks: {a: {run: make}}\n"
	const noLevel = `plan.yaml:2:22: param "level" has no default; give it a value, one of 1, 2, "max", true: --param level=VALUE`
	for _, c := range []struct {
		name  string
		given map[string]string
		draft bool
		want  string // params, or the first error
	}{
		{"the default", map[string]string{"level": "2"}, false, `{"level":2,"other":1,"site":"test"}`},
		{"each has the type of its choice", map[string]string{"site": "prod", "level": "max"}, false, `{"level":"max","other":1,"site":"prod"}`},
		{"a boolean", map[string]string{"level": "true", "other": "5"}, false, `{"level":true,"other":5,"site":"test"}`},
		{"no default", map[string]string{"site": "prod"}, false, noLevel},
		{"no default of a draft", nil, true, `{"level":"","other":1,"site":"test"}`},
		{"no choice, and the nearest", map[string]string{"site": "prd", "level": "1"}, false, `plan.yaml:2:10: --param site=prd: it is no choice; give one of "test", "prod"; did you mean "prod"?`},
		{"no choice of a draft", map[string]string{"level": "7"}, true, `plan.yaml:2:22: --param level=7: it is no choice; give one of 1, 2, "max", true; did you mean "1"?`},
		{"nothing", map[string]string{"site": "", "level": "1"}, false, `plan.yaml:2:10: --param site=: it is no choice; give one of "test", "prod"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse("plan.yaml", []byte(file), Options{Params: c.given, Draft: c.draft})
			var got string
			var errs Errors
			if errors.As(err, &errs) {
				got = fmt.Sprintf("%s:%d:%d: %s", errs[0].File, errs[0].Line, errs[0].Column, errs[0].Message)
			} else if params, wrong := json.Marshal(s.Params); wrong == nil && err == nil {
				got = string(params)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestChoicesAreNotForSecretsOfTheStore(t *testing.T) {
	_, err := Parse("plan.yaml", []byte("plan: x\nparams: {site: test}\nchoices: {site: [test]}\ntasks: {a: {run: make}}\n"), Options{Secrets: secret.Names{}.And([]string{"site"})})
	if err == nil || !strings.Contains(err.Error(), `plan.yaml:3:11: param "site" is secret, and choices are shown to people; drop its choices`) {
		t.Error(err)
	}
}

func TestParamsOfTheCommandLine(t *testing.T) {
	const file = `plan: x
params:
  text: a
  number: 1
  yes: true
  list: []
  map: {a: 1}
  needed:
tasks: {a: {run: make}, each: {foreach: "${{ params.list }}", run: make}}
`
	for _, c := range []struct {
		name  string
		given map[string]string
		want  string // params, or the errors
	}{
		{"text is as it is, also if it looks like something else", map[string]string{"text": "5", "needed": `"q" ü`},
			`{"list":[],"map":{"a":1},"needed":"\"q\" ü","number":1,"text":"5","yes":true}`},
		{"what has another type is JSON of that type", map[string]string{"needed": "", "number": " 123456789012345678901234567890 ", "yes": "false", "list": `[1,"b"]`, "map": `{}`},
			`{"list":[1,"b"],"map":{},"needed":"","number":123456789012345678901234567890,"text":"a","yes":false}`},
		{"a param without default is needed", nil, `plan.yaml:8:3: param "needed" has no default; give it a value: --param needed=VALUE`},
		{"other types are refused", map[string]string{"needed": "a", "number": "five", "yes": "yes", "list": `{}`, "map": "null"},
			`plan.yaml:4:3: --param number=five: its default in the file is a number, so its value must be JSON of that kind, as in 42
plan.yaml:5:3: --param yes=yes: its default in the file is true or false, so its value must be JSON of that kind, as in true
plan.yaml:6:3: --param list={}: its default in the file is a list, so its value must be JSON of that kind, as in ["a","b"]
plan.yaml:7:3: --param map=null: its default in the file is a mapping, so its value must be JSON of that kind, as in {"a": 1}`},
		{"an unknown one is refused, with the nearest", map[string]string{"needed": "a", "txet": "b", "other": "c"},
			`plan.yaml:0:0: --param other: the plan has no such param
plan.yaml:0:0: --param txet: the plan has no such param; did you mean "text"?`},
		{"what looks like an expression is text", map[string]string{"needed": "${{ item }}", "list": `["${{ 'a' }}"]`},
			`{"list":["${{ 'a' }}"],"map":{"a":1},"needed":"${{ item }}","number":1,"text":"a","yes":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse("plan.yaml", []byte(file), Options{Params: c.given})
			var got string
			var errs Errors
			switch {
			case errors.As(err, &errs):
				var lines []string
				for _, e := range errs {
					lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message))
				}
				got = strings.Join(lines, "\n")
			case err != nil:
				t.Fatal(err)
			default:
				var b bytes.Buffer
				enc := json.NewEncoder(&b)
				enc.SetEscapeHTML(false)
				if err := enc.Encode(s.Params); err != nil {
					t.Fatal(err)
				}
				got = strings.TrimSpace(b.String())
			}
			if got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
	_, err := Parse("plan.yaml", []byte("plan: x\ntasks: {a: {run: make}}\n"), Options{Params: map[string]string{"a": "b"}})
	if err == nil || err.Error() != "plan.yaml: --param a: the plan has no such param" {
		t.Errorf("a param for a plan without params: got error %v", err)
	}
}

func TestLoadReadsAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(path, []byte("\uFEFFplan: x\r\nparams: {a: b}\r\ntasks:\r\n  t:\r\n    run: |\r\n      make\r\n      test\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(path, map[string]string{"a": "c"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Source != path || string(s.Params["a"]) != `"c"` || string(s.Tasks[0].Params.(json.RawMessage)) != fmt.Sprintf(`{"run":"make\ntest\n","dir":%q}`, dir) {
		t.Errorf("got source %s, params %s, task %s", s.Source, s.Params, s.Tasks[0].Params)
	}
	if _, err := Load(filepath.Join(dir, "other.yaml"), nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "is not there; check the path") {
		t.Errorf("a file that is not there: got error %v", err)
	}
	if _, err := Load(dir, nil); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: got error %v", err)
	}
}

// The plugin http reads secrets from files as commands do.
func TestTheFilesOfSecretsStartFromTheFolder(t *testing.T) {
	for params, want := range map[string]string{
		`{url: "http://h/<>", headers: {A: {from_file: a}, B: {from_env: b}, from_file: c}}`: `{"headers":{"A":{"from_file":"/home/me/a"},"B":{"from_env":"b"},"from_file":"c"},"url":"http://h/<>"}`,
		`{query: {q: {from_file: /a}, r: 1}, sign: {from_file: ../k}}`:                       `{"query":{"q":{"from_file":"/a"},"r":1},"sign":{"from_file":"/home/k"}}`,
		`{sign: [{from_file: "k/${{ params.p }}"}, whsec_x], body: {from_file: b}}`:          `{"body":{"from_file":"b"},"sign":[{"from_file":"/home/me/k/${{ params.p }}"},"whsec_x"]}`,
		`{url: x, headers: [{from_file: a}], sign: {from_file: [a]}}`:                        `{"headers":[{"from_file":"a"}],"sign":{"from_file":["a"]},"url":"x"}`,
		`{url: x, headers: {A: b}}`: `{"url":"x","headers":{"A":"b"}}`,
	} {
		s, err := Parse("plan.yaml", []byte(`{plan: x, params: {p: 1}, defaults: {plugin: http}, tasks: {a: {params: `+params+`}}}`), Options{Dir: "/home/me"})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Tasks[0].Params.(json.RawMessage); string(got) != want {
			t.Errorf("%s is read as %s, want %s", params, got, want)
		}
	}
}

func TestAFolderIsNoExpression(t *testing.T) {
	const file = `{plan: x, tasks: {a: {run: [ls, "${{ item }}"], foreach: [1], env: {A: {from_file: secret}}}, b: {run: "echo ${{ '${{' }} x }}", dir: b}}}`
	s, err := Parse("plan.yaml", []byte(file), Options{Dir: "/home/${{ item }}"})
	if err != nil {
		t.Fatal(err)
	}
	_, tasks, err := compiler.Compile(s, time.Now(), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"run":["ls",1],"dir":"/home/${{ item }}","env":{"A":{"from_file":"/home/${{ item }}/secret"}},"item":1}`,
		`{"run":"echo ${{ x }}","dir":"/home/${{ item }}/b"}`,
	} {
		params := tasks[i].Params
		if tasks[i].Foreach != nil {
			params = rules.WithItem(params, []byte("1"))
		}
		claimed := protocol.ClaimedTask{Plugin: plan.DefaultPlugin, Definition: tasks[i].Definition}
		if got, err := compiler.Resolve(&claimed, params, nil); err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}

// A problem of a valid plan has its place where the variable is given: with the task, the defaults
// or the plan. A problem that many tasks share is reported once. The same holds for a file that is
// read in parts, of which the check is asked first.
func TestAFurtherCheckTellsPlaces(t *testing.T) {
	check := func(s *plan.Spec) (found plan.Problems) {
		for i := range s.Tasks {
			var params struct{ Env map[string]json.RawMessage }
			if err := json.Unmarshal(s.Tasks[i].Params.(json.RawMessage), &params); err != nil {
				t.Fatal(err)
			}
			for name := range params.Env {
				found = append(found, plan.Problem{Task: i, Key: "env", Word: name, Message: s.Tasks[i].Name + " wants " + name})
			}
		}
		return found
	}
	file := "plan: x\nenv: {A: {from_env: A}}\ndefaults:\n  env:\n    B: b\ntasks:\n  one: {run: make}\n  two: {run: make}\n" +
		"  three:\n    run: make\n    env: {A: '', B: {from_env: B}}\n"
	const want = "f:2:10: one wants A; another task needs it too\nf:5:8: one wants B; another task needs it too\nf:11:14: three wants A\nf:11:21: three wants B"
	for _, data := range []string{file, file + strings.Repeat("# and much more\n", streamFrom/16)} {
		s, err := Parse("f", []byte(data), Options{Check: check})
		var errs Errors
		if !errors.As(err, &errs) {
			t.Fatalf("of %d bytes: got %+v, error %v", len(data), s, err)
		}
		var got []string
		for _, e := range errs {
			got = append(got, fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message))
		}
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("of %d bytes: got\n%s\nwant\n%s", len(data), text, want)
		}
	}
}

func TestAParamThatIsNoTextIsRefused(t *testing.T) {
	for _, value := range []string{"hunter2\xff", "hunter2\x00b", "5\x00"} {
		_, err := Parse("plan.yaml", []byte("plan: x\nparams: {day: monday}\ntasks: {a: {run: make}}\n"), Options{Params: map[string]string{"day": value}})
		if err == nil || !strings.Contains(err.Error(), "--param day: the value is not UTF-8, or has a NUL") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestParamsAreDeclaredInTheOrderOfTheFile(t *testing.T) {
	const file = "plan: x\nparams:\n  z: 1\n  name:\n  a: {b: [true]}\n  text: it\nsecrets: [Name]\nchoices: {text: [it, they]}\nabout: {z: How many, text: Who}\ntasks:\n  one: {run: make}\n"
	const want = `[{z 1 false [] How many} {name  true [] } {a {"b":[true]} false [] } {text "it" false [it they] Who}]`
	written := func(all []Param) string {
		var words []string
		for _, p := range all {
			words = append(words, fmt.Sprintf("{%s %s %t %s %s}", p.Name, p.Default, p.Secret, p.Choices.Words(), p.About))
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	for _, given := range []map[string]string{nil, {"name": "n", "z": "7"}} {
		var got []Param
		o := Options{Params: given, Declared: &got, Draft: true}
		if _, err := Parse("f", []byte(file), o); err != nil || written(got) != want {
			t.Errorf("with %v: %s (%v), want %s", given, written(got), err, want)
		}
		if s := stream("f", []byte(file), o, 10); s == nil || written(got) != want {
			t.Errorf("with %v, in parts: %s, want %s", given, written(got), want)
		}
	}
}
