package disco

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/source"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

// own are the params that the plugin reads, in this order.
var own = []string{"worker", "dir", "inputs", "env", "jobfile", "pack"}

// settings are what a task's params say.
type settings struct {
	worker, dir string
	jobFile     string // "": an empty one
	pack        string // that the job home is unpacked from; "": none
	inputs      []host.Input
	group       *rules.Group // that the task is for; nil: it is for none
	given       bool         // the task has the param inputs
	env         map[string]source.Value
}

// readSettings reads params, and says which of them is wrong. A draft may still have expressions,
// and passes where one hides what there will be.
func readSettings(params json.RawMessage, draft bool) (s *settings, key string, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(params, &all); err != nil {
		return nil, "params", err
	}
	s = &settings{}
	for _, name := range own {
		raw := all[name]
		if err := rules.CheckNULIn("the value", raw); name != "inputs" && err != nil {
			return s, name, err
		}
		if draft && bytes.Contains(raw, []byte("${{")) && name != "inputs" {
			continue
		}
		switch name {
		case "worker":
			if s.worker, err = text(raw); err == nil && s.worker == "" {
				err = errors.New("there is none; give the path of a program")
			}
		case "dir":
			s.dir, err = text(raw)
		case "jobfile":
			s.jobFile, err = text(raw)
		case "pack":
			s.pack, err = text(raw)
		case "inputs":
			err = s.readInputs(raw, draft, 0)
		case "env":
			err = s.readEnv(raw)
		}
		if err != nil {
			return s, name, err
		}
	}
	s.given, s.group = all["inputs"] != nil, rules.GroupOf(all["item"])
	switch {
	case s.pack != "" && s.jobFile != "":
		return s, "jobfile", errors.New("pack and jobfile exclude each other; the worker opens the pack")
	case s.pack != "" && !s.stored() && s.dir == "" && !filepath.IsAbs(s.pack):
		return s, "pack", fmt.Errorf("%q is relative, and the task has no dir; give an absolute path", s.pack)
	case s.pack == "" && s.worker != "" && s.dir == "" && !filepath.IsAbs(s.worker):
		return s, "worker", fmt.Errorf("%q is relative, and the task has no dir; give an absolute path", s.worker)
	}
	return s, "", nil
}

func text(raw json.RawMessage) (s string, err error) {
	if raw != nil && json.Unmarshal(raw, &s) != nil {
		return "", fmt.Errorf("%s is not a text", source.Brief(raw))
	}
	return s, nil
}

// readGroup reads the inputs of the group, unless the task has others.
func (s *settings) readGroup(t *plugins.Task) error {
	if s.given {
		return nil
	}
	needs, err := t.Needs()
	if err != nil {
		return err
	}
	inputs, err := s.group.Read(needs[s.group.Of])
	if err != nil {
		return err
	}
	for _, in := range inputs {
		if err := s.readInputs(in, false, 1); err != nil {
			return err
		}
	}
	return nil
}

// mostNested is how deep lists of inputs lie in each other: the outputs of items of items.
const mostNested = 8

// readInputs reads an input, an output of another task, or a list of any of these.
func (s *settings) readInputs(raw json.RawMessage, draft bool, depth int) error {
	hides := draft && bytes.Contains(raw, []byte("${{"))
	var list []json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil
	case raw[0] == '"' && hides:
		return nil
	case raw[0] == '{' && depth > 0:
		return s.readInput(raw, hides)
	case raw[0] != '[' || depth > mostNested || json.Unmarshal(raw, &list) != nil:
		return fmt.Errorf("%s is no list of inputs; write {label: 0, urls: [http://…]} for each", source.Brief(raw))
	}
	if len(list) == 3 && depth > 0 && list[0][0] != '[' && list[0][0] != '{' && !hides { // an output
		url, err := text(list[1])
		if err != nil {
			return err
		}
		if string(list[0]) == "-1" { // as workers answer the label "all"
			list[0] = json.RawMessage(`"all"`)
		}
		return s.add(list[0], []string{url})
	}
	for i, in := range list {
		if err := s.readInputs(in, draft, depth+1); err != nil {
			if depth == 0 {
				return fmt.Errorf("input %d: %w", i, err)
			}
			return err
		}
	}
	return nil
}

