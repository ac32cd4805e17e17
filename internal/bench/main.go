// Command bench measures, in one run on one machine, every figure that Sluice promises, and prints
// them as one table. Each line has the figure and its peer: the same work done on the bare
// database, by ninja, or by an ideal schedule. It has their ratio, and says whether the figure
// reaches its floor.
//
//	go run ./internal/bench                     everything; about a quarter of an hour
//	go run ./internal/bench -quick              small sizes: a smoke test, whose floors are shown but not judged
//	go run ./internal/bench -list               the scenarios
//	go run ./internal/bench -run '^noop/sqlite' -cpuprofile /tmp/prof
//
// A scenario that needs a MongoDB server takes it from SLUICE_TEST_MONGODB. ninja and chromium are
// used if they are installed. The line of a scenario says what is missing. Each scenario is in the
// file of its group, and floors.go has all floors.
//
// Figures are medians of several repetitions, each on a new database, with the peer measured in
// turn with them. The many contests of clusters are measured once. A scenario that misses a floor
// is measured again at the end, at most twice. Its lines are then those of the last time, and note
// the earlier misses.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"

	"github.com/seed-1177d267/sluice/internal/runner"
)

func main() {
	runner.GuardMain()
	asksMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := 0
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		code = childMain(ctx, os.Args[1], os.Stdin, os.Stdout, os.Stderr)
	} else {
		code = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// run measures and prints; it returns the exit code: 0, 1 if a floor was missed or a scenario failed, 2 for bad usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pattern := flags.String("run", "", "measure only the scenarios whose names match this regular `expression`")
	list := flags.Bool("list", false, "name the scenarios and what they measure, and measure nothing")
	flags.BoolVar(&o.quick, "quick", false, "small sizes and one repetition; floors are not judged")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	flags.IntVar(&o.reps, "reps", 0, "repetitions of each scenario (default: its own number, 3 to 9)")
	flags.IntVar(&o.again, "again", 2, "how many more times to measure, at the end, a scenario that misses a floor; what it missed before is noted")
	flags.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile of each scenario into this `folder`")
	flags.StringVar(&o.memProfile, "memprofile", "", "write a profile of all that each scenario allocated into this `folder`")
	flags.StringVar(&o.dir, "dir", "", "where to make scratch files: the disk to measure (default: the system's temporary folder)")
	flags.StringVar(&o.sluice, "sluice", "", "the sluice `binary` to measure (default: built from the source)")
	flags.StringVar(&o.mongodb, "mongodb", os.Getenv("SLUICE_TEST_MONGODB"), "`URI` of a MongoDB server (default: SLUICE_TEST_MONGODB)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var err error
	if o.only, err = regexp.Compile(*pattern); err != nil || flags.NArg() > 0 {
		fmt.Fprintf(stderr, "bench: bad usage: -run %q: %v; arguments %q\n", *pattern, err, flags.Args())
		return 2
	}
	all := scenarios()
	if *list {
		for _, s := range all {
			fmt.Fprintf(stdout, "%-22s %s\n", s.name, s.about)
		}
		return 0
	}
	b, err := newBench(ctx, o, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	defer b.close()
	r := b.measure(ctx, all)
	if o.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.print(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return r.exitCode()
}

// scenarios lists all, in the order of the table.
func scenarios() []scenario {
	return slices.Concat(
		noopScenarios(), outsideScenarios(), httpScenarios(), execScenarios(), discoScenarios(), hopScenarios(), runnerScenarios(), busyScenarios(), fanScenarios(), waitingScenarios(),
		largeScenarios(), makespanScenarios(), idleScenarios(), reportingScenarios(), servedScenarios(), pagesScenarios(), clusterScenarios(), buildScenarios(),
	)
}
