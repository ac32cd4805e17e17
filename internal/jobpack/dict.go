package jobpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
)

// object is a JSON object whose keys are read one by one, so that an error names the key.
type object map[string]json.RawMessage

func readObject(r *io.SectionReader) (object, error) {
	if r.Size() > maxJSON {
		return nil, fmt.Errorf("it has %d bytes, and at most %d MiB are read; put large values into the job home", r.Size(), maxJSON>>20)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var o object
	if json.Unmarshal(b, &o) != nil || o == nil {
		return nil, fmt.Errorf("%s is no JSON object; make the pack again", jsontext.Excerpt(b))
	}
	return o, nil
}

// get reads a key into a value of the type that want names. A key that is not there leaves the value as it is.
func (o object) get(key string, to any, want string) error {
	if raw, there := o[key]; there && string(raw) != "null" && json.Unmarshal(raw, to) != nil {
		return fmt.Errorf("%s: %s is not %s", key, jsontext.Brief(raw), want)
	}
	return nil
}

// readDict reads jobdict.
func (p *Pack) readDict(r *io.SectionReader) error {
	o, err := readObject(r)
	if err != nil {
		return err
	}
	var scheduler object
	err = errors.Join(
		o.get("prefix", &p.Prefix, "a text"), o.get("owner", &p.Owner, "a text"), o.get("worker", &p.Worker, "a path"),
		o.get("save_results", &p.SaveResults, "true or false"), o.get("scheduler", &scheduler, "an object"),
		scheduler.get("max_cores", &p.MaxCores, "a number of tasks"),
	)
	switch {
	case err != nil:
		return err
	case p.Prefix == "" || strings.ContainsAny(p.Prefix, "/.\x00"):
		return fmt.Errorf("prefix: %q cannot begin the name of a job; give a text without slashes and dots", p.Prefix)
	case p.Worker == "":
		return errors.New("worker: there is none; name a program in the job home")
	case p.MaxCores < 0:
		return fmt.Errorf("scheduler.max_cores: %d is less than one task; leave it out for no limit", p.MaxCores)
	}
	worker, err := cleanPath(p.Worker)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	p.Worker = worker
	if p.Version == 1 {
		return p.readOld(o)
	}
	if err := p.readPipeline(o["pipeline"]); err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	return readInputs(&p.Inputs, "inputs", o["inputs"], readInput)
}

// cleanPath returns a path in the job home in its shortest form.
func cleanPath(name string) (string, error) {
	clean := path.Clean(name)
	switch {
	case strings.ContainsAny(name, "\x00\\") || path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../"):
		return "", fmt.Errorf("%q leads out of the job home; give a path in it, with slashes", name)
	case clean == ".":
		return "", fmt.Errorf("%q is the job home itself; name a file in it", name)
	}
	return clean, nil
}

// readPipeline reads the stages of version 2: [name, grouping, concurrent] for each.
func (p *Pack) readPipeline(raw json.RawMessage) error {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return errors.New(`there are no stages; give a list of [name, grouping, concurrent], as in ["map", "split", false]`)
	}
	for i, raw := range list {
		var fields []json.RawMessage
		var s Stage
		if json.Unmarshal(raw, &fields) != nil || len(fields) < 2 || len(fields) > 3 ||
			json.Unmarshal(fields[0], &s.Name) != nil || json.Unmarshal(fields[1], &s.Grouping) != nil ||
			len(fields) == 3 && json.Unmarshal(fields[2], &s.Concurrent) != nil {
			return fmt.Errorf(`stage %d: %s is none; write [name, grouping, concurrent], as in ["map", "split", false]`, i, jsontext.Brief(raw))
		}
		if s.Name == "" {
			return fmt.Errorf("stage %d: its name is empty; name it", i)
		}
		if err := rules.CheckGrouping(s.Grouping); err != nil {
			return fmt.Errorf("stage %q: %w", s.Name, err)
		}
		if slices.ContainsFunc(p.Stages, func(other Stage) bool { return other.Name == s.Name }) {
			return fmt.Errorf("stage %q is there twice; names of stages are unique", s.Name)
		}
		p.Stages = append(p.Stages, s)
		if len(p.Stages) > mostStages {
			return fmt.Errorf("there are more than %d stages; make jobs of them", mostStages)
		}
	}
	return nil
}

const mostStages = 1000

// readInputs reads a list of inputs.
func readInputs(to *[]Input, key string, raw json.RawMessage, read func(json.RawMessage) (Input, error)) error {
	var list []json.RawMessage
	if raw != nil && json.Unmarshal(raw, &list) != nil {
		return fmt.Errorf("%s: %s is no list", key, jsontext.Brief(raw))
	}
	for i, raw := range list {
		in, err := read(raw)
		if err != nil {
			return fmt.Errorf("%s: input %d: %w", key, i, err)
		}
		*to = append(*to, in)
	}
	return nil
}

// readInput reads an input of version 2: [label, size, [URL, …]]. The library in Python writes a single URL without
// its list.
func readInput(raw json.RawMessage) (in Input, err error) {
	var fields []json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || len(fields) != 3 || json.Unmarshal(fields[0], &in.Label) != nil || json.Unmarshal(fields[1], &in.Size) != nil {
		return in, noInput(raw)
	}
	if in.URLs = readURLs(fields[2]); len(in.URLs) == 0 {
		return in, noInput(raw)
	}
	if in.Label < 0 || in.Label > MaxLabel {
		return in, fmt.Errorf("label %d is none; a label is an integer from 0 to %d", in.Label, MaxLabel)
	}
	return in, nil
}

