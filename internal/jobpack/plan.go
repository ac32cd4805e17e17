package jobpack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

// storedPrefix begins the param pack of a task whose pack the store keeps beside the plan.
const storedPrefix = "sha256:"

// Stored returns the SHA-256, in hex, of the pack that the param pack of a task names, and whether the
// store keeps the pack beside the plan. Otherwise the param is a path.
func Stored(param string) (sum string, is bool) { return strings.CutPrefix(param, storedPrefix) }

// JobName makes the name of a job of a plan's or a task's name and its id. The name is a folder, and
// a part of URLs.
func JobName(name, id string) string {
	const most = 64
	name = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if name = name[:min(len(name), most)]; name == "" || name[0] == '.' {
		name = "_" + name
	}
	return name + "@" + id
}

// JobID returns the id in the name of a job, of a plan or of a task of none; the zero one if there is none.
func JobID(job string) plan.ID {
	_, text, _ := strings.Cut(job, "@")
	id, err := plan.ParseID(text)
	if err != nil {
		return plan.ID{}
	}
	return id
}

// SetInputs gives the job other inputs, each a URL.
func (p *Pack) SetInputs(urls []string) {
	p.Inputs = nil
	for _, url := range urls {
		p.Inputs = append(p.Inputs, InputOf(url))
	}
}

// Spec returns the plan of the job: a task of the plugin disco for each stage. The store keeps the pack
// beside the plan. env has further variables, in place of those of the same name. If a task fails for
// good, the job does. Spec refuses inputs that no worker can read here.
func (p *Pack) Spec(env map[string]string) (*plan.Spec, error) {
	for i, in := range p.Inputs {
		if err := host.CheckReplicas(in.URLs); err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, p.Content()); err != nil {
		return nil, err
	}
	vars := make(map[string]string, len(p.Envs)+len(env))
	for _, of := range []map[string]string{p.Envs, env} {
		for name, value := range of {
			vars[name] = value
		}
	}
	params, err := jsontext.Marshal(map[string]any{"pack": storedPrefix + hex.EncodeToString(sum.Sum(nil)), "worker": p.Worker, "env": vars})
	if err != nil {
		return nil, err
	}
	type input struct {
		Label any      `json:"label"`
		URLs  []string `json:"urls"`
	}
	inputs := make([]input, len(p.Inputs))
	for i, in := range p.Inputs {
		inputs[i] = input{in.Label, in.URLs}
		if in.Label == AllLabels {
			inputs[i].Label = "all"
		}
	}
	list, err := jsontext.Marshal(inputs)
	if err != nil {
		return nil, err
	}
	s := plan.New(p.Prefix)
	s.OnFailure = plan.Stop
	for i, stage := range p.Stages {
		t := s.Add(plan.TaskSpec{Name: stage.Name, Plugin: "disco", Params: params, Foreach: &plan.Foreach{Group: stage.Grouping}})
		if i == 0 {
			t.Foreach.List = list
		} else {
			t.Foreach.Value, t.Needs = "needs."+p.Stages[i-1].Name, []string{p.Stages[i-1].Name}
		}
	}
	return s, nil
}

// InputOf returns an input of these replicas, at least one, with the label 0. All labels of an index belong to it.
func InputOf(urls ...string) Input {
	in := Input{URLs: urls}
	if strings.HasPrefix(urls[0], "dir://") {
		in.Label = AllLabels
	}
	return in
}

// MaxTasks returns how many tasks of the job run at once; 0: any number. Disco writes that as 2³¹.
func (p *Pack) MaxTasks() int {
	if p.MaxCores >= 1<<31 {
		return 0
	}
	return p.MaxCores
}

// Notes says what of the job is done in another way here, for people.
func (p *Pack) Notes() (notes []string) {
	for _, s := range p.Stages {
		if s.Concurrent {
			notes = append(notes, "stage "+strconv.Quote(s.Name)+" is concurrent in the pack; it begins when the stage before has ended")
		}
	}
	if p.SaveResults {
		notes = append(notes, "save_results is set in the pack, and there is no DDFS here; the results are the output of the last stage")
	}
	return notes
}
