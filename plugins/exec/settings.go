package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/source"
)

// stdinParams is the one thing that stdin can be.
const stdinParams = "params"

// settings are what a task's params say to the plugin itself.
type settings struct {
	line  string   // for a shell; or
	argv  []string // a program and its arguments
	shell string
	env   map[string]source.Value
	dir   string
	stdin string

	params map[string]json.RawMessage // all of them
}

// settingsOwn are the params of the plugin itself, in the order in which they are read. noVariables are all that never become variables: what came from parents, too.
var (
	settingsOwn = []string{"run", "env", "shell", "dir", "stdin"}
	noVariables = map[string]bool{"run": true, "shell": true, "env": true, "dir": true, "stdin": true, "needs": true, "args": true, "results": true, "failures": true}
)

// readSettings reads the params. Their keys are exact: a plan's param RUN is no command.
func readSettings(params json.RawMessage) (*settings, error) {
	s := new(settings)
	if err := json.Unmarshal(params, &s.params); err != nil {
		return nil, fmt.Errorf("params of %s: %w", Name, err)
	}
	for _, name := range settingsOwn {
		if err := s.read(name); err != nil {
			return nil, err
		}
	}
	s.addFields()
	return s, nil
}

// ofItem begins the names of the params that addFields adds.
const ofItem = "item_"

// addFields adds the scalar fields of an item that is an object as params, so that they are variables:
// the field os is item_os. A param of the plan with that name stays.
func (s *settings) addFields() {
	var fields map[string]json.RawMessage
	if raw := bytes.TrimSpace(s.params["item"]); len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &fields) != nil {
		return
	}
	for name, raw := range fields {
		if _, scalar := source.Scalar(raw); scalar && !has(s.params, ofItem+name) {
			s.params[ofItem+name] = raw
		}
	}
}

// read reads one of the params of the plugin itself.
func (s *settings) read(name string) error {
	raw := s.params[name]
	if err := rules.CheckNULIn(name, raw); err != nil {
		return err
	}
	switch name {
	case "run":
		if err := s.readRun(raw); err != nil {
			return fmt.Errorf("run: %w", err)
		}
		return nil
	case "env":
		return s.readEnv(raw)
	}
	to := map[string]*string{"shell": &s.shell, "dir": &s.dir, "stdin": &s.stdin}[name]
	if raw != nil && json.Unmarshal(raw, to) != nil {
		return fmt.Errorf("%s: %s is not a text", name, source.Brief(raw))
	}
	if name == "stdin" && s.stdin != "" && s.stdin != stdinParams {
		return fmt.Errorf("stdin is %q; it is %s, or left out for none", s.stdin, stdinParams)
	}
	return nil
}

// Refuse implements plugins.Refuser. A param with an expression, or that the plan gives, may come to
// be right. A mapping env is read all the same: no expression changes the names in it. No expression
// removes a NUL byte.
func (*Plugin) Refuse(params json.RawMessage, given map[string]json.RawMessage) (key string, err error) {
	s := new(settings)
	if err := json.Unmarshal(params, &s.params); err != nil {
		return "", nil // the task is refused for that
	}
	for _, name := range settingsOwn {
		own := s.params[name]
		if own == nil && has(given, name) || bytes.Contains(own, []byte("${{")) && (name != "env" || own[0] != '{') {
			if err := rules.CheckNULIn(name, own); err != nil {
				return name, err
			}
			continue
		}
		if err := s.read(name); err != nil {
			return name, err
		}
	}
	return "", nil
}

func (s *settings) readRun(raw json.RawMessage) error {
	switch {
	case raw == nil:
		return errors.New("there is no command; give a shell line, or a list of a program and its arguments")
	case raw[0] == '"':
		if err := json.Unmarshal(raw, &s.line); err != nil {
			return err
		}
		if strings.TrimSpace(s.line) == "" {
			return errors.New("the shell line is empty; write a command")
		}
		return nil
	case raw[0] != '[':
		return fmt.Errorf("%s is not a command; give a shell line, or a list of a program and its arguments", source.Brief(raw))
	}
	var words []json.RawMessage
	if err := json.Unmarshal(raw, &words); err != nil {
		return err
	}
	if len(words) == 0 {
		return errors.New("the list is empty; give a program and its arguments")
	}
	for i, w := range words {
		v, err := readValue(w)
		if err == nil && v.Secret() {
			err = errors.New("a secret as an argument could be seen by every user of the host; pass it by env")
		}
		if err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
		s.argv = append(s.argv, v.Text)
	}
	return nil
}

func (s *settings) readEnv(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return fmt.Errorf("env: %s is not a mapping of names to values", source.Brief(raw))
	}
	s.env = make(map[string]source.Value, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := rules.CheckVariable(name); err != nil {
			return fmt.Errorf("env: %w", err)
		}
		v, err := readValue(values[name])
		if err != nil {
			return fmt.Errorf("env %s: %w", name, err)
		}
		s.env[name] = v
	}
	return nil
}

// readValue reads a value of env, or an argument.
func readValue(raw json.RawMessage) (source.Value, error) {
	v, ok := source.Parse(raw)
	if !ok {
		return v, fmt.Errorf("%s is not a text, a number, a boolean, {from_env: NAME} or {from_file: PATH}; values of other kinds are in $SLUICE_PARAMS",
			source.Brief(raw))
	}
	return v, nil
}

// command returns the program and its arguments on a system. Shell lines end at the first command
// that fails. Lines of bash without options of its own also end at a failure within a pipe. Both
// are as in GitHub Actions.
func (s *settings) command(goos string) ([]string, error) {
	if s.argv != nil {
		return s.argv, nil
	}
	shell := strings.Fields(s.shell)
	if len(shell) == 0 {
		if goos == "windows" {
			return nil, errors.New("a shell line needs a shell on Windows: say shell: pwsh, cmd, or bash if it is installed; or make run a list")
		}
		shell = []string{"/bin/sh"}
	}
	switch strings.TrimSuffix(strings.ToLower(filepath.Base(shell[0])), ".exe") {
	case "cmd":
		return append(shell, "/d", "/c", s.line), nil
	case "pwsh", "powershell":
		return append(shell, "-NoProfile", "-NonInteractive", "-Command", s.line), nil
	}
	if len(shell) == 1 && strings.HasPrefix(filepath.Base(shell[0]), "bash") {
		return append(shell, "--noprofile", "--norc", "-eo", "pipefail", "-c", s.line), nil
	}
	return append(shell, "-ec", s.line), nil
}

// plain returns the words of the line if it needs no shell. It returns nil if there is no line, or
// the line or the author asks for a shell.
func (s *settings) plain(goos string) []string {
	if s.argv != nil || s.shell != "" || goos == "windows" {
		return nil
	}
	return plainWords(s.line)
}
