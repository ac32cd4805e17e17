package planfile

import (
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/secret"
)

func TestHideTakesSecretsOutOfAFile(t *testing.T) {
	secrets := secret.Names{}.And([]string{"password", "*_key"})
	for name, c := range map[string]struct{ file, want string }{
		"a plain default": {
			"plan: p\nsecrets: [password]\nparams:\n  password: hunter2 # hunter2!\n  user: ann\ntasks: {a: {run: echo hunter2}}\n",
			"plan: p\nsecrets: [password]\nparams:\n  password: \"***\" # ***!\n  user: ann\ntasks: {a: {run: echo ***}}\n",
		},
		"quotes": {
			"params: {password: \"hun\\\"ter\", api_key: 'it''s', user: ann}\n",
			"params: {password: \"***\", api_key: \"***\", user: ann}\n",
		},
		"several lines": {
			"params:\n  password: |\n    first line of it\n    second line of it\n  user: ann\n",
			"params:\n  password: \"***\"\n  user: ann\n",
		},
		"an object": {
			"params:\n  password:\n    deep: hunter2\n    list: [one, two]\n  user: ann\n",
			"params:\n  password:\n    \"***\"\n  user: ann\n",
		},
		"an object in a row": {
			"params: {password: {deep: hunter2}, user: ann}\n",
			"params: {password: \"***\", user: ann}\n",
		},
		"an alias": {
			"params:\n  other: &x hunter2\n  password: *x\n",
			"params:\n  other: \"***\"\n  password: *x\n",
		},
		"a variable and a task's params": {
			"tasks:\n  password:\n    plugin: p\n    env: {PASSWORD: hunter2}\n    params: {deep: [{s3_key: 12345}]}\n",
			"tasks:\n  password:\n    plugin: p\n    env: {PASSWORD: \"***\"}\n    params: {deep: [{s3_key: \"***\"}]}\n",
		},
		"no default, and where a value comes from": {
			"params: {password: null}\ntasks: {a: {run: x, env: {PASSWORD: '${{ params.password }}'}}}\n",
			"params: {password: null}\ntasks: {a: {run: x, env: {PASSWORD: '${{ params.password }}'}}}\n",
		},
		"choices of a name that became secret": {
			"params: {password: hunter2}\nchoices:\n  password: [hunter2, sesame4]\ntasks: {a: {run: echo sesame4}}\n",
			"params: {password: \"***\"}\nchoices:\n  password: \"***\"\ntasks: {a: {run: echo ***}}\n",
		},
		"JSON":    {`{"params": {"password": "hunter2", "user": "ann"}}`, `{"params": {"password": "***", "user": "ann"}}`},
		"the end": {"params:\n  password: >-\n    hunter2\n\n", "params:\n  password: \"***\"\n\n"},
		"no YAML": {"params: {password: hunter2", "***"},
	} {
		if got := Hide(c.file, secrets, nil); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
		if got := Hide(c.file, secret.Names{}, nil); got != c.file {
			t.Errorf("%s, and nothing is secret: got\n%s", name, got)
		}
	}
	if got := Hide("params: {password: hunter2}\n# sesame\n", secrets, []string{"sesame"}); strings.Contains(got, "sesame") {
		t.Errorf("a value that was found elsewhere is shown: %s", got)
	}
}

func TestMistakesAreShownWithoutSecrets(t *testing.T) {
	const block = "plan: p\nparams:\n  password: |\n    first of hunter2\n    second\n  n: 1\nsecrets: [password]\nchoices: {n: [1]}\ntasks: {a: {run: make}}\n"
	for _, c := range []struct {
		name, file string
		given      map[string]string
		want       string
	}{
		{
			"on the line of a default", "plan: p\nparams: {password: hunter2, n: 1}\nsecrets: [password]\nchoices: {n: [1]}\ntasks: {a: {run: make}}\n",
			map[string]string{"n": "many"}, `plan:2:29: --param n=many: it is no choice; give one of 1`,
		},
		{"on another line", block, map[string]string{"n": "many"}, "plan:6:3: --param n=many: it is no choice; give one of 1\n      n: 1\n      ^"},
		{"what was given", block, map[string]string{"n": "sesame4", "password": "sesame4"}, "plan:6:3: --param n=***: it is no choice; give one of 1\n      n: 1\n      ^"},
		{"in the secret itself", strings.Replace(block, "|\n    first of hunter2\n    second", "\n    - a\n    - ${{ plan.name }} hunter2", 1), nil, `plan:5:7: a param cannot have an expression; it is what expressions are made from`},
		{"as a literal", strings.Replace(block, "make", "make second, colour: 'first of hunter2'", 1), nil, ""},
	} {
		_, err := Parse("plan", []byte(c.file), Options{Params: c.given})
		if err == nil || c.want != "" && err.Error() != c.want || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "sesame4") {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}