func (s *settings) readInput(raw json.RawMessage, hides bool) error {
	var in struct {
		Label json.RawMessage
		URLs  json.RawMessage

		Labels json.RawMessage // of an index of outputs, with its URL
		URL    string
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return fmt.Errorf("%s: %w; an input has a label and urls", source.Brief(raw), err)
	}
	if in.Labels != nil { // the worker takes all of it
		return s.add(json.RawMessage(`"all"`), []string{in.URL})
	}
	if hides {
		if in.Label != nil && !bytes.Contains(in.Label, []byte("${{")) {
			_, err := host.ParseLabel(in.Label)
			return err
		}
		return nil
	}
	var urls []string
	if url, err := text(in.URLs); err == nil && url != "" {
		urls = []string{url}
	} else if in.URLs != nil && json.Unmarshal(in.URLs, &urls) != nil {
		return fmt.Errorf("urls: %s is no list of URLs", source.Brief(in.URLs))
	}
	return s.add(in.Label, urls)
}

func (s *settings) add(label json.RawMessage, urls []string) error {
	number, err := host.ParseLabel(label)
	if err == nil {
		err = host.CheckReplicas(urls)
	}
	if err == nil {
		s.inputs = append(s.inputs, host.Input{Label: number, Replicas: urls})
	}
	return err
}

func (s *settings) readEnv(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return fmt.Errorf("%s is not a mapping of names to values", source.Brief(raw))
	}
	s.env = make(map[string]source.Value, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := rules.CheckVariable(name); err != nil {
			return err
		}
		v, ok := source.Parse(values[name])
		if !ok {
			return fmt.Errorf("%s: %s is not a text, a number, a boolean, {from_env: NAME} or {from_file: PATH}", name, source.Brief(values[name]))
		}
		s.env[name] = v
	}
	return nil
}

// environ returns the variables of the worker, and the secrets in them.
func (s *settings) environ(ctx context.Context, base []string) (env, secrets []string, err error) {
	given := make(map[string]string, len(s.env))
	for name, v := range s.env {
		text, err := v.Read(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("env %s: %w", name, err)
		}
		if err := rules.CheckNUL("env "+name, text); err != nil {
			return nil, nil, err
		}
		if v.Secret() {
			secrets = append(secrets, text)
		}
		given[name] = text
	}
	return Environ(base, given), secrets, nil
}

// stored reports whether the store keeps the pack.
func (s *settings) stored() bool {
	_, is := jobpack.Stored(s.pack)
	return is
}

// jobPack returns the path of the job pack; "" is an empty one.
func (s *settings) jobPack() string {
	path := cmp.Or(s.pack, s.jobFile)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.dir, path)
}

// CheckWorker returns the absolute path of a worker, which may be relative to dir ("" is the working
// directory), or says why it cannot be started.
func CheckWorker(worker, dir string) (string, error) {
	path := worker
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("worker %q is not there: install it, or correct its path", path)
	case err != nil:
		return "", fmt.Errorf("worker %q: %w", path, cause(err))
	case info.IsDir():
		return "", fmt.Errorf("worker %q is a folder: name a program in it", path)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "", fmt.Errorf("worker %q is no program: chmod +x it, or name the program", path)
	}
	return path, nil
}

// Refuse implements plugins.Refuser. A worker sees no other params.
func (*Plugin) Refuse(params json.RawMessage, _ map[string]json.RawMessage) (key string, err error) {
	if _, key, err = readSettings(params, true); err != nil {
		return key, fmt.Errorf("%s: %w", key, err)
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(params, &all) // it was read before
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(own, name) {
			return name, fmt.Errorf("plugin disco has no param %q; it has worker, inputs, env, jobfile and pack", name)
		}
	}
	return "", nil
}

// Check implements plugins.Checker. A worker that is missing here can only be made by a task that
// runs before.
func (p *Plugin) Check(params json.RawMessage, first bool) (lacks []plugins.Lack) {
	s, _, err := readSettings(params, true)
	if err != nil {
		return nil // the task is refused for that
	}
	if s.worker != "" && s.pack == "" && first {
		if _, err := CheckWorker(s.worker, s.dir); err != nil {
			lacks = append(lacks, plugins.Lack{Key: "params", Variable: "worker", Err: err})
		}
	}
	if path := s.jobPack(); path != "" && !s.stored() && first {
		key := "jobfile"
		if s.pack != "" {
			key = "pack"
		}
		if err := checkJobFile(path); err != nil {
			lacks = append(lacks, plugins.Lack{Key: "params", Variable: key, Err: err})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		if v := s.env[name]; v.Secret() && !strings.Contains(v.FromEnv+v.FromFile, "${{") {
			if err := v.There(); err != nil {
				lacks = append(lacks, plugins.Lack{Variable: name, Err: err})
			}
		}
	}
	return lacks
}
