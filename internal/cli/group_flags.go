package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// noGroup is the word for no group.
const noGroup = "none"

// groupWord reads the name of a group, or none.
func groupWord(word string) string {
	if word == noGroup {
		return ""
	}
	return word
}

// The flags for where finished tasks are handed over.
const (
	successURI    = "success-uri"
	deadLetterURI = "dead-letter-uri"
)

// groupFlags adds the flags that a group is made and, with resume, changed with.
func (a *app) groupFlags(cmd *cobra.Command, resume bool) *settings[plan.GroupSettings] {
	var parent, rate, success, deadLetter string
	var weight int
	var pause, unpause bool
	f, flags := &settings[plan.GroupSettings]{}, cmd.Flags()
	flags.StringVar(&parent, "parent", "", "the group that it is in, which has no parent itself; none takes it out")
	f.on("parent", func(s *plan.GroupSettings) error { s.Parent = groupWord(parent); return nil })
	completeBy(cmd, "parent", a.completeGroupFlag)
	numberFlag(cmd, &weight, "weight", "", 1, "its share of starts beside the other groups and queues of its parent, 1 to 1000")
	f.on("weight", func(s *plan.GroupSettings) error { s.Weight = weight; return plan.CheckWeight(weight) })
	flags.StringVar(&rate, "rate", "", "how many tasks of all its queues may start, over all nodes, as in 10/s or 600/1h,burst=20; none removes the limit")
	f.on("rate", func(s *plan.GroupSettings) (err error) { s.Rate, err = plan.ParseRate(rate); return err })
	flags.BoolVar(&pause, "pause", false, "start no task of its queues, and of the queues of its groups; running tasks continue")
	f.on("pause", func(s *plan.GroupSettings) error {
		if pause && unpause {
			return usagef("--pause and --resume exclude each other; give one")
		}
		s.Paused = pause || s.Paused
		return nil
	})
	if resume {
		flags.BoolVar(&unpause, "resume", false, "let its tasks start again")
		f.on("resume", func(s *plan.GroupSettings) error { s.Paused = s.Paused && !unpause; return nil })
	}
	uri := func(word *string, to func(*plan.GroupSettings) *string) func(*plan.GroupSettings) error {
		return func(s *plan.GroupSettings) error {
			if *to(s) = groupWord(*word); *to(s) == "" {
				return nil
			}
			return a.receiver()(*to(s)) // why finished tasks cannot be handed over there
		}
	}
	flags.StringVar(&success, successURI, "", "the `URI` to which nodes hand over succeeded tasks of no plan of its queues, once their keep is over; none deletes them instead")
	f.on(successURI, uri(&success, func(s *plan.GroupSettings) *string { return &s.SuccessURI }))
	flags.StringVar(&deadLetter, deadLetterURI, "", "the `URI` for those that failed, were stopped, or were lost")
	f.on(deadLetterURI, uri(&deadLetter, func(s *plan.GroupSettings) *string { return &s.DeadLetterURI }))
	a.allowNetFlag(cmd)
	return f
}

// A groupEntry is a group in listings: as the API has it, with what is below it.
type groupEntry struct {
	api.Group
	State  string   `json:"state"`
	by     string   // the parent by which it is paused, if it is not itself
	Queues []string `json:"queues"`
	Queued int      `json:"queued"`
	Active int      `json:"active"`
}

// groupEntries reads the groups, by name, and counts what is in the queues of each and of its groups.
func groupEntries(ctx context.Context, st store.Reader) ([]groupEntry, error) {
	groups, err := st.Groups(ctx)
	if err != nil || len(groups) == 0 {
		return []groupEntry{}, err
	}
	queues, err := st.Queues(ctx)
	if err == nil {
		err = st.CountQueues(ctx, queues)
	}
	entries, of := make([]groupEntry, len(groups)), map[string]*groupEntry{}
	for i := range groups {
		e := &entries[i]
		*e = groupEntry{Group: api.GroupOf(&groups[i]), State: "open", Queues: []string{}}
		of[e.Name] = e
		if g := rules.PausedGroup(rules.GroupsOf(groups, e.Name)); g != nil {
			if e.State = "paused"; g.Name != e.Name {
				e.by = g.Name
			}
		}
	}
	for i := range queues {
		q := &queues[i]
		for k, g := range rules.GroupsOf(groups, q.Group) {
			e := of[g.Name]
			if k == 0 {
				e.Queues = append(e.Queues, q.Name)
			}
			e.Queued, e.Active = e.Queued+q.Queued, e.Active+q.Active
		}
	}
	return entries, err
}

// findGroup returns all groups, and the one of that name.
func findGroup(ctx context.Context, st store.Reader, name string) ([]plan.Group, plan.Group, error) {
	groups, err := st.Groups(ctx)
	if err != nil {
		return nil, plan.Group{}, err
	}
	if in := rules.GroupsOf(groups, name); in != nil {
		return groups, *in[0], nil
	}
	return nil, plan.Group{}, rules.NoGroup(name)
}

// changeGroup sets some settings of a group. It keeps the others, even if somebody else sets them
// meanwhile.
func changeGroup(ctx context.Context, st store.Store, name string, set func(*plan.GroupSettings) error) (plan.Group, error) {
	const tries = 10
	for try := 1; ; try++ {
		groups, was, err := findGroup(ctx, st, name)
		if err != nil {
			return was, err
		}
		g := was
		err = set(&g.GroupSettings)
		if err == nil {
			err = rules.CheckGroup(groups, &g)
		}
		if err != nil {
			return g, err
		}
		if err := st.PutGroup(ctx, was, g); !errors.Is(err, plan.ErrConflict) || try == tries {
			return g, err
		}
	}
}

// groupSaid is what a group says, for people.
func groupSaid(g *plan.Group) string {
	text := fmt.Sprintf("weight %d", plan.WeightOf(g.Weight))
	if g.Parent != "" {
		text = "parent " + g.Parent + ", " + text
	}
	if g.Rate.Starts > 0 {
		text += ", rate " + g.Rate.String()
	}
	if g.SuccessURI != "" {
		text += ", success URI " + g.SuccessURI
	}
	if g.DeadLetterURI != "" {
		text += ", dead letter URI " + g.DeadLetterURI
	}
	if g.Paused {
		text += ", and is paused"
	}
	return text
}

// completeGroupFlag offers the names of groups.
func (a *app) completeGroupFlag(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.lookUp(cmd, func(ctx context.Context, st store.Store) (words []string, err error) {
		groups, err := st.Groups(ctx)
		return api.Each(groups, func(g *plan.Group) string { return g.Name + "\t" + groupSaid(g) }), err
	})
}
