package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
)

// onDisbatch marks commands, as their group, and flags that only a reader who knows Disbatch needs. "sluice help disbatch" lists them.
const onDisbatch = "disbatch"

// forDisbatch marks flags of a command as onDisbatch.
func forDisbatch(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, onDisbatch, nil) // the flag is there
	}
}

func isForDisbatch(f *pflag.Flag) bool {
	_, ok := f.Annotations[onDisbatch]
	return ok
}

// wrapped breaks a text into lines of at most so many columns. All but the first begin with so many blanks.
func wrapped(text string, columns, indent int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		w := cells.Width(word)
		switch {
		case i == 0:
		case used+1+w > columns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += w
	}
	return b.String()
}

// paragraphs breaks each paragraph of a text. A line that is indented stays one, with what follows the first gap of it aligned.
func paragraphs(text string, columns int) string {
	var out []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if !strings.HasPrefix(paragraph, " ") {
			out = append(out, wrapped(paragraph, columns, 0))
			continue
		}
		var lines []string
		for line := range strings.SplitSeq(paragraph, "\n") {
			lines = append(lines, entry(line, columns))
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return strings.Join(out, "\n\n") + "\n"
}

// entry breaks a line of a list, as "  name    text", under its second column.
func entry(line string, columns int) string {
	text := strings.TrimLeft(line, " ")
	at := len(line) - len(text)
	name, rest, ok := strings.Cut(text, "  ")
	if !ok {
		return line
	}
	rest = strings.TrimLeft(rest, " ")
	indent := at + len(text) - len(rest)
	return strings.Repeat(" ", at) + cells.Pad(name, indent-at) + hanging(rest, columns, indent)
}

// hanging breaks a text that begins at a column. Further lines begin at the same column.
func hanging(text string, columns, at int) string {
	lines := strings.Split(wrapped(text, max(columns-at, 20), 0), "\n")
	return strings.Join(lines, "\n"+strings.Repeat(" ", at))
}

// help prints what a command is for, how it is used, and its flags.
func (a *app) help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	wide := view.Columns(w)
	if cmd.Name() == onDisbatch && !cmd.Runnable() {
		fmt.Fprint(w, a.disbatchTopic(cmd.Root(), wide))
		return
	}
	fmt.Fprint(w, paragraphs(text, wide)+"\n"+usage(cmd, wide))
}

// usage says how a command is used: its words, examples, commands and flags.
func usage(cmd *cobra.Command, wide int) string {
	var parts []string
	part := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			parts = append(parts, title+"\n"+text+"\n")
		}
	}
	if cmd.HasAvailableSubCommands() {
		part("Usage:", "  "+cmd.CommandPath()+" COMMAND")
	} else {
		part("Usage:", "  "+wrapped(cmd.UseLine(), wide-2, 6))
	}
	part("Examples:", cmd.Example)
	for _, g := range cmd.Groups() {
		if g.ID != onDisbatch {
			part(g.Title, commands(cmd, g.ID, wide))
		}
	}
	part("Commands:", commands(cmd, "", wide))
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	var marked, global []string
	add := func(f *pflag.Flag) {
		switch {
		case f.Hidden:
		case isForDisbatch(f):
			marked = append(marked, "--"+f.Name)
		default:
			own.AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	part("Flags:", own.FlagUsagesWrapped(wide))
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !isForDisbatch(f) {
			global = append(global, "--"+f.Name)
		}
	})
	if cmd == cmd.Root() {
		var topics []string
		for _, c := range cmd.Commands() {
			if c.IsAdditionalHelpTopicCommand() {
				topics = append(topics, fmt.Sprintf("  sluice help %-10s %s", c.Name(), c.Short))
			}
		}
		part("More:", strings.Join(append(topics, "  sluice help COMMAND    How a command is used, with examples"), "\n"))
		return strings.Join(parts, "\n")
	}
	var last string
	if len(marked) > 0 {
		last += wrapped("Flags for Disbatch: "+strings.Join(marked, ", ")+`; see "sluice help disbatch".`, wide, 2) + "\n"
	}
	if len(global) > 0 {
		last += wrapped("Global flags: "+strings.Join(global, ", ")+`; see "sluice --help".`, wide, 2) + "\n"
	}
	if last != "" {
		parts = append(parts, last)
	}
	return strings.Join(parts, "\n")
}

