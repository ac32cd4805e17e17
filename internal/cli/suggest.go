package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/plan"
)

// withNearest adds to what is wrong with a plan the words that were perhaps meant, as a plan file's errors have them.
func withNearest(err error) error {
	problems, _ := errors.AsType[plan.Problems](err)
	for i := range problems {
		problems[i].Message += hint.Meant(problems[i].Word, problems[i].Known)
	}
	return err
}

// group makes a command that only holds others: alone it prints its help, and a word that it does not know is an error.
func group(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(children...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var known []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
				known = append(known, c.Name())
			}
		}
		more := otherwise(cmd, args[0])
		if more == "" && (cmd == cmd.Root() || !slices.Contains(ending, args[0])) {
			more = elsewhere(cmd.Root(), args[0])
		}
		more = cmp.Or(more, hint.Meant(args[0], known), fmt.Sprintf("; %q lists the commands", cmd.CommandPath()+" --help"))
		return usagef("%q is not a command of %q%s", args[0], cmd.CommandPath(), more)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// strict makes errors of what cobra's own commands, help and completion, answer with a usage and success: a word that is none of theirs.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			group(c)
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil || len(rest) == 0 {
					return err
				}
				return about.ValidateArgs(rest)
			}
		}
	}
}

// ending are commands that end or delete. A person who means a queue is not led to the commands for
// plans.
var ending = []string{"cancel", "delete", "prune"}

// elsewhere is the end of a message about a command that is not where it was looked for, but is one of other groups.
func elsewhere(root *cobra.Command, name string) string {
	var paths []string
	for _, group := range root.Commands() {
		for _, c := range append([]*cobra.Command{group}, group.Commands()...) {
			if c.Name() == name && c.IsAvailableCommand() {
				paths = append(paths, fmt.Sprintf("%q", c.CommandPath()))
			}
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(paths, " or ") + "?"
}

// otherWords are commands by the names that other tools have for them, or for what is nearest to them.
var otherWords = map[string]string{
	"plan abort": "plan cancel", "plan describe": "plan status", "plan info": "plan status", "plan kill": "plan cancel", "plan ls": "plan list",
	"plan remove": "plan delete", "plan restart": "plan retry", "plan resume": "plan run --resume", "plan rm": "plan delete", "plan show": "plan status",
	"plan start": "plan run", "plan stop": "plan cancel", "plan watch": "plan wait",
	"task abort": "task cancel", "task describe": "task show", "task kill": "task cancel", "task ls": "task list", "task restart": "task retry",
	"task change": "task set", "task edit": "task set", "task update": "task set",
	"task status": "task show", "task stop": "task cancel", "task tail": "task logs --follow", "task watch": "task logs --follow",
	"node ls": "node list", "queue ls": "queue list",
	"sluice agent": "worker", "sluice api": "serve", "sluice server": "serve", "sluice ui": "serve", "sluice web": "serve",
}

// otherwise is the end of a message about a command that other tools have by that name. At the top, where there are no such commands, plans
// are meant.
func otherwise(group *cobra.Command, word string) string {
	root := group.Root()
	if w, ok := otherWords[group.CommandPath()+" "+word]; ok && group == root {
		return fmt.Sprintf("; did you mean %q?", root.Name()+" "+w)
	}
	of := strings.TrimPrefix(group.CommandPath(), root.Name()+" ")
	if group == root {
		of = "plan"
	}
	if w, ok := otherWords[of+" "+word]; ok {
		return fmt.Sprintf("; did you mean %q?", root.Name()+" "+w)
	}
	return ""
}

// otherFlags are flags, some with their values, by the names that other tools have for them, of those
// commands that have them.
var otherFlags = map[string]string{
	"age": "keep", "before": "keep", "older-than": "keep", "concurrency": "threads", "jobs": "threads", "parallel": "threads", "workers": "threads",
	"arg": "param", "p": "param", "set": "param", "var": "param",
	"format": "output", "json": "output json", "output": "format",
}

// otherCommands are what does for a command what a flag of it does elsewhere.
var otherCommands = map[string]string{
	"plan run --background": "plan submit", "plan run --detach": "plan submit", "plan run --dry-run": "plan validate", "plan submit --dry-run": "plan validate",
	"plan submit --follow": "plan wait", "plan submit --wait": "plan wait", "plan status --watch": "plan wait", "plan status --follow": "plan wait",
}

// otherwiseFlag is the end of a message about a flag that other tools have by that name.
func otherwiseFlag(cmd *cobra.Command, name string) string {
	w := otherFlags[name]
	if flag, _, _ := strings.Cut(w, " "); cmd.Flags().Lookup(flag) != nil {
		return fmt.Sprintf("; did you mean --%s?", w)
	}
	root := cmd.Root().Name() + " "
	if w = otherCommands[strings.TrimPrefix(cmd.CommandPath(), root)+" --"+name]; w != "" {
		return fmt.Sprintf("; did you mean %q?", root+w)
	}
	return ""
}

// titled adds commands that the help lists under a title.
func titled(cmd *cobra.Command, id, title string, children ...*cobra.Command) {
	cmd.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range children {
		c.GroupID = id
	}
	cmd.AddCommand(children...)
}

// flagError says what is wrong with a flag, and which one was perhaps meant.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usagef("%w; %q lists the flags", err, cmd.CommandPath()+" --help")
	}
	dashes := "--"
	if unknown.GetSpecifiedShortnames() != "" {
		dashes = "-"
	}
	if more := otherwiseFlag(cmd, unknown.GetSpecifiedName()); more != "" {
		return usagef("%q has no flag %s%s%s", cmd.CommandPath(), dashes, unknown.GetSpecifiedName(), more)
	}
	if dashes == "--" {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if w := hint.Nearest(unknown.GetSpecifiedName(), known); w != "" {
			return usagef("%q has no flag --%s; did you mean --%s?", cmd.CommandPath(), unknown.GetSpecifiedName(), w)
		}
		return usagef("%q has no flag --%s; %q lists the flags", cmd.CommandPath(), unknown.GetSpecifiedName(), cmd.CommandPath()+" --help")
	}
	if file := "-" + unknown.GetSpecifiedShortnames(); strings.Contains(cmd.Use, "FILE") {
		if _, failed := os.Stat(file); failed == nil {
			return usagef("%w; to name the file of this name: %s", err, hint.Quoted("./"+file))
		}
	}
	return usagef("%w; %q lists the flags", err, cmd.CommandPath()+" --help")
}

