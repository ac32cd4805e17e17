package compiler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAnArgumentThatIsReadAsCode(t *testing.T) {
	for run, want := range map[string]string{ // X is an expression
		// shells
		`bash -c X`: "bash", `bash -c 'echo X'`: "bash", `sh -ec X`: "sh", `/bin/sh -e -c X`: "sh", `bash -eo pipefail -c X`: "bash", `bash -c -e X`: "bash",
		`bash --noprofile --norc -c X`: "bash", `bash -o pipefail -c X`: "bash", `bash -c -- X`: "bash", `bash --rcfile f -c X`: "bash", `bash --init-file f -ec X`: "bash", `fish --profile f -c X`: "fish", `bash --rcfile X file`: "", `bash --rcfile f file -c X`: "", `zsh -fc X`: "zsh", `fish --command=X`: "fish", `fish -c X`: "fish",
		`C:\bin\bash.exe -c X`: "bash", `busybox sh -c X`: "sh", `su - app -c X`: "su", `su -c X app`: "su", `su app --command=X`: "su", `runuser -u app -- sh -c X`: "runuser",
		`flock /tmp/lock -c X`: "flock", `script -qc X /dev/null`: "script",
		`bash -c 'echo "$1"' bash X`: "", `sh ./file X`: "", `bash file -c X`: "", `bash -c ./file bash -c X`: "bash", `bash X`: "", `sh -s X`: "",
		// behind others
		`sudo -u app bash -c X`: "bash", `env A=b sh -c X`: "sh", `timeout -k 5 60 sh -c X`: "sh", `nice -n 10 python3 -c X`: "python", `xargs -0 sh -c X`: "sh",
		`find . -name x -exec sh -c X ;`: "sh", `docker exec -i app bash -lc X`: "bash", `kubectl exec pod -- sh -c X`: "sh", `stdbuf -oL perl -ne X`: "perl",
		// interpreters
		`python3 -c X`: "python", `python3.13 -Bc X`: "python", `python -W ignore -c X`: "python", `python -cX`: "python", `python3 -c 'import sys' X`: "",
		`python3 file.py -c X`: "", `python3 -m mod X`: "", `perl -e X`: "perl", `perl -i.bak -pe X f`: "perl", `perl -E X`: "perl", `perl -MX file`: "perl", `perl -ne 'print' X`: "",
		`perl -e 1 -e X`: "perl", `perl file -e X`: "", `node -e X`: "node", `node --eval X`: "node", `node --eval=X`: "node", `node -p X`: "node", `node -pe X`: "node",
		`node file.js -e X`: "", `ruby -e X`: "ruby", `ruby3.2 -rjson -e X`: "ruby", `ruby -e 'p ARGV' X`: "", `php -r X`: "php", `php -d a=b -r X`: "php", `php --run X`: "php", `php f.php X`: "",
		`lua5.4 -e X`: "lua", `Rscript -e X`: "rscript", `deno eval X`: "deno", `julia -e X`: "julia",
		`awk X f`: "awk", `awk -F : X f`: "awk", `gawk -v a=1 X`: "gawk", `awk -v a=X '{print a}' f`: "", `awk '{print}' X`: "", `awk -f prog.awk X`: "", `gawk -e X f`: "gawk",
		// sed is given values, and reads no environment in which they could be passed
		`sed X f`: "", `sed -e X f`: "",
		// others
		`env -S X`: "env", `env --split-string=X`: "env", `env -i -S X`: "env", `env -vS X`: "env", `env A=X ./do`: "", `env ./do X`: "", `env -u A ./do X`: "",
		`ssh host X`: "ssh", `ssh -p 22 host ls X`: "ssh", `ssh -o BatchMode=yes -- host ls X`: "ssh", `ssh X uptime`: "", `ssh -- X uptime`: "", `ssh -p 22 -- X uptime`: "", `ssh -- host X`: "ssh", `ssh -p X host uptime`: "", `sudo ssh host X`: "ssh",
		`sshpass -e ssh host X`: "ssh", `ssh -tt u@X 'ls /'`: "", `systemctl restart ssh X`: "", `watch -n 1 X`: "watch", `parallel X`: "parallel",
		`pwsh -NoProfile -Command X`: "pwsh", `powershell -c echo X`: "powershell", `pwsh -File f.ps1 X`: "", `cmd /d /c X`: "cmd", `cmd /c echo X`: "cmd",
		// neither
		`./copy X`: "", `X -c X`: "", `rsync -a X host:X`: "", `grep -e X f`: "", `grep bash X`: "", `curl -X POST X`: "", `tar -c X`: "", `echo X`: "", `git commit -m X`: "",
	} {
		t.Run(run, func(t *testing.T) {
			argv := words(run)
			i, program := expr.Script(argv, expr.Has)
			if program != want || (i >= 0) != (want != "") || i >= 0 && !expr.Has(argv[i]) {
				t.Errorf("argument %d of %q is code for %q, want %q", i, argv, program, want)
			}
			list, err := json.Marshal(argv)
			if err != nil {
				t.Fatal(err)
			}
			spec := &plan.Spec{Name: "p", Tasks: []plan.TaskSpec{{Name: "t", Foreach: &plan.Foreach{List: json.RawMessage(`["a"]`)}, Params: json.RawMessage(fmt.Sprintf(`{"run":%s}`, list))}}}
			refused := ""
			if err := Validate(spec); err != nil {
				refused = err.Error()
			}
			if strings.Contains(refused, "read as code") != (want != "") || strings.Contains(refused, "a list") {
				t.Errorf("validation says %q, want a refusal by %q, with env as the remedy", refused, want)
			}
			var claimed protocol.ClaimedTask
			claimed.Template = true
			claimed.Plugin = plan.DefaultPlugin
			if _, err := Resolve(&claimed, json.RawMessage(fmt.Sprintf(`{"item":"i","run":%s}`, list)), nil); (err != nil) != (want != "") {
				t.Errorf("as it is claimed it is refused: %v, want %q", err, want)
			}
		})
	}
}

