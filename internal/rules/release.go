package rules

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// Copied reports whether outputs of these sizes are copied into a child's params, or passed by reference: sum of bytes and the
// largest one.
func Copied(sum, largest int) bool { return sum <= plan.MaxCopied && largest <= plan.MaxCopiedOne }

// CheckInputs returns an error that is ErrTooMuchInput if a task is not given outputs of so many bytes together, so that stores need
// not read them.
func CheckInputs(bytes int) error {
	if bytes <= plan.MaxInputs {
		return nil
	}
	return fmt.Errorf("%w: its parents' outputs have %d bytes in all, and a task takes at most %d; have the parents write files and return the paths",
		plan.ErrTooMuchInput, bytes, plan.MaxInputs)
}

// CheckWhole returns an ErrTooMuchInput if params of so many bytes, with the outputs of all parents
// in them, are too large for a task that another program may run. Such a program reads params, and
// nothing by reference. Each output is in them twice, in needs and in args. The limit leaves room
// for the output of the task.
func CheckWhole(bytes int) error {
	if bytes <= plan.MaxWhole {
		return nil
	}
	return fmt.Errorf("%w: with its parents' outputs, each of them in needs and in args, its params have %d bytes; a task that another program may run "+
		"is given at most %d: let them write files and return the paths, or give it a queue that only Sluice serves, as one without a limit is",
		plan.ErrTooMuchInput, bytes, plan.MaxWhole)
}

// CheckOutput returns an ErrTooMuchOutput if the outputs of items, of so many bytes together, are
// too large for a list. Stores then need not read them.
func CheckOutput(bytes int) error {
	if bytes <= plan.MaxInputs {
		return nil
	}
	return fmt.Errorf("%w: its items returned %d bytes in all, and at most %d are put together; read the outputs of the items one by one",
		plan.ErrTooMuchOutput, bytes, plan.MaxInputs)
}

// An InputSize is what is known of an Input before its output is read.
type InputSize struct {
	Name     string
	Bytes    int
	Gathered bool // the output is the list of the outputs of a foreach task's items
}

// Deliver returns the params that a task with parents is queued with: its own, a JSON object or nil, with
//
//	needs: {parent's name: its output, …}
//	args:  [its output, …]               in the order of the task's needs
//
// args are the arguments that zk-plan passes to its functions. Deliver replaces both keys in
// params. Inputs must be valid JSON or nil. Only a task of no plan can have parents with the same
// name; needs then holds the last.
func Deliver(params json.RawMessage, inputs []plan.Input) (json.RawMessage, error) {
	size := 24
	for _, in := range inputs {
		size += 2*len(in.Output) + len(in.Name) + 16
	}
	out, err := jsontext.Open(params, size, "needs", "args")
	if err != nil {
		return nil, err
	}
	out = append(out, `"needs":{`...)
	hidden := sameNames(inputs)
	first := true
	for i, in := range inputs {
		if hidden[i] {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(appendName(out, in.Name), ':')
		out = appendOutput(out, in.Output)
	}
	out = append(out, `},"args":`...)
	out = appendList(out, inputs)
	return append(out, '}'), nil
}

// WithoutInputs returns params without what Deliver puts into them. Params that are not a JSON object
// stay as they are.
func WithoutInputs(params json.RawMessage) json.RawMessage {
	own, err := jsontext.Open(params, 1, "needs", "args")
	if err != nil {
		return params
	}
	return append(bytes.TrimRight(own, ","), '}')
}

// KeepInputs returns params, a JSON object, with what Deliver put into the params that they replace.
func KeepInputs(params, was json.RawMessage) (json.RawMessage, error) {
	var delivered struct {
		Needs json.RawMessage `json:"needs"`
		Args  json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(was, &delivered); err != nil || delivered.Needs == nil || delivered.Args == nil {
		return params, nil // nothing was delivered
	}
	out, err := jsontext.Open(params, len(delivered.Needs)+len(delivered.Args)+24, "needs", "args")
	if err != nil {
		return nil, err
	}
	out = append(append(out, `"needs":`...), delivered.Needs...)
	out = append(append(out, `,"args":`...), delivered.Args...)
	return append(out, '}'), nil
}

// DeliverResults returns params, a JSON object or nil, with
//
//	results: {parent's name: its state, …}
//
// DeliverResults replaces that key in params. If parents have the same name, it holds the last.
func DeliverResults(params json.RawMessage, parents []plan.Parent) (json.RawMessage, error) {
	states := make(map[string]string, len(parents))
	for _, p := range parents {
		states[p.Name] = p.State
	}
	results, err := jsontext.Marshal(states)
	if err != nil {
		return nil, err
	}
	return withMember(params, "results", results)
}

// withMember returns params, a JSON object or nil, with a value under that key, which takes the place of another one.
func withMember(params json.RawMessage, key string, value json.RawMessage) (json.RawMessage, error) {
	out, err := jsontext.Open(params, len(value)+16, key)
	if err != nil {
		return nil, err
	}
	return append(appendOutput(append(out, `"`+key+`":`...), value), '}'), nil
}

// sameNames returns which inputs have a later one of the same name; nil, which is nearly always so, if none has.
func sameNames(inputs []plan.Input) map[int]bool {
	var hidden map[int]bool
	hide := func(i int) {
		if hidden == nil {
			hidden = map[int]bool{}
		}
		hidden[i] = true
	}
	if len(inputs) <= 8 { // a map would cost more than the few comparisons
		for i := range inputs {
			for k := range i {
				if inputs[k].Name == inputs[i].Name {
					hide(k)
				}
			}
		}
		return hidden
	}
	last := make(map[string]int, len(inputs))
	for i, in := range inputs {
		if k, twice := last[in.Name]; twice {
			hide(k)
		}
		last[in.Name] = i
	}
	return hidden
}

// appendName writes a name as a JSON text. A plan's names need no escapes; those of tasks of no plan are as their submitter likes.
func appendName(out []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := jsontext.Marshal(name) // a string
			return append(out, quoted...)
		}
	}
	out = append(out, '"')
	out = append(out, name...)
	return append(out, '"')
}

// List returns the outputs as one JSON array, in their order: the output of a foreach task from those of its items.
func List(inputs []plan.Input) json.RawMessage {
	size := 2
	for i := range inputs {
		size += max(len(inputs[i].Output), len("null")) + 1
	}
	return appendList(make([]byte, 0, size), inputs)
}

func appendList(out []byte, inputs []plan.Input) []byte {
	out = append(out, '[')
	for i, in := range inputs {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendOutput(out, in.Output)
	}
	return append(out, ']')
}

func appendOutput(out []byte, v json.RawMessage) []byte {
	if len(v) == 0 {
		return append(out, "null"...)
	}
	return append(out, v...)
}