func noInput(raw json.RawMessage) error {
	return fmt.Errorf("%s is none; write [label, size, [URL, …]]", jsontext.Brief(raw))
}

// readURLs reads a URL or a list of replicas. It returns nothing of anything else.
func readURLs(raw json.RawMessage) (urls []string) {
	if url, is := jsontext.TextOf(raw); is {
		return []string{url}
	}
	if json.Unmarshal(raw, &urls) != nil {
		return nil
	}
	return urls
}

// readOldInput reads an input of version 1: a URL, or a list of them.
func readOldInput(raw json.RawMessage) (in Input, err error) {
	urls := readURLs(raw)
	if len(urls) == 0 {
		return in, fmt.Errorf("%s is none; write a URL, or a list of replicas", jsontext.Brief(raw))
	}
	return InputOf(urls...), nil
}

// old is what version 1 says of the stages.
type old struct {
	Map     bool `json:"map?"`
	Reduce  bool `json:"reduce?"`
	Shuffle bool `json:"reduce_shuffle?"`
	Reduces int  `json:"nr_reduces"`
}

// stages returns the pipeline that Disco makes of a job of version 1. With one reduce, the labels do not count.
func (o old) stages() (stages []Stage) {
	if o.Map {
		stages = append(stages, Stage{Name: "map", Grouping: "split"}, Stage{Name: "map_shuffle", Grouping: "group_node"})
	}
	switch {
	case o.Reduce && o.Reduces == 1:
		stages = append(stages, Stage{Name: "reduce", Grouping: "group_all"})
	case o.Reduce:
		stages = append(stages, Stage{Name: "reduce", Grouping: "group_label"})
		if o.Shuffle {
			stages = append(stages, Stage{Name: "reduce_shuffle", Grouping: "group_node"})
		}
	}
	return stages
}

// oldOf returns what version 1 says of these stages, and false if no job of version 1 has them.
func oldOf(stages []Stage) (o old, ok bool) {
	for n := range 16 {
		o := old{Map: n&1 != 0, Reduce: n&2 != 0, Shuffle: n&4 != 0, Reduces: 1 + n>>3}
		if slices.Equal(o.stages(), stages) {
			return o, len(stages) > 0
		}
	}
	return old{}, false
}

// readOld reads the stages and the inputs of version 1.
func (p *Pack) readOld(o object) error {
	said := old{Reduces: 1}
	err := errors.Join(o.get("map?", &said.Map, "true or false"), o.get("reduce?", &said.Reduce, "true or false"),
		o.get("reduce_shuffle?", &said.Shuffle, "true or false"), o.get("nr_reduces", &said.Reduces, "a number of reduces"))
	if err != nil {
		return err
	}
	if p.Stages = said.stages(); len(p.Stages) == 0 {
		return errors.New("map? and reduce? are both false, so that there is nothing to do; set one of them")
	}
	return readInputs(&p.Inputs, "input", o["input"], readOldInput)
}

// readEnvs reads jobenvs.
func (p *Pack) readEnvs(r *io.SectionReader) error {
	o, err := readObject(r)
	if err != nil {
		return err
	}
	p.Envs = make(map[string]string, len(o))
	for _, name := range slices.Sorted(maps.Keys(o)) {
		value, is := jsontext.TextOf(o[name])
		if !is {
			return fmt.Errorf("%s: %s is not a text", name, jsontext.Brief(o[name]))
		}
		if err := rules.CheckVariable(name); err != nil {
			return err
		}
		if err := rules.CheckNUL(name, value); err != nil {
			return err
		}
		p.Envs[name] = value
	}
	return nil
}

// dict makes jobdict.
func (p *Pack) dict() (json.RawMessage, error) {
	scheduler := map[string]any{}
	if p.MaxCores > 0 {
		scheduler["max_cores"] = p.MaxCores
	}
	dict := map[string]any{
		"prefix": p.Prefix, "owner": p.Owner, "worker": p.Worker, "save_results": p.SaveResults, "save_info": "ddfs", "scheduler": scheduler,
	}
	if p.Version == 1 {
		of, ok := oldOf(p.Stages)
		if !ok {
			return nil, errors.New("version 1 has no such stages; make a pack of version 2")
		}
		inputs := make([][]string, len(p.Inputs))
		for i, in := range p.Inputs {
			inputs[i] = in.URLs
		}
		dict["map?"], dict["reduce?"], dict["reduce_shuffle?"], dict["nr_reduces"], dict["input"] = of.Map, of.Reduce, of.Shuffle, of.Reduces, inputs
		return jsontext.Marshal(dict)
	}
	pipeline, inputs := make([][3]any, len(p.Stages)), make([][3]any, len(p.Inputs))
	for i, s := range p.Stages {
		pipeline[i] = [3]any{s.Name, s.Grouping, s.Concurrent}
	}
	for i, in := range p.Inputs {
		inputs[i] = [3]any{in.Label, in.Size, in.URLs}
	}
	dict["pipeline"], dict["inputs"] = pipeline, inputs
	return jsontext.Marshal(dict)
}