// byUsage has each command below one take the arguments that its usage names, unless it says otherwise, and shells complete them.
func (a *app) byUsage(cmd *cobra.Command) {
	names := map[string]cobra.CompletionFunc{"queue": a.completeQueueFlag, "group": a.completeGroupFlag, "schedule": a.completeSchedules}
	for _, c := range cmd.Commands() {
		a.byUsage(c)
		_, usage, _ := strings.Cut(c.Use, " ")
		if c.Args == nil && c.Runnable() {
			c.Args = asUsed
		}
		switch word := strings.Trim(usage, "{…"); {
		case c.ValidArgsFunction != nil:
		case strings.HasPrefix(word, "PLAN"):
			c.ValidArgsFunction = a.completePlan
		case word == "QUEUE":
			c.ValidArgsFunction = onlyFirst(a.completeQueueFlag)
		case word == "SOLUTION":
			c.ValidArgsFunction = onlyFirst(a.completeGroupFlag)
		case strings.HasPrefix(word, "NAME") && names[cmd.Name()] != nil && c.Name() != "create":
			c.ValidArgsFunction = onlyFirst(names[cmd.Name()])
		}
	}
}

// asUsed demands the arguments that the usage of a command names, and says which are missing. An empty one is none: it is mostly a variable of a
// shell that is not set, and must not mean the latest plan.
func asUsed(cmd *cobra.Command, args []string) error {
	_, usage, _ := strings.Cut(cmd.Use, " ")
	least, most := demanded(usage)
	switch {
	case len(args) < least:
		return usagef("%q needs %s; usage: %s", cmd.CommandPath(), missing(cmd, len(args)), cmd.UseLine())
	case most >= 0 && len(args) > most:
		return usagef("%q does not take %q; usage: %s", cmd.CommandPath(), args[most], cmd.UseLine())
	case slices.Contains(args[:least], ""):
		return usagef("an argument of %q is empty; if it comes from a variable, that is not set", cmd.CommandPath())
	}
	return nil
}

// demanded returns how many arguments a usage names at least, and at most; -1 is any number. In braces are choices.
func demanded(usage string) (least, most int) {
	if choices, ok := strings.CutPrefix(usage, "{"); ok {
		least = math.MaxInt
		for choice := range strings.SplitSeq(strings.TrimSuffix(choices, "}"), " | ") {
			l, m := demanded(choice)
			least, most = min(least, l), max(most, m)
		}
		return least, most
	}
	words := strings.Fields(usage)
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case strings.HasPrefix(word, "--"):
			i++ // the value of the flag
			continue
		case !strings.HasPrefix(word, "["):
			least++
		}
		if most++; words[i] == "[--" || strings.Contains(words[i], "…") {
			return least, -1
		}
	}
	return least, most
}

// noneBut demands no arguments; one that is there is perhaps what the flag takes.
func noneBut(flag string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usagef("%q does not take %q; did you mean %q?", cmd.CommandPath(), args[0], "--"+flag+" "+args[0])
	}
}

// missing returns what usage names behind the arguments that are there: a word, or a choice of several in braces.
func missing(cmd *cobra.Command, there int) string {
	_, usage, _ := strings.Cut(cmd.Use, " ")
	if strings.HasPrefix(usage, "{") {
		return usage[:strings.IndexByte(usage, '}')+1]
	}
	words := strings.Fields(usage)
	return words[min(there, len(words)-1)]
}
