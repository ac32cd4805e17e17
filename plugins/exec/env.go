package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/source"
	"github.com/seed-1177d267/sluice/plugins"
)

// sluicesOwn are all variables that begin with SLUICE_ and that a command has, one of no plan all but SLUICE_PLAN.
var sluicesOwn = []string{"SLUICE_PARAMS", "SLUICE_OUTPUT", "SLUICE_PROGRESS", "SLUICE_TASK", "SLUICE_PLAN", "SLUICE_NAME", "SLUICE_ATTEMPT", "SLUICE_NODE", "SLUICE_COMMAND"}

// baseEnv is what every command inherits of the node's environment, each name once.
type baseEnv []string

func newBaseEnv(environ []string) baseEnv { return source.Environ(environ) }

// variable is the name of a param that becomes a variable. Names that end in proxySuffix would make programs send their traffic
// elsewhere.
var variable = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

const proxySuffix = "_proxy"

// longestVariable is the most bytes of a param that becomes a variable. Linux starts no program
// with a variable of 128 KiB, and a command need not fail for a param that it can read from
// $SLUICE_PARAMS.
const longestVariable = 100 << 10

// named reports whether a param of this name is a variable, if it is short.
func named(name string) bool {
	return !noVariables[name] && variable.MatchString(name) && !strings.HasSuffix(name, proxySuffix)
}

// mostVariables limits the total size of the lists and objects that become variables. Linux starts
// no program with more than 2 MiB of variables and arguments.
const mostVariables = 1 << 20

// variables returns the params that become variables: a text as it is, and everything else as JSON.
func variables(params map[string]json.RawMessage) map[string]string {
	as := make(map[string]string, len(params))
	var compounds []string
	for name, raw := range params {
		if !named(name) || len(raw) > 6*longestVariable { // an escape has six bytes at most for each of a text
			continue
		}
		text, ok := source.Scalar(raw)
		switch {
		case !ok:
			compounds = append(compounds, name)
		case len(text) <= longestVariable && !strings.Contains(text, "\x00"):
			as[name] = text
		}
	}
	slices.Sort(compounds)
	left := mostVariables
	for _, name := range compounds {
		if text, ok := compact(params[name]); ok && len(text) <= min(left, longestVariable) {
			as[name] = text
			left -= len(text)
		}
	}
	return as
}

// compact returns JSON without the blanks that stores may keep.
func compact(raw json.RawMessage) (string, bool) {
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.String(), err == nil
}

// of returns the environment of a command, each name once, and the secrets in it. It begins with
// the node's variables. The params replace these, and the env of the plan and the task replaces
// both. Sluice's own variables have names of their own. A name in the plan has the same meaning on
// every node. A param that is too long, or is not text, therefore also hides a variable of the
// node. No program takes orders from variables in lower case, except *_proxy.
func (b baseEnv) of(ctx context.Context, t *plugins.Task, s *settings, f files) (env, secrets []string, err error) {
	env = make([]string, 0, len(b)+len(s.params)+len(s.env)+8)
	for _, v := range b {
		if name, _, _ := strings.Cut(v, "="); !has(s.env, name) && !(has(s.params, name) && named(name)) {
			env = append(env, v)
		}
	}
	for name, v := range s.env {
		text, err := v.Read(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("env %s, on node %s: %w", name, t.Node, err)
		}
		if err := rules.CheckNUL("env "+name, text); err != nil {
			return nil, nil, err
		}
		if v.Secret() {
			secrets = append(secrets, text)
		}
		env = append(env, name+"="+text)
	}
	env = append(env, "SLUICE_PARAMS="+f.params, "SLUICE_OUTPUT="+f.output, "SLUICE_PROGRESS="+f.progress, "SLUICE_TASK="+t.ID.String(), "SLUICE_NAME="+t.Name,
		"SLUICE_ATTEMPT="+strconv.Itoa(t.Attempt), "SLUICE_NODE="+string(t.Node))
	if !t.Plan.IsZero() {
		env = append(env, "SLUICE_PLAN="+t.Plan.String())
	}
	if filepath.IsAbs(s.dir) && !has(s.env, "PWD") {
		env = append(env, "PWD="+s.dir)
	}
	params := variables(s.params)
	for name, text := range params {
		if !has(s.env, name) {
			env = append(env, name+"="+text)
		}
	}
	if err := s.missing(env, params); err != nil {
		return nil, nil, err
	}
	return env, secrets, nil
}

func has[V any](m map[string]V, name string) bool {
	_, ok := m[name]
	return ok
}

// Check implements plugins.Checker. A variable that this process does not have will never appear. A
// missing file can only be made by a task that runs before.
func (p *Plugin) Check(params json.RawMessage, first bool) []plugins.Lack {
	if !bytes.Contains(params, []byte(`"from_`)) {
		return nil // as nearly all
	}
	s, err := readSettings(params)
	if err != nil {
		return nil // the task says so itself
	}
	var lacks []plugins.Lack
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		v := s.env[name]
		if v.FromFile != "" && !first || strings.Contains(v.FromEnv+v.FromFile, "${{") {
			continue
		}
		err := v.There()
		if _, set := os.LookupEnv(v.FromEnv); v.FromEnv != "" && !set && !source.Private(v.FromEnv) {
			err = fmt.Errorf("the variable %s is not set here; set it first", v.FromEnv)
		}
		if err != nil {
			lacks = append(lacks, plugins.Lack{Variable: name, Err: err})
		}
	}
	return lacks
}
