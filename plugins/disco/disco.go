// Package disco is the plugin that runs workers of Disco, a MapReduce framework: programs that speak
// the Disco worker protocol. Package host owns the protocol, and package runner the processes. This
// package owns the folders that workers run in, their outputs, and how others fetch these.
//
// The params of a task are:
//
//	worker   the program: a path that is absolute, or relative to dir
//	dir      the folder of the plan
//	inputs   a list: {"label": 0, "urls": [replicas]}, an output of another task, or a list of these;
//	         default those of item, if that is a group of inputs, and else none
//	env      variables: texts, numbers, booleans, and secrets as {"from_env": NAME} or {"from_file": PATH}
//	jobfile  the job pack that the job home gets, a path as of the worker; default an empty one
//	pack     a job pack that the job home is unpacked from, a path as of jobfile, or sha256: and the SHA-256, in hex, of the
//	         pack that the store keeps beside the plan; worker is then relative to the job home
//
// The output is the list of the outputs: [label, location, size], or {"labels": [[label, size], …], "url": location}
// for the index of many.
package disco

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/source"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

// Name is what plans call the plugin.
const Name = "disco"

// DefaultPort is where the files of a host are served.
const DefaultPort = 8989

// Options say how workers are run. The zero value of a field means its default.
type Options struct {
	Grace time.Duration // between SIGTERM and SIGKILL; default 10 s, less than 0 is none
	Times host.Settings
}

// A Place is where the tasks of a node run.
type Place struct {
	Data *Data
	Port int // where the files of the host are served

	// Pack opens the job pack that the store keeps beside a plan. It returns plan.ErrNotFound if there is none.
	Pack func(context.Context, plan.PlanID) (io.ReadCloser, error)
}

// A Plugin runs workers. Any number of goroutines may call its methods at once.
type Plugin struct {
	Options
	base []string // variables of the node

	mu    sync.Mutex
	place func() (Place, error)
}

// New returns the plugin. It takes the process's environment as it is now. No task runs before
// Settle.
func New(o Options) *Plugin { return &Plugin{Options: o, base: source.Environ(os.Environ())} }

// Settle says where the tasks run. The first task calls open.
func (p *Plugin) Settle(open func() (Place, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.place = sync.OnceValues(open)
}

func (p *Plugin) where() (Place, error) {
	p.mu.Lock()
	place := p.place
	p.mu.Unlock()
	if place == nil {
		return Place{}, errors.New("this process runs no workers of Disco; run the plan by sluice")
	}
	return place()
}

// Lease implements plugins.Tenant.
func (*Plugin) Lease(left time.Duration) { runner.Lease(left) }

// Wanders implements plugins.Wanderer: an input may be out of reach of one node, or its disk be full.
func (*Plugin) Wanders() {}

// ReadsInputs implements plugins.InputReader: the items of a stage have megabytes of outputs.
func (*Plugin) ReadsInputs() {}

// errWindows refuses the plugin by name.
var errWindows = errors.New("plugin disco: workers of Disco do not run on Windows; let a node on Linux, macOS or BSD serve the queue")

// Run implements plugins.Plugin. DONE is success. FATAL, and what the protocol treats alike, is a
// failure after which the plan stops. Any other end is a failure that is tried again.
func (p *Plugin) Run(ctx context.Context, t *plugins.Task) plan.Result {
	if runtime.GOOS == "windows" {
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: errWindows.Error(), Final: true}
	}
	r, err := p.run(ctx, t)
	switch {
	case err != nil && ctx.Err() != nil:
		return plan.Result{Status: plan.Terminated, Detail: err.Error()}
	case err != nil:
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: err.Error(), Lacks: plugins.LacksOf(err)}
	}
	return r
}

func (p *Plugin) run(ctx context.Context, t *plugins.Task) (plan.Result, error) {
	s, key, err := readSettings(t.Params, false)
	if err == nil && s.group != nil {
		key, err = "item", s.readGroup(t)
	}
	if err != nil {
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonInput, Detail: fmt.Sprintf("%s: %v", key, err)}, nil
	}
	worker := ""
	if s.pack == "" {
		if worker, err = CheckWorker(s.worker, s.dir); err != nil {
			return plan.Result{}, err
		}
	}
	place, err := p.where()
	if err != nil {
		return plan.Result{}, err
	}
	env, secrets, err := s.environ(ctx, p.base)
	if err != nil {
		return plan.Result{}, err
	}
	home, err := s.open(ctx, place, t)
	if err != nil {
		return plan.Result{}, err
	}
	defer home.Close()
	if s.pack != "" {
		if worker, err = CheckWorker(s.worker, home.Path); err != nil {
			return plan.Result{}, err
		}
	}
	hidden := append(secrets, t.Secrets...)
	a := &Attempt{
		Worker: worker, Env: env, Home: home, Number: t.Attempt, Inputs: host.NewList(s.inputs...),
		Task:    host.Task{ID: taskID(t.ID), Stage: stage(t), Grouping: "split", DiscoPort: place.Port, PutPort: place.Port},
		Message: func(text string) { t.Log.Print(secret.HideText(text, hidden)) },
		Times:   p.Times, Grace: p.Grace, Hurry: t.Hurry,
	}
	if g := s.group; g != nil {
		a.Task.Grouping, a.Task.Label, a.Task.GroupHost = g.Grouping, g.Label, g.Host
	}
	o, err := a.Run(ctx)
	if err != nil {
		return plan.Result{}, err
	}
	if o.End != host.Done {
		o.Detail += s.remedy(t, o.Lost)
	}
	return result(ctx, o, t, hidden)
}

