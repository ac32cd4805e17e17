package oste

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// An ActivityType is a queue in the group of its solution. Its defaults are the request of each
// activity, which an attempt reads as it begins.
type ActivityType struct {
	ID                string   `json:"id,omitempty" doc:"The id of its solution and its name, with a dot between them."`
	Solution          string   `json:"Solution,omitempty" doc:"The id of its solution."`
	Name              string   `json:"Name,omitempty" doc:"Unique in its solution; the rules are those of the name of a company."`
	Verb              string   `json:"Verb,omitempty" enum:"POST,PUT,DELETE,GET" doc:"The method of its requests. GET and DELETE send no body."`
	UriPattern        string   `json:"UriPattern,omitempty" maxLength:"8192" doc:"The address: a template as https://example.com/song/{SongId}, which the fields of Parameter fill behind the host."`
	ParameterExpected string   `json:"ParameterExpected,omitempty" maxLength:"2000" doc:"What Parameter is expected to be, for people."`
	Retries           int      `json:"Retries,omitempty" minimum:"0" maximum:"2147483646" doc:"How many more tries an activity has after the first one fails; left out: none."`
	ObjectIdRef       []string `json:"ObjectIdRef,omitempty" maxItems:"20" doc:"The fields of Parameter that identify the object that an activity is about."`
}

// TypeOf returns the activity type that a queue is. It reports false for a queue that is none.
func TypeOf(q *plan.Queue) (ActivityType, bool) {
	solution, name, ok := split(q.Name, typeDepth)
	params := object(q.Defaults.Params)
	verb, _ := jsontext.TextOf(params[paramMethod])
	pattern, _ := jsontext.TextOf(params[paramURL])
	return ActivityType{
		ID: q.Name, Solution: solution, Name: name, Verb: verb, UriPattern: pattern, ParameterExpected: q.Description,
		Retries: max(0, q.Defaults.Retry.Attempts-1), ObjectIdRef: q.ObjectRef,
	}, ok && q.Plugin == Plugin && q.Group == solution
}

// The params of the plugin http that activities have.
const (
	paramMethod = "method"
	paramURL    = "url"
	paramBody   = "body"
)

// object returns the keys of a JSON object; of any other value none.
func object(value json.RawMessage) map[string]json.RawMessage {
	var keys map[string]json.RawMessage
	if len(value) == 0 || json.Unmarshal(value, &keys) != nil || keys == nil {
		return map[string]json.RawMessage{}
	}
	return keys
}

// with returns a JSON object with other values for some of its keys. A nil value removes the key.
func with(value json.RawMessage, keys map[string]json.RawMessage) json.RawMessage {
	all := object(value)
	maps.Copy(all, keys)
	maps.DeleteFunc(all, func(_ string, v json.RawMessage) bool { return v == nil })
	text, _ := jsontext.Marshal(all) // what was read can be written
	return text
}

// textOf writes a text as JSON; nil: there is none.
func textOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return jsontext.AppendText(nil, text)
}

// Apply changes a queue to what the type says. A queue without a name gets its name, its group and its
// plugin. Other defaults of the queue stay, such as headers of its requests.
func (t *ActivityType) Apply(q *plan.Queue) error {
	if q.Name == "" {
		if _, _, ok := split(t.Solution, solutionDepth); !ok {
			return mistake("Solution", "%q is not the id of a solution; give the names of a company and of its solution, as in acme.music", t.Solution)
		}
		if err := checkName("activity type", t.Name, id(t.Solution, t.Name)); err != nil {
			return err
		}
		q.Name, q.Group, q.Plugin = id(t.Solution, t.Name), t.Solution, Plugin
	}
	solution, name, _ := split(q.Name, typeDepth)
	if err := cmp.Or(same("id", t.ID, q.Name), same("Solution", t.Solution, solution), same("Name", t.Name, name)); err != nil {
		return err
	}
	switch {
	case t.Verb == "":
		return mistake("Verb", "there is none; give POST, PUT, DELETE or GET")
	case t.UriPattern == "":
		return mistake("UriPattern", "there is none; give the address, as https://example.com/song/{SongId}")
	case slices.Contains(t.ObjectIdRef, ""):
		return mistake("ObjectIdRef", "the name of a field is empty; give a field of Parameter")
	}
	q.Description, q.ObjectRef = t.ParameterExpected, t.ObjectIdRef
	q.Defaults.Params = with(q.Defaults.Params, map[string]json.RawMessage{paramMethod: textOf(t.Verb), paramURL: textOf(t.UriPattern)})
	q.Defaults.Retry.Attempts = t.Retries + 1
	if err := compiler.CheckDefaults(&q.Defaults); err != nil {
		return &Mistake{"UriPattern", err}
	}
	return nil
}

// Draft returns the params of a task of the type whose body is not known yet, for its plugin to check.
func Draft(q *plan.Queue) json.RawMessage {
	return with(q.Defaults.Params, map[string]json.RawMessage{paramBody: textOf("${{ params.Parameter }}")})
}
