package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/folders"
	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/source"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/disco"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

// The job homes of "disco run" stay for a week. Each run deletes a few of those that are older.
const (
	keepDiscoRuns  = 7 * 24 * time.Hour
	cleanDiscoRuns = 1000
)

// discoHost is the host in the URLs of "disco run".
const discoHost = "localhost"

// A discoEnding is how a run ended, in JSON.
type discoEnding struct {
	End      string         `json:"end"` // done, error, fatal
	Attempts int            `json:"attempts"`
	Outputs  []disco.Output `json:"outputs"`
	Detail   string         `json:"detail"`
}

// discoSettings are the flags of "disco run".
type discoSettings struct {
	inputs   []string
	stage    string
	group    string
	attempts int
	env      []string
	jobFile  string
}

func discoRun(a *app) *cobra.Command {
	s := &discoSettings{}
	cmd := &cobra.Command{
		Use:   "run WORKER",
		Short: "Run one task of a worker here, without a store",
		Long: "Run one task of a worker of Disco here, without a store. Each MSG is a line of " +
			"standard output. The last line is a JSON object with end (done, error or fatal), " +
			"attempts, outputs ([label, location, size]) and detail. The exit status is 0, 1 or " +
			"2.\n" +
			"\n" +
			"Without --input, the inputs are read from standard input, one JSON object a line:\n" +
			"\n" +
			"  {\"label\": 0, \"urls\": [\"http://…\"]}   an input; the label may be \"all\"\n" +
			"  {\"input\": 0, \"urls\": [\"http://…\"]}   another replica of input 0\n" +
			"  {\"input\": 0, \"busy\": true}           another replica is being made\n" +
			"\n" +
			"The list is complete at the end of standard input. DISCO_* and DDFS_* variables " +
			"come from --env alone. Files of outputs stay for a week, below sluice/disco/run in " +
			"the folder for state. docs/disco.md explains workers.",
		Example: "  sluice disco run ./count_words --input 0=http://127.0.0.1:8000/text\n" +
			"  echo '{\"urls\": [\"raw://hello\"]}' | sluice disco run ./worker --stage reduce",
	}
	f := cmd.Flags()
	f.StringArrayVar(&s.inputs, "input", nil, "an input and its replicas, `LABEL=URL[,URL…]`; may be repeated")
	f.StringVar(&s.stage, "stage", "map", "the `NAME` of the stage")
	f.StringVar(&s.group, "group", "0,", "the group of the inputs, `LABEL,HOST`")
	numberFlag(cmd, &s.attempts, "attempts", "", 1, "how often the task is tried while it ends as error")
	f.StringArrayVar(&s.env, "env", nil, "a variable of the worker, `NAME=VALUE`; may be repeated")
	f.StringVar(&s.jobFile, "jobfile", "", "the job pack, a `FILE` (default: an empty one)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.runDisco(cmd.Context(), args[0], s) }
	return cmd
}

// runDisco runs the task, up to its last attempt.
func (a *app) runDisco(ctx context.Context, worker string, s *discoSettings) error {
	attempt, list, err := s.attempt(worker)
	if err != nil {
		return err
	}
	data, err := a.discoData(ctx)
	if err != nil {
		return err
	}
	if attempt.Home, err = data.Open(disco.JobName(filepath.Base(worker), plan.NewID(time.Now()).String()), s.jobFile); err != nil {
		return err
	}
	defer attempt.Home.Close()
	stop, release := a.stoppable(ctx, true)
	defer release()
	running, cancel := context.WithCancelCause(stop.ctx)
	defer cancel(nil)
	if s.inputs == nil {
		go func() { // a read of the terminal cannot be ended, and ends with the process
			if err := host.Feed(a.Stdin, list); err != nil {
				cancel(asUsage(err))
			}
		}()
	}
	attempt.Inputs, attempt.Hurry = list, stop.again
	attempt.Message = func(text string) { _ = a.say("%s", cells.Tame(text)) }
	attempt.Times, attempt.Grace = a.Disco.Times, a.Disco.Grace
	e := discoEnding{Outputs: []disco.Output{}}
	for e.Attempts < s.attempts && e.End != host.Done.String() && e.End != host.Fatal.String() && running.Err() == nil {
		e.Attempts++
		attempt.Number = e.Attempts
		o, err := attempt.Run(running)
		if err != nil {
			return asUsage(err)
		}
		e.End, e.Detail = o.End.String(), o.Detail
		e.Outputs = append(e.Outputs, o.Outputs...)
	}
	if wrong, ok := errors.AsType[*usageError](context.Cause(running)); ok {
		return wrong
	}
	e.End = cmp.Or(e.End, host.Error.String())
	text, err := json.Marshal(e)
	if err == nil {
		err = a.say("%s", text)
	}
	switch {
	case err != nil:
		return err
	case e.End == host.Done.String():
		return nil
	case e.End == host.Fatal.String():
		return &saidError{asUsage(errDiscoFatal)}
	case stop.ctx.Err() != nil:
		return &saidError{errInterrupted}
	}
	return &saidError{errDiscoFailed}
}

var (
	errDiscoFailed = errors.New("the worker failed")
	errDiscoFatal  = errors.New("the worker failed, and no attempt would end better")
)

// attempt makes of the flags what the host needs, and the list of inputs.
func (s *discoSettings) attempt(worker string) (*disco.Attempt, *host.List, error) {
	if runtime.GOOS == "windows" {
		return nil, nil, usagef("disco run: there are no workers of Disco on Windows; run it on Linux, macOS or BSD")
	}
	path, err := disco.CheckWorker(worker, "")
	if err != nil {
		return nil, nil, asUsage(err)
	}
	if s.attempts < 1 {
		return nil, nil, usagef("--attempts %d: give at least 1", s.attempts)
	}
	label, groupHost, _ := strings.Cut(s.group, ",")
	group, err := host.ParseLabel(json.RawMessage(label))
	if err != nil || group < 0 {
		return nil, nil, usagef("--group %s: write LABEL,HOST, as in 0,localhost; the label is an integer from 0 to %d", s.group, host.MaxLabel)
	}
	given := map[string]string{}
	for _, v := range s.env {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, nil, usagef("--env %s: write NAME=VALUE", v)
		}
		given[name] = value
	}
	if s.jobFile != "" {
		if info, err := os.Stat(s.jobFile); err != nil {
			return nil, nil, usagef("--jobfile: %w", err)
		} else if !info.Mode().IsRegular() {
			return nil, nil, usagef("--jobfile %s is no file; name a job pack", s.jobFile)
		}
	}
	list, err := s.list()
	if err != nil {
		return nil, nil, err
	}
	return &disco.Attempt{
		Worker: path, Env: disco.Environ(source.Environ(os.Environ()), given),
		Task: host.Task{ID: 0, Stage: s.stage, Grouping: "split", Label: int64(group), GroupHost: groupHost, DiscoPort: disco.DefaultPort, PutPort: disco.DefaultPort},
	}, list, nil
}

