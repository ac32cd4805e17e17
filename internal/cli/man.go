package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand is hidden: packages call it as they are built.
func manCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages into a folder", Hidden: true,
		Long: "Write a manual page for each command into a folder, which has to exist.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.writeManuals(args[0], cmd.Root())
		},
	}
}

// writeManuals writes the page of a command, and those of the commands below it.
func (a *app) writeManuals(dir string, cmd *cobra.Command) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(manual(cmd, a.version())), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.Hidden || !c.IsAvailableCommand() {
			continue
		}
		if err := a.writeManuals(dir, c); err != nil {
			return err
		}
	}
	return nil
}

// manual returns the manual page of a command, in the macros of man(7).
func manual(cmd *cobra.Command, b build) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	page := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	day, _, _ := strings.Cut(b.Date, "T")
	line(`.TH %q 1 %q %q "Sluice"`, strings.ToUpper(page), day, "sluice "+b.Version)
	line(".SH NAME\n%s \\- %s", roff(page), roff(sentence(cmd.Short)))
	line(".SH SYNOPSIS")
	if cmd.HasAvailableSubCommands() {
		line(`\fB%s\fR COMMAND`, roff(cmd.CommandPath()))
	} else {
		line(`\fB%s\fR%s`, roff(cmd.CommandPath()), roff(strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())))
	}
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	line(".SH DESCRIPTION")
	for i, paragraph := range strings.Split(strings.TrimSpace(long), "\n\n") {
		if i > 0 {
			line(".PP")
		}
		if strings.HasPrefix(paragraph, " ") {
			paragraph = ".nf\n" + roff(paragraph) + "\n.fi"
		} else {
			paragraph = roff(strings.Join(strings.Fields(paragraph), " "))
		}
		line("%s", paragraph)
	}
	if cmd.Example != "" {
		line(".SH EXAMPLES\n.nf\n%s\n.fi", roff(cmd.Example))
	}
	var below []string
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.IsAvailableCommand() {
			below = append(below, ".TP\n\\fB"+roff(c.CommandPath())+"\\fR\n"+roff(c.Short))
		}
	}
	if len(below) > 0 {
		line(".SH COMMANDS\n%s", strings.Join(below, "\n"))
	}
	flags := func(title string, set *pflag.FlagSet) {
		var entries []string
		set.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			value, text := pflag.UnquoteUsage(f)
			switch f.DefValue {
			case "", "[]", "false", "0", "0s":
			default:
				text += " (default " + f.DefValue + ")"
			}
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			entries = append(entries, strings.TrimRight(fmt.Sprintf(".TP\n\\fB%s\\fR %s", roff(name), roff(value)), " ")+"\n"+roff(text))
		})
		if len(entries) > 0 {
			line(".SH %s\n%s", title, strings.Join(entries, "\n"))
		}
	}
	flags("OPTIONS", cmd.LocalFlags())
	flags("GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.HasParent() {
		line(".SH SEE ALSO\n.BR %s (1)", roff(strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-")))
	}
	return out.String()
}

// roff escapes a text: backslashes, hyphens that people copy, and the lines that would be requests.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
