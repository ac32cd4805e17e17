package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The test runs the steps of action.yml that are scripts, as GitHub does, with files in place of its services. The first step,
// setup-go, is of another repository: this machine has Go. The scripts use nothing of bash that sh does not have.
func TestTheActionRunsAPlan(t *testing.T) {
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(top, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				Uses, If, Shell, Run string
				Env                  map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"plan.yaml": "plan: ci\nparams: {site: test, word: }\ntasks:\n  good: {run: 'echo \"$site $word\"'}\n  bad: {needs: good, run: 'echo no such site >&2; exit 3'}\n",
		"path":      "", "env": "", "summary.md": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	values := map[string]string{"github.action_path": top, "runner.temp": dir}
	for name, input := range action.Inputs {
		values["inputs."+name] = input.Default
	}
	values["inputs.plan"], values["inputs.params"], values["inputs.junit"] = "plan.yaml", "site=prod\nword=two words\n", "junit.xml"
	expression := regexp.MustCompile(`\$\{\{ ([\w.-]+) \}\}`)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	said, failed := "", 0
	for _, step := range action.Runs.Steps {
		if step.Run == "" {
			continue
		}
		if strings.Contains(step.Run, "${{") {
			t.Errorf("a script holds an expression, whose value could be read as code: %s", step.Run)
		}
		cmd := exec.Command("sh", "-ec", step.Run)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GITHUB_ACTIONS=true", "GITHUB_PATH="+dir+"/path", "GITHUB_ENV="+dir+"/env", "GITHUB_STEP_SUMMARY="+dir+"/summary.md", "GITHUB_WORKSPACE="+dir)
		for line := range strings.Lines(read("env")) {
			cmd.Env = append(cmd.Env, strings.TrimSpace(line))
		}
		cmd.Env = append(cmd.Env, "PATH="+strings.ReplaceAll(strings.TrimSpace(read("path")), "\n", ":")+":"+os.Getenv("PATH"))
		for name, value := range step.Env {
			value = expression.ReplaceAllStringFunc(value, func(s string) string {
				known, ok := values[expression.FindStringSubmatch(s)[1]]
				if !ok {
					t.Errorf("%s is %s, which the test does not know", name, s)
				}
				return known
			})
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		said += string(out)
		if err != nil {
			failed++
		}
	}
	if failed != 1 || !strings.Contains(said, "::error title=ci#1%3A bad,file=plan.yaml::") || !strings.Contains(said, "sluice version") {
		t.Errorf("%d steps failed, want the last one alone, with an annotation:\n%s", failed, said)
	}
	for name, want := range map[string]string{"summary.md": "ci#1 failed", "junit.xml": "no such site"} {
		if got := read(name); !strings.Contains(strings.ReplaceAll(got, `\`, ""), want) {
			t.Errorf("%s does not say %q:\n%s", name, want, got)
		}
	}
}