// list returns the inputs of --input, or an empty list that is not complete.
func (s *discoSettings) list() (*host.List, error) {
	if s.inputs == nil {
		return &host.List{}, nil
	}
	list := host.NewList()
	for _, in := range s.inputs {
		label, urls, ok := strings.Cut(in, "=")
		if !ok {
			return nil, usagef("--input %s: write LABEL=URL, as in 0=http://127.0.0.1/text", in)
		}
		if label == "all" {
			label = strconv.Quote(label)
		}
		number, err := host.ParseLabel(json.RawMessage(label))
		if err != nil || label == "" {
			return nil, usagef("--input %s: label %q: a label is an integer from 0 to %d, or all", in, label, host.MaxLabel)
		}
		var replicas []string
		if urls != "" {
			replicas = strings.Split(urls, ",")
		}
		if err := host.CheckReplicas(replicas); err != nil {
			return nil, usagef("--input %s: %w", in, err)
		}
		list.Add(host.Input{Label: number, Replicas: replicas})
	}
	return list, nil
}

// discoData opens the folder of the job homes of "disco run", and deletes some old ones.
func (a *app) discoData(ctx context.Context) (*disco.Data, error) {
	state := folders.State()
	if state == "" {
		return nil, usagef("there is no home folder for the files of workers; set XDG_STATE_HOME")
	}
	data, err := disco.OpenData(filepath.Join(state, "sluice", "disco", "run"), discoHost, "disco run")
	if err != nil {
		return nil, err
	}
	_, err = data.Clean(ctx, cleanDiscoRuns, func(job string) (bool, error) {
		return time.Since(jobpack.JobID(job).Time()) > keepDiscoRuns, nil
	})
	if err != nil {
		return nil, fmt.Errorf("delete old files of workers: %w", err)
	}
	return data, nil
}