// open opens the home of the job that a task belongs to.
func (s *settings) open(ctx context.Context, place Place, t *plugins.Task) (*Home, error) {
	job := JobName(jobOf(t))
	sum, stored := jobpack.Stored(s.pack)
	switch {
	case s.pack == "":
		return place.Data.Open(job, s.jobPack())
	case !stored:
		return place.Data.OpenPacked(job, s.jobPack())
	}
	return place.Data.OpenStored(job, sum, func() (io.ReadCloser, error) {
		pack, err := place.Pack(ctx, t.Plan)
		if errors.Is(err, plan.ErrNotFound) {
			err = fmt.Errorf("%w; submit the job by sluice disco submit, which puts it there", err)
		}
		return pack, err
	})
}

// remedy says how inputs that have no replica left are made again: by the tasks whose outputs they are.
func (s *settings) remedy(t *plugins.Task, lost []int) string {
	needs, err := t.Needs()
	if err != nil || t.PlanName == "" {
		return ""
	}
	var tasks []string
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if slices.ContainsFunc(lost, func(id int) bool {
			return slices.ContainsFunc(s.inputs[id].Replicas, func(url string) bool { return bytes.Contains(needs[name], []byte(url)) })
		}) {
			tasks = append(tasks, name)
		}
	}
	if tasks == nil {
		return ""
	}
	return fmt.Sprintf("; make them again: sluice plan retry %s %s --downstream", t.PlanName, strings.Join(tasks, " "))
}

// result makes of how the attempt ended what the node is told.
func result(ctx context.Context, o Outcome, t *plugins.Task, secrets []string) (plan.Result, error) {
	r := plan.Result{Detail: secret.HideText(o.Detail, secrets)}
	switch {
	case o.End == host.Done:
		r.Status = plan.Succeeded
		var err error
		if r.Output, err = json.Marshal(append([]Output{}, o.Outputs...)); err != nil {
			return r, err
		}
		if secret.Holds(r.Output, secrets) {
			return plan.Result{Status: plan.Failed, Reason: plan.ReasonOutput, Detail: "the location of an output holds a secret of its env, and the store keeps outputs"}, nil
		}
		return r, nil
	case ctx.Err() != nil:
		r.Status = plan.Terminated
		if r.Detail != context.Cause(ctx).Error() { // what it was at when the time was over
			t.Log.Append(plan.System, r.Detail)
		}
		return r, nil
	}
	r.Status = plan.Failed
	r.Fatal = o.End == host.Fatal
	if o.Died && !errors.Is(o.process.Stopped, runner.ErrOver) {
		r.Exit = &plan.Exit{Code: o.process.Code, Signal: o.process.Signal}
	}
	long := len(r.Detail) > mostDetail
	if long || strings.Contains(r.Detail, "\n") { // lists show a line of a detail
		t.Log.Append(plan.System, r.Detail)
	}
	if long {
		r.Detail = strings.ToValidUTF8(r.Detail[:mostDetail], "") + "… (the log has all of it)"
	}
	return r, nil
}

// mostDetail is the most bytes of a detail. People see it in lists.
const mostDetail = 4 << 10

// jobOf returns the name and the id of the job that a task belongs to: its plan, or itself.
func jobOf(t *plugins.Task) (name, id string) {
	if t.Plan.IsZero() {
		if name = t.Name; name == "" {
			name = "task"
		}
		return name, t.ID.String()
	}
	name = t.PlanName
	if i := strings.LastIndexByte(name, '#'); i >= 0 { // the number of the run
		name = name[:i]
	}
	if name == "" {
		name = "plan"
	}
	return name, t.Plan.String()
}

// stage is the name of the task; of an item that of its foreach task.
func stage(t *plugins.Task) string {
	if t.Name == "" {
		return t.Queue
	}
	return item.ReplaceAllString(t.Name, "")
}

// item is what the name of an item has behind that of its foreach task.
var item = regexp.MustCompile(`\[\d+\]$`)

// taskID returns an integer for a task that differs from those of the other tasks of the plan. Ids
// that one process made in a run differ in their last three bytes. The other bits tell runs apart.
func taskID(id plan.TaskID) int64 {
	run := fnv.New32a()
	_, _ = run.Write(id.ID[:9])
	return int64(run.Sum32()&(1<<29-1))<<24 | int64(id.ID[9])<<16 | int64(id.ID[10])<<8 | int64(id.ID[11])
}
