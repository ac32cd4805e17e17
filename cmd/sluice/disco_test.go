//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/hosttest"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

// A node runs cases of the protocol as tasks. All cases run without a store, see internal/cli.
func TestANodeRunsWorkersOfDisco(t *testing.T) {
	t.Parallel()
	worker, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	onEachStore(t, func(t *testing.T, s *site) {
		node := s.daemon(nil, "--name", "disco", "--allow", "disco", "--disco-data", filepath.Join(s.dir, "data"), "--disco-host", "here", "--disco-listen", "127.0.0.1:0")
		for _, c := range hosttest.Cases() {
			if !slices.Contains([]int{1, 17, 31, 41, 45, 53, 65, 73, 74, 78}, c.Number) {
				continue
			}
			report := filepath.Join(s.dir, fmt.Sprint(c.Number))
			env := map[string]string{}
			for _, v := range hosttest.Environ(c.Number, report) {
				name, value, _ := strings.Cut(v, "=")
				env[name] = value
			}
			params, err := json.Marshal(map[string]any{"worker": worker, "env": env, "inputs": json.RawMessage("[" + strings.Join(c.Lines, ",") + "]")})
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("case-%d", c.Number)
			file := filepath.Join(s.dir, name+".yaml")
			text := fmt.Sprintf("plan: %s\ntasks:\n  a: {plugin: disco, retry: {attempts: 1}, params: %s}\n  b: {needs: [a], when: all_done, run: 'true'}\n", name, params)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s.must("plan", "submit", file)
			_, code := s.sluice("plan", "wait", name)
			var is []struct {
				State, Reason, Detail string
				Output                json.RawMessage
			}
			for _, task := range []string{"a", "b"} {
				if err := json.Unmarshal([]byte("["+s.must("task", "show", name, task, "-o", "json")+"]"), &is); err != nil {
					t.Fatal(err)
				}
				if task == "b" { // a fatal end closes the plan
					if closed := is[0].State == "skipped"; closed != (c.End == host.Fatal) {
						t.Errorf("case %d ended as %v, and the task after it is %s", c.Number, c.End, is[0].State)
					}
					continue
				}
				if (is[0].State == "succeeded") != (c.End == host.Done) || (is[0].Reason == "fatal") != (c.End == host.Fatal) || code == 0 != (c.End == host.Done) {
					t.Errorf("case %d: %s for %q, and the plan ended with %d: %s", c.Number, is[0].State, is[0].Reason, code, is[0].Detail)
				}
				for _, want := range c.Detail {
					if !strings.Contains(is[0].Detail, want) {
						t.Errorf("case %d: the detail is %q, want %q in it", c.Number, is[0].Detail, want)
					}
				}
				var b strings.Builder
				enc := json.NewEncoder(&b)
				_ = enc.Encode(is[0].Output)
				if pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(c.Outputs), `\*`, ".*") + "$"; c.Outputs != "" && !regexp.MustCompile(pattern).MatchString(strings.TrimSpace(b.String())) {
					t.Errorf("case %d: the output is %s, want %s", c.Number, b.String(), c.Outputs)
				}
			}
			if text, err := os.ReadFile(report); err == nil {
				t.Errorf("case %d: the worker: %s", c.Number, text)
			}
			for _, left := range hosttest.Left(report) {
				t.Errorf("case %d: this process is alive: %s", c.Number, left)
			}
		}
		if said := node.said(); !strings.Contains(said, "the outputs of Disco's workers are served") || !strings.Contains(said, "all accounts of this machine") {
			t.Errorf("the node said %s", said)
		}
	})
}
