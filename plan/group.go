package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Group is a set of queues with limits that its queues share. A group may be in another group,
// which then has no parent: there are two levels.
type Group struct {
	Name string `json:"name"`
	GroupSettings
	// Changed is when the group was last made or changed. The store fills it in.
	Changed time.Time `json:"changed,omitzero"`
	// Spent is how far Rate is used up, as rules.RateRoom reads it. Only readers fill it in.
	Spent time.Time `json:"-"`
}

// GroupSettings are what may be said of a group. A field that is zero says nothing.
type GroupSettings struct {
	Parent string `json:"parent,omitempty" doc:"The group that it is in, which has no parent itself."`
	Weight int    `json:"weight,omitempty" minimum:"1" maximum:"1000" doc:"Its share of starts beside the other groups and queues of its parent; left out: 1."`
	Rate   Rate   `json:"rate,omitzero" doc:"How many tasks of all its queues together may start, over all nodes, in addition to the rate of each queue; left out: no limit."`
	Paused bool   `json:"paused,omitempty" doc:"No task of its queues, and of the queues of its groups, starts. Running tasks continue."`
	Keep   Keep   `json:"keep,omitzero" doc:"The keep of the activity types of OSTE that are made in it. The keep of a queue counts, not that of its group."`

	SuccessURI    string `json:"success_uri,omitempty" doc:"The http or https address to which succeeded tasks of no plan, of the queues directly in it, are handed over once their keep is over; left out: they are deleted then."`
	DeadLetterURI string `json:"dead_letter_uri,omitempty" doc:"The same for tasks that failed, were stopped, or were lost."`
}

// MostWeight is the largest weight of a queue or a group.
const MostWeight = 1000

// WeightOf is the weight that a setting stands for. A weight of 0 is one that nobody set.
func WeightOf(weight int) int { return max(1, weight) }

// CheckWeight returns why a weight that was given is none.
func CheckWeight(weight int) error {
	if weight < 1 || weight > MostWeight {
		return fmt.Errorf("weight is %d; it is 1 to %d (to let nothing start, pause the group, or give the queue 0 threads)", weight, MostWeight)
	}
	return nil
}

// CheckGroupName returns why no group can have the name. The rules are those of names of queues.
// The word none is no name, because commands mean no group by it.
func CheckGroupName(name string) error {
	if name == "none" {
		return errors.New("none stands for no group; choose another name")
	}
	return CheckQueueName(name)
}

// Check returns why the settings are none, whatever other groups there are.
func (s *GroupSettings) Check() error {
	if s.Weight != 0 {
		if err := CheckWeight(s.Weight); err != nil {
			return err
		}
	}
	if err := s.Rate.Check(); err != nil {
		return fmt.Errorf("rate: %w", err)
	}
	return nil
}

// Same reports whether both settings say the same.
func (s *GroupSettings) Same(other *GroupSettings) bool {
	a, b := *s, *other
	a.Weight, b.Weight = WeightOf(a.Weight), WeightOf(b.Weight)
	return a == b
}

// Text returns the group as JSON, without Spent.
func (g *Group) Text() string {
	b, _ := json.Marshal(g) // each field has JSON
	return string(b)
}

// GroupOf reads what Text wrote. A field that cannot be read says nothing.
func GroupOf(name, text string) (g Group) {
	readFields(text, &g)
	g.Name = name
	if g.GroupSettings.Check() != nil {
		g.Weight, g.Rate = 0, Rate{}
	}
	return g
}

// readFields reads a JSON object of which another program, or a person, may have written fields that
// cannot be read: they are left out.
func readFields[T any](text string, into *T) {
	if text == "" {
		return
	}
	whole := *into
	if json.Unmarshal([]byte(text), &whole) == nil { // as nearly always
		*into = whole
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) != nil {
		return
	}
	for name, value := range fields {
		one, _ := json.Marshal(map[string]json.RawMessage{name: value}) // it was read from JSON
		with := *into
		if json.Unmarshal(one, &with) == nil {
			*into = with
		}
	}
}