// commands lists the commands of a group, "" for those of none.
func commands(cmd *cobra.Command, group string, wide int) string {
	var b strings.Builder
	var listed []*cobra.Command
	name := 11
	for _, c := range cmd.Commands() {
		if c.GroupID == group && (c.IsAvailableCommand() || c.Name() == "help") {
			listed = append(listed, c)
			name = max(name, len(c.Name()))
		}
	}
	for _, c := range listed {
		fmt.Fprintf(&b, "  %-*s %s\n", name, c.Name(), hanging(c.Short, wide, name+3))
	}
	return b.String()
}

// disbatchCommand is the help topic for who knows Disbatch.
func disbatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   onDisbatch,
		Short: "Sluice together with Disbatch 4, or in its place",
		Long: "Sluice together with Disbatch 4, or in its place. It works on a database of " +
			"Disbatch 4, together with Disbatch's own nodes, web server and command line, and " +
			"reads its configuration file.",
	}
}

// disbatchTopic is the text of that topic. Its commands and flags are found by their marks.
func (a *app) disbatchTopic(root *cobra.Command, wide int) string {
	var b strings.Builder
	b.WriteString(paragraphs(disbatchCommand().Long, wide))
	b.WriteString("\nExamples, with the file /etc/disbatch/config.json:\n" +
		"  sluice config check\n  sluice den --config /etc/disbatch/config.json --name mig01-sluice\n" +
		"\nCommands, by Disbatch's names:\n")
	line := func(name, text string) { fmt.Fprintf(&b, "  %-15s %s\n", name, hanging(text, wide, 18)) }
	for _, c := range root.Commands() {
		for _, name := range c.Aliases {
			line("sluice "+name, fmt.Sprintf("another name for %q: %s", c.CommandPath(), sentence(c.Short)))
		}
	}
	for _, c := range root.Commands() {
		if c.GroupID == onDisbatch {
			line("sluice "+c.Name(), sentence(c.Short))
		}
	}
	flags := func(title string, set *pflag.FlagSet) {
		some := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.VisitAll(func(f *pflag.Flag) {
			if isForDisbatch(f) && !f.Hidden {
				some.AddFlag(f)
			}
		})
		if some.HasFlags() {
			fmt.Fprintf(&b, "\n%s\n%s", title, some.FlagUsagesWrapped(wide))
		}
	}
	flags("Flags of every command:", root.PersistentFlags())
	for _, c := range root.Commands() {
		if c.GroupID != onDisbatch {
			flags(fmt.Sprintf("Flags of %q:", c.CommandPath()), c.LocalNonPersistentFlags())
		}
	}
	b.WriteString("\nDocuments:\n")
	for _, d := range [][2]string{
		{"docs/dci-disbatch.md", "the routes of Disbatch's web server"}, {"docs/config.md", "its configuration file"},
		{"docs/mixed-clusters.md", "nodes of both on one database"}, {"docs/balance.md", "QueueBalance"}, {"docs/users.md", "its users on MongoDB"},
	} {
		fmt.Fprintf(&b, "  %-23s %s\n", d[0], d[1])
	}
	return b.String()
}

// sentence begins a text with a small letter, so that it can follow a colon.
func sentence(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// oneLine takes the breaks out of what flags say: the help breaks lines itself.
func oneLine(cmd *cobra.Command) {
	join := func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "\n", " ") }
	cmd.Flags().VisitAll(join)
	cmd.PersistentFlags().VisitAll(join)
	for _, c := range cmd.Commands() {
		oneLine(c)
	}
}
