package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/program"
)

// checkEmpty refuses a flag that is given without a value, as --needs "$id" is if id is not set. It
// would be taken for one that is not given. words are the arguments of the program.
func checkEmpty(flags *pflag.FlagSet, words []string) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if text := f.Value.String(); text != "" && (text != "[]" || f.Value.Type() == "string") || err != nil {
			return
		}
		remedy := ""
		if f.Annotations[removable] != nil {
			if slices.Contains(words, "--"+f.Name+"=") {
				return
			}
			remedy = fmt.Sprintf("; --%s= removes the setting", f.Name)
		}
		err = usagef("--%s is empty; if it comes from a variable, that is not set%s", f.Name, remedy)
	})
	return err
}

// removable is the annotation of flags of lists that remove a setting as --NAME=. A variable that is
// not set makes --NAME "" of --NAME "$names".
const removable = "removable"

// mayRemove lets the flags of a command remove their settings.
func mayRemove(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		f := cmd.Flags().Lookup(name)
		f.Usage += fmt.Sprintf("; --%s= removes the setting", name)
		f.Annotations = map[string][]string{removable: {}}
	}
}

// A listFlag takes values that stand on lines of their own as well, as $(…) prints them. The flag of
// pflag reads the first line alone.
type listFlag struct{ pflag.Value }

// Set implements pflag.Value.
func (f listFlag) Set(text string) error {
	return f.Value.Set(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", ","))
}

// takeLines lets every flag of a list of a command, and of those below it, be a listFlag.
func takeLines(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "stringSlice" {
			f.Value, f.DefValue = listFlag{f.Value}, strings.Trim(f.DefValue, "[]")
		}
	})
	for _, c := range cmd.Commands() {
		takeLines(c)
	}
}

// A choice is a flag that takes one of several words.
type choice struct {
	value string
	words []string
}

func (c *choice) String() string    { return c.value }
func (c *choice) choices() []string { return c.words }
func (c *choice) Type() string      { return strings.Join(c.words, "|") }

// Set implements pflag.Value.
func (c *choice) Set(word string) error {
	if slices.Contains(c.words, word) {
		c.value = word
		return nil
	}
	return fmt.Errorf("it is one of %s%s", strings.Join(c.words, ", "), hint.Meant(word, c.words))
}

// completeChoices lets shells complete the words of every flag that is a choice.
func completeChoices(cmd *cobra.Command) {
	complete := func(f *pflag.Flag) {
		if c, ok := f.Value.(interface{ choices() []string }); ok {
			completeWords(cmd, f.Name, c.choices())
		}
	}
	cmd.LocalFlags().VisitAll(complete)
	for _, c := range cmd.Commands() {
		completeChoices(c)
	}
}

