package jobpack

import (
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// Spec returns the plan of the job: a task of the plugin disco for each stage. path is where nodes find the pack.
// env has further variables, in place of those of the same name. If a task fails for good, the job does.
func (p *Pack) Spec(path string, env map[string]string) (*plan.Spec, error) {
	vars := make(map[string]string, len(p.Envs)+len(env))
	for _, of := range []map[string]string{p.Envs, env} {
		for name, value := range of {
			vars[name] = value
		}
	}
	params, err := jsontext.Marshal(map[string]any{"pack": path, "worker": p.Worker, "env": vars})
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

// Notes says what of the job is done in another way here, for people.
func (p *Pack) Notes() (notes []string) {
	for _, s := range p.Stages {
		if s.Concurrent {
			notes = append(notes, "stage "+strconv.Quote(s.Name)+" is concurrent in the pack; it begins when the stage before has ended")
		}
	}
	if p.MaxCores > 0 && p.MaxCores < 1<<31 {
		n := strconv.Itoa(p.MaxCores)
		notes = append(notes, "max_cores is "+n+" in the pack, and a job has no limit of its own here; to limit all jobs: sluice queue set disco --threads "+n)
	}
	if p.SaveResults {
		notes = append(notes, "save_results is set in the pack, and there is no DDFS here; the results are the output of the last stage")
	}
	return notes
}
