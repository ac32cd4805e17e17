package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Group is a set of queues with limits that its queues share.
type Group struct {
	Name string `json:"name"`
	plan.GroupSettings
	Changed time.Time `json:"changed"`
	Spent   time.Time `json:"rate_spent,omitzero" doc:"When all that has started would be over at the pace of the rate. The next task starts once that is less than burst starts ahead."`
}

// GroupOf writes a group.
func GroupOf(g *plan.Group) Group {
	return Group{Name: g.Name, GroupSettings: g.GroupSettings, Changed: g.Changed, Spent: g.Spent}
}

// Domain is the group that was written.
func (g *Group) Domain() plan.Group {
	return plan.Group{Name: g.Name, GroupSettings: g.GroupSettings, Changed: g.Changed, Spent: g.Spent}
}

// A NewGroup is a group that is to be made.
type NewGroup struct {
	Name string `json:"name" minLength:"1" doc:"At most 200 letters, digits, _, -, colons and dots, without - in front, as the name of a queue; not none."`
	plan.GroupSettings
}

// A GroupsAnswer is the groups of a store.
type GroupsAnswer struct {
	Groups []Group `json:"groups" doc:"By name."`
}

// GroupTag is the ETag of what may be set of a group.
func GroupTag(g *plan.Group) string {
	settings := g.GroupSettings
	settings.Weight = plan.WeightOf(settings.Weight)
	text, _ := json.Marshal(settings) // none of its fields can fail
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}