// A script that does not get the variables of its task is not told to read them.
func TestTheRemedyForAScriptWithoutVariables(t *testing.T) {
	for run, want := range map[string]string{ // X is an expression
		`bash -c 'rm X'`:                   "",
		`timeout 5 nice sh -c X`:           "",
		`env A=b sh -c X`:                  "",
		`ssh host 'rm -rf /data/X'`:        `ssh passes no variables on, so let the script read standard input: printf '%s\n' "$VALUE" | ssh … 'read -r VALUE; …'`,
		`sshpass -e ssh host X`:            `| ssh … 'read -r VALUE; …'`,
		`docker exec app bash -c X`:        `| docker exec -i … 'read -r VALUE; …'`,
		`docker run --rm img python3 -c X`: `| docker run -i …`,
		`sudo podman exec app sh -c X`:     `| podman exec -i … 'read`,
		`kubectl exec pod -- sh -c X`:      `| kubectl exec -i … 'read`,
		`sudo -u app bash -c X`:            `| sudo … 'read`,
		`systemd-run --wait sh -c X`:       `| systemd-run --pipe … 'read`,
	} {
		list, err := json.Marshal(words(run))
		if err != nil {
			t.Fatal(err)
		}
		var claimed protocol.ClaimedTask
		claimed.Template = true
		claimed.Plugin = plan.DefaultPlugin
		_, claim := Resolve(&claimed, json.RawMessage(fmt.Sprintf(`{"item":"i","run":%s}`, list)), nil)
		submitted := Validate(&plan.Spec{Name: "p", Tasks: []plan.TaskSpec{{Name: "t", Foreach: &plan.Foreach{List: json.RawMessage(`["a"]`)}, Params: json.RawMessage(fmt.Sprintf(`{"run":%s}`, list))}}})
		for at, err := range map[string]error{"claimed": claim, "submitted": submitted} {
			if said := fmt.Sprint(err); !strings.Contains(said, "pass the value by env") || !strings.Contains(said, want) || want == "" && strings.Contains(said, "standard input") {
				t.Errorf("%s, as it is %s: %s; want the remedy %q", run, at, said, want)
			}
		}
	}
}

// words cuts a line at blanks outside quotes.
func words(line string) (out []string) {
	for _, part := range strings.FieldsFunc(line, quoted()) {
		out = append(out, strings.ReplaceAll(strings.Trim(part, "'"), "X", "${{ item }}"))
	}
	return out
}

func quoted() func(rune) bool {
	in := false
	return func(r rune) bool {
		if r == '\'' {
			in = !in
		}
		return r == ' ' && !in
	}
}