// completeWords lets shells complete the words of a flag.
func completeWords(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// A format is how a command prints. Its first word is the form for people.
type format struct{ choice }

// Set implements pflag.Value. Every command takes both text and table for the form for people.
func (f *format) Set(word string) error {
	if word == "text" || word == "table" {
		word = f.words[0]
	}
	return f.choice.Set(word)
}

// outputFlag gives the command its --output.
func outputFlag(cmd *cobra.Command) *format {
	f := &format{choice{"table", []string{"table", "json"}}}
	cmd.Flags().VarP(f, "output", "o", "how to print it")
	return f
}

// wideFlag is outputFlag for a listing that has more columns than fit a plain terminal.
func wideFlag(cmd *cobra.Command) *format {
	f := &format{choice{"table", []string{"table", "wide", "json"}}}
	cmd.Flags().VarP(f, "output", "o", "how to print it; wide: a table with ids")
	return f
}

func (f *format) wide() bool { return f.value == "wide" }
func (f *format) json() bool { return f.value == "json" }

// threadsFlag gives a command that starts a node its --threads; as many as there are CPUs, if it is not given.
func threadsFlag(cmd *cobra.Command, threads *int) {
	*threads = cpus()
	parse := parseWithin(1, plan.MaxThreads, fmt.Sprintf("a node runs 1 to %d tasks at once", plan.MaxThreads))
	cmd.Flags().VarP(&value[int]{threads, "int", parse, strconv.Itoa}, "threads", "j", "how many tasks run at once, at most 1,000,000; by default the number of CPUs")
}

// numberFlag gives a command a flag that takes a whole number.
func numberFlag(cmd *cobra.Command, n *int, name, short string, of int, usage string) {
	*n = of
	parse := parseWithin(math.MinInt, math.MaxInt, "it is a whole number")
	cmd.Flags().VarP(&value[int]{n, "int", parse, strconv.Itoa}, name, short, usage)
}

// attemptsFlag gives a command that adds a task its --attempts, which are those of a plan file.
func attemptsFlag(cmd *cobra.Command, attempts *int, usage string) {
	parse := func(word string) (int, error) { return rules.ParseCount("attempts", word, math.MaxInt32) }
	cmd.Flags().Var(&value[int]{attempts, "int", parse, strconv.Itoa}, "attempts", usage)
}

// keyFlag gives a command that submits a plan its --key.
func keyFlag(cmd *cobra.Command, key *string, usage string) {
	parse := func(word string) (string, error) {
		if len(word) > 255 {
			return "", errors.New("it has at most 255 bytes")
		}
		return word, nil
	}
	cmd.Flags().Var(&value[string]{key, "string", parse, func(key string) string { return key }}, "key", usage)
}

func cpus() int { return runtime.GOMAXPROCS(0) }

// checkUTF8 refuses a word that tasks would not get as it is given.
func checkUTF8(flag, word string) error {
	if !utf8.ValidString(word) {
		return usagef("%s %q is not UTF-8, and tasks would get other bytes; put the value into a file and give its name", flag, word)
	}
	return nil
}

// pairs reads words like NAME=VALUE.
func pairs(flag string, words []string) (map[string]string, error) {
	values := make(map[string]string, len(words))
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" {
			return nil, usagef("%s %s: write NAME=VALUE", flag, w)
		}
		if _, twice := values[name]; twice {
			return nil, usagef("%s %s is given twice", flag, name)
		}
		if err := checkUTF8(flag, w); err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

// jsonObject checks that a flag's value is a JSON object.
func jsonObject(flag, text string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return nil, usagef(`%s is not a JSON object, as in '{"run": "date"}': %s`, flag, text)
	}
	if err := checkUTF8(flag, text); err != nil {
		return nil, err
	}
	if name := jsontext.Twice([]byte(text)); name != "" {
		return nil, usagef("%s has %q twice in one object; give it once", flag, name)
	}
	var all any
	if no, is := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal([]byte(text), &all)); is { // which the API does not take either
		return nil, usagef("%s: %s does not fit; write it as a text", flag, no.Value)
	}
	return json.RawMessage(text), nil
}

const failFastHelp = "start no more tasks after a failure, not even clean-ups; to run one later: sluice plan " +
	"retry PLAN TASK --run"

// gfsFlag adds the flag for where MongoDB keeps what tasks print. Disbatch's node gives its runners 1 for true.
func gfsFlag(cmd *cobra.Command) *choice {
	gfs := &choice{"", []string{string(protocol.GFSAuto), string(protocol.GFSAlways), string(protocol.GFSNever), "1", "0"}}
	cmd.Flags().Var(gfs, "gfs", "on MongoDB, whether output of tasks of no plan is kept in GridFS; auto: only if it is "+
		"too large for the task's document (default: the config file's, or auto)")
	return gfs
}

// gfsOf returns what the flag says, or else the configuration.
func gfsOf(flag *choice, conf *config.Config) protocol.GFS {
	switch flag.value {
	case "":
		return conf.GFS
	case "1":
		return protocol.GFSAlways
	case "0":
		return protocol.GFSNever
	}
	return protocol.GFS(flag.value)
}

// ruleWords are the rules of when, as a person types them.
func ruleWords() []string {
	return api.Each(rules.Whens(), func(w *plan.When) string { return string(*w) })
}

// pluginDirFlag gives a command its --plugin-dir.
func pluginDirFlag(cmd *cobra.Command, dirs *[]string) {
	cmd.Flags().StringArrayVar(dirs, "plugin-dir", nil, "a `DIR` of programs that are plugins; may be repeated")
	_ = cmd.MarkFlagDirname("plugin-dir") // the flag is there
}

// checkPluginDirs refuses folders that are not there, or cannot have plugins.
func checkPluginDirs(dirs []string) error {
	for _, dir := range dirs {
		if err := program.CheckFolder(dir); err != nil {
			return usagef("--plugin-dir: %v", err)
		}
	}
	return nil
}

// checkLease refuses the one lease that den.New takes for its default, in its words.
func checkLease(lease time.Duration) error {
	if lease == 0 {
		return usagef("a lease of 0s is too short for a beat each 1s; make it at least 3s")
	}
	return nil
}

const taskHelp = "A task is named by two words, PLAN TASK, or by its id or the first digits of it. " + planHelp

// planHelp is how a plan is named, for the help of every command that takes one.
const planHelp = "PLAN is a plan's name (its latest run), name#3 (its third), its id, or the first digits of its id."
