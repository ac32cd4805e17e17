package disco

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

// lastWait is how long a worker that has closed its output is given to exit.
const lastWait = time.Second

// An Attempt is one attempt of a task: a worker in a job home.
type Attempt struct {
	Worker  string // the path of the program
	Env     []string
	Home    *Home
	Task    host.Task // the fields that follow from the home are filled
	Number  int
	Inputs  host.Inputs
	Message func(text string)
	Times   host.Settings
	Grace   time.Duration   // as a command of package exec has it
	Hurry   <-chan struct{} // as a command of package exec has it

	Between func(host.Conn) host.Conn // what the session speaks through, in place of the streams themselves; nil: these
}

// An Outcome is how an attempt ended.
type Outcome struct {
	host.Ending
	Outputs []Output      // of one that is done
	process runner.Result // how the worker ended
}

// Run runs the attempt. After it, no process of the worker is alive. An error means that the worker
// could not be started.
func (a *Attempt) Run(ctx context.Context) (Outcome, error) {
	t := a.Task
	d := a.Home.data
	t.JobName, t.JobFile, t.Host, t.DiscoData = a.Home.Job, a.Home.JobFile(), d.Host, d.Dir
	t.Master = fmt.Sprintf("http://%s:%d", d.Host, t.DiscoPort)
	out := &outputs{home: a.Home, index: fmt.Sprintf("index/%s-%d-%d-%d", strings.TrimLeft(strings.ReplaceAll(t.Stage, "/", "_"), "."), t.ID, a.Number, time.Now().UnixNano())}
	session := host.Session{Settings: a.Times, Task: t, Inputs: a.Inputs, Outputs: out, Message: a.Message}
	cmd := runner.Command{
		Args: []string{a.Worker}, Env: append(slices.Clip(a.Env), "PWD="+a.Home.Path), Dir: a.Home.Path, Grace: a.Grace, Hurry: a.Hurry,
	}
	var o Outcome
	var err error
	o.process, err = runner.Converse(ctx, cmd, func(d *runner.Dialogue) {
		conn := host.Conn(d)
		if a.Between != nil {
			conn = a.Between(d)
		}
		if o.Ending = session.Run(ctx, conn); o.Died {
			select { // how it exited is to be known: its output ends a little before
			case <-d.Exited():
			case <-time.After(lastWait):
			case <-ctx.Done():
			}
		}
	})
	if err != nil {
		return Outcome{}, err
	}
	if o.End == 0 { // it was not started, since ctx had ended
		o.Ending = host.Ending{End: host.Error, Detail: o.process.Stopped.Error()}
	}
	if o.Died {
		o.Detail = exit(o.process) + ": " + o.Detail
	}
	if o.End == host.Done {
		o.Outputs = out.list
	}
	return o, nil
}

// exit says how a worker ended whose output had ended before.
func exit(r runner.Result) string {
	switch {
	case r.Signal != "" && errors.Is(r.Stopped, runner.ErrOver):
		return "it closed its output"
	case r.Signal != "":
		return "ended by " + r.Signal
	}
	return fmt.Sprintf("exit status %d", r.Code)
}

// Environ returns the variables that a worker inherits of base: no DISCO_ and DDFS_ ones, since these
// tell where a Disco is, and then the given ones in place of those of the same name.
func Environ(base []string, given map[string]string) []string {
	env := make([]string, 0, len(base)+len(given))
	for _, v := range base {
		name, _, _ := strings.Cut(v, "=")
		if _, replaced := given[name]; !replaced && !strings.HasPrefix(name, "DISCO_") && !strings.HasPrefix(name, "DDFS_") {
			env = append(env, v)
		}
	}
	for name, value := range given {
		env = append(env, name+"="+value)
	}
	return env
}
