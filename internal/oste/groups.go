package oste

import (
	"cmp"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Company is a group without a parent.
type Company struct {
	ID       string `json:"id,omitempty" doc:"Its name."`
	Name     string `json:"Name,omitempty" doc:"Unique: at most 200 letters, digits, _ and -, without - in front."`
	QoSLevel int    `json:"QoSLevel,omitempty" minimum:"1" maximum:"1000" doc:"Its share of starts beside the other companies; left out: 1."`
}

// CompanyOf returns the company that a group is. It reports false for a group that is none.
func CompanyOf(g *plan.Group) (Company, bool) {
	_, name, ok := split(g.Name, companyDepth)
	return Company{ID: g.Name, Name: name, QoSLevel: plan.WeightOf(g.Weight)}, ok && g.Parent == ""
}

// Apply changes a group to what the company says. A group without a name gets its name.
func (c *Company) Apply(g *plan.Group) error {
	if g.Name == "" {
		if err := checkName("company", c.Name, c.Name); err != nil {
			return err
		}
		g.Name = c.Name
	}
	g.Weight = c.QoSLevel
	return cmp.Or(same("id", c.ID, g.Name), same("Name", c.Name, g.Name))
}

// A Solution is a group in the group of its company.
type Solution struct {
	ID               string `json:"id,omitempty" doc:"The names of its company and its own, with a dot between them."`
	Company          string `json:"Company,omitempty" doc:"The id of its company."`
	Name             string `json:"Name,omitempty" doc:"Unique in its company; the rules are those of its name."`
	QoSLevel         int    `json:"QoSLevel,omitempty" minimum:"1" maximum:"1000" doc:"Its share of starts beside the other solutions of its company; left out: 1."`
	SuccessPeriod    int    `json:"SuccessPeriod,omitempty" minimum:"1" maximum:"36500" doc:"The number of days for which its successful activities stay; left out: they stay."`
	SuccessUri       string `json:"SuccessUri,omitempty" maxLength:"8192" doc:"The address to which its successful activities are sent once their period is over; left out: they are deleted then."`
	DeadLetterPeriod int    `json:"DeadLetterPeriod,omitempty" minimum:"1" maximum:"36500" doc:"The number of days for which its failed activities stay; left out: they stay."`
	DeadLetterUri    string `json:"DeadLetterUri,omitempty" maxLength:"8192" doc:"The address to which its failed activities are sent once their period is over; left out: they are deleted then."`
}

// SolutionOf returns the solution that a group is. It reports false for a group that is none.
func SolutionOf(g *plan.Group) (Solution, bool) {
	company, name, ok := split(g.Name, solutionDepth)
	return Solution{
		ID: g.Name, Company: company, Name: name, QoSLevel: plan.WeightOf(g.Weight),
		SuccessPeriod: daysOf(g.Keep.Succeeded), DeadLetterPeriod: daysOf(g.Keep.Failed), SuccessUri: g.SuccessURI, DeadLetterUri: g.DeadLetterURI,
	}, ok && g.Parent == company
}

// Apply changes a group to what the solution says. A group without a name gets its name and its parent.
func (s *Solution) Apply(g *plan.Group) error {
	if g.Name == "" {
		if _, _, ok := split(s.Company, companyDepth); !ok {
			return mistake("Company", "%q is not the id of a company; give the name of one", s.Company)
		}
		if err := checkName("solution", s.Name, id(s.Company, s.Name)); err != nil {
			return err
		}
		g.Name, g.Parent = id(s.Company, s.Name), s.Company
	}
	company, name, _ := split(g.Name, solutionDepth)
	dead := periodOf(s.DeadLetterPeriod)
	g.SuccessURI, g.DeadLetterURI = s.SuccessUri, s.DeadLetterUri
	g.Weight, g.Keep = s.QoSLevel, plan.Keep{Succeeded: periodOf(s.SuccessPeriod), Failed: dead, Terminated: dead, Orphaned: dead}
	return cmp.Or(same("id", s.ID, g.Name), same("Company", s.Company, company), same("Name", s.Name, name))
}

const day = 24 * time.Hour

// forEver is the keep of activities that stay.
const forEver = plan.Duration(-time.Second)

// periodOf returns a number of days as a keep of a group; 0: none.
func periodOf(days int) plan.Duration { return plan.Duration(time.Duration(days) * day) }

// daysOf returns a keep in whole days, rounded up; 0: none.
func daysOf(d plan.Duration) int { return int((max(0, time.Duration(d)) + day - 1) / day) }

// KeepIn returns the keep of an activity type in the group of a solution. Without a period its
// activities stay. Cancelled activities are no successes and no dead letters: the default holds.
func KeepIn(g *plan.Group) plan.Keep {
	stays := func(d plan.Duration) plan.Duration {
		if d <= 0 {
			return forEver
		}
		return d
	}
	k := g.Keep
	return plan.Keep{Succeeded: stays(k.Succeeded), Failed: stays(k.Failed), Terminated: stays(k.Terminated), Orphaned: stays(k.Orphaned), Cancelled: k.Cancelled}
}
