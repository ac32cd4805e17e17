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

// groupFlags are the flags that a group is made and changed with.
type groupFlags struct {
	parent, rate        string
	weight              int
	pause, resume       bool
	success, deadLetter string
	refuse              func(uri string) error // returns why finished tasks cannot be handed over there
}

func (f *groupFlags) add(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.parent, "parent", "", "the group that it is in, which has no parent itself; none takes it out")
	completeBy(cmd, "parent", a.completeGroupFlag)
	numberFlag(cmd, &f.weight, "weight", "", 1, "its share of starts beside the other groups and queues of its parent, 1 to 1000")
	flags.StringVar(&f.rate, "rate", "", "how many tasks of all its queues may start, over all nodes, as in 10/s or 600/1h,burst=20; none removes the limit")
	flags.BoolVar(&f.pause, "pause", false, "start no task of its queues, and of the queues of its groups; running tasks continue")
	flags.StringVar(&f.success, successURI, "", "the `URI` to which nodes hand over succeeded tasks of no plan of its queues, once their keep is over; none deletes them instead")
	flags.StringVar(&f.deadLetter, deadLetterURI, "", "the `URI` for those that failed, were stopped, or were lost")
	a.allowNetFlag(cmd)
	f.refuse = a.receiver()
}

// The flags for where finished tasks are handed over.
const (
	successURI    = "success-uri"
	deadLetterURI = "dead-letter-uri"
)

// uri reads where finished tasks are handed over.
func (f *groupFlags) uri(flag, word string) (string, error) {
	uri := groupWord(word)
	if uri == "" {
		return "", nil
	}
	if err := f.refuse(uri); err != nil {
		return "", usagef("--%s: %w", flag, err)
	}
	return uri, nil
}

// apply changes of a group what the flags say that were given.
func (f *groupFlags) apply(cmd *cobra.Command, s *plan.GroupSettings) (err error) {
	given := cmd.Flags().Changed
	if given("parent") {
		s.Parent = groupWord(f.parent)
	}
	if given("weight") {
		if s.Weight, err = f.weight, plan.CheckWeight(f.weight); err != nil {
			return usagef("--weight: %w", err)
		}
	}
	if given("rate") {
		if s.Rate, err = plan.ParseRate(f.rate); err != nil {
			return usagef("--rate: %w", err)
		}
	}
	if given(successURI) {
		if s.SuccessURI, err = f.uri(successURI, f.success); err != nil {
			return err
		}
	}
	if given(deadLetterURI) {
		if s.DeadLetterURI, err = f.uri(deadLetterURI, f.deadLetter); err != nil {
			return err
		}
	}
	if f.pause && f.resume {
		return usagef("--pause and --resume exclude each other; give one")
	}
	if f.pause || f.resume {
		s.Paused = f.pause
	}
	return nil
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
		for i := range groups {
			words = append(words, groups[i].Name+"\t"+groupSaid(&groups[i]))
		}
		return words, err
	})
}
