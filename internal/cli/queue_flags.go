package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// queueFlags are the flags that a queue is made and changed with.
type queueFlags struct {
	settings[plan.Queue]
	pin, ignore []string
}

// add gives a command these flags. threads is the limit where none is given; -1: unlimited.
func (f *queueFlags) add(a *app, cmd *cobra.Command, threads int) {
	var secrets []string
	var keep keepValue
	var group, rate, defaults string
	each, weight := -1, 0
	sort := choice{"default", []string{"default", string(plan.SortFIFO), string(plan.SortLIFO)}}
	onLost := choice{"default", []string{"default", string(plan.OnLostRetry), string(plan.OnLostFail)}}
	flags := cmd.Flags()
	flags.Var(threadsOf(&threads, 0), "threads", "how many of its tasks may run at once, over all nodes; 0 pauses it")
	f.on("threads", func(q *plan.Queue) error { q.Threads, q.Unlimited = max(0, threads), threads < 0; return nil })
	flags.Var(&sort, "sort", "the order of claims: default (longest path to the plan's end), fifo or lifo")
	f.on("sort", func(q *plan.Queue) error { q.Sort = sortOf(&sort); return nil })
	flags.StringSliceVar(&f.pin, "pin", nil, "names of the only nodes that serve it")
	f.on("pin", func(q *plan.Queue) (err error) { q.Pin, err = nodeNames("--pin", f.pin); return err })
	flags.StringSliceVar(&f.ignore, "ignore", nil, "names of nodes that do not serve it, unless it is pinned")
	f.on("ignore", func(q *plan.Queue) (err error) { q.Ignore, err = nodeNames("--ignore", f.ignore); return err })
	flags.Var(threadsOf(&each, 1), "node-threads", "how many of its tasks one node may run at once, over all its processes")
	f.on("node-threads", func(q *plan.Queue) error { q.NodeThreads = max(0, each); return nil })
	flags.Var(&onLost, "on-lost", "what happens to its lost tasks without an on_lost of their own: retry queues them "+
		"again, fail does not, default is retry for tasks of plans and fail for others")
	f.on("on-lost", func(q *plan.Queue) error {
		if q.OnLost = plan.OnLost(onLost.value); onLost.value == "default" {
			q.OnLost = plan.OnLostDefault
		}
		return nil
	})
	flags.StringSliceVar(&secrets, "secret", nil, "names of params that are never shown, of tasks in any queue, in upper and lower case; "+
		"a * stands for any letters, as in *_key")
	f.on("secret", func(q *plan.Queue) (err error) { q.Secrets, err = secret.CheckNames(secrets); return err })
	flags.Var(&keep, "keep", "how long finished tasks of no plan stay: an age, such as 30d, forever or default, or "+
		"one for each state, such as succeeded=1d,failed=30d; the default is 30 days on "+
		"SQLite, and for ever on MongoDB")
	f.on("keep", func(q *plan.Queue) error { keep.apply(&q.Keep); return nil })
	flags.StringVar(&group, "group", "", "the group that it is in; none takes it out")
	f.on("group", func(q *plan.Queue) error { q.Group = groupWord(group); return nil })
	completeBy(cmd, "group", a.completeGroupFlag)
	numberFlag(cmd, &weight, "weight", "", 1, "its share of starts beside the other queues of its group, 1 to 1000")
	f.on("weight", func(q *plan.Queue) error { q.Weight = weight; return plan.CheckWeight(weight) })
	flags.StringVar(&rate, "rate", "", "how many of its tasks may start, over all nodes, as in 10/s or 600/1h,burst=20; none removes the limit")
	f.on("rate", func(q *plan.Queue) (err error) { q.Rate, err = plan.ParseRate(rate); return err })
	flags.StringVar(&defaults, "defaults", "", "what its tasks have that they do not say themselves: a JSON object with params, "+
		"retry and timeout; {} removes the setting")
	f.on("defaults", func(q *plan.Queue) (err error) {
		if q.Defaults, err = defaultsFlag(defaults); err == nil {
			if _, wrong := compiler.RefusedDefault(q, a.Plugins.Refused); wrong != nil {
				err = fmt.Errorf("no task of queue %q can have these: %w", q.Name, wrong)
			}
		}
		return err
	})
}

// defaultsFlag reads --defaults.
func defaultsFlag(text string) (d plan.TaskDefaults, err error) {
	raw, err := jsonObject("--defaults", text)
	if err != nil {
		return d, err
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	var said struct{ Retry struct{ Attempts *int } }
	if err = in.Decode(&d); err == nil {
		err = json.Unmarshal(raw, &said)
	}
	if err == nil && said.Retry.Attempts != nil { // 0 would say nothing
		_, err = rules.ParseCount("retry.attempts", strconv.Itoa(*said.Retry.Attempts), math.MaxInt32)
	}
	if err == nil {
		err = compiler.CheckDefaults(&d)
	}
	if err == nil {
		err = compiler.CheckSaid(&d, raw)
	}
	if err != nil {
		return d, usagef(`--defaults: %s; it has params, retry and timeout, as in '{"params": {"env": {"REGION": "eu"}}, "retry": {"attempts": 3, "delay": "10s"}, "timeout": "5m"}'`,
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return d, nil
}

// named returns the nodes that the flags name.
func (f *queueFlags) named() []plan.NodeName {
	return api.Each(slices.Concat(f.pin, f.ignore), func(w *string) plan.NodeName { return plan.NodeName(*w) })
}

func nodeNames(flag string, words []string) (names []plan.NodeName, err error) {
	for _, w := range words {
		if err := rules.CheckNodeName(w); err != nil {
			return nil, usagef("%s: %w; names go with commas and no blanks between, as in %s n1,n2", flag, err, flag)
		}
		if !slices.Contains(names, plan.NodeName(w)) {
			names = append(names, plan.NodeName(w))
		}
	}
	return names, nil
}

func sortOf(c *choice) plan.QueueSort {
	if c.value == "default" {
		return plan.SortDefault
	}
	return plan.QueueSort(c.value)
}

// noteBoth says that of a pin and nodes that are ignored only the first counts.
func (a *app) noteBoth(q *plan.Queue) {
	if len(q.Pin) > 0 && len(q.Ignore) > 0 {
		a.note("queue %s is pinned and has nodes that it ignores too: only the pin counts", q.Name)
	}
}

// noteNobody names those of a queue's nodes that do not exist now. A node may be started later, and
// a name may be mistyped.
func (a *app) noteNobody(ctx context.Context, st store.Store, names []plan.NodeName) error {
	if len(names) == 0 {
		return nil
	}
	nodes, err := st.Instances(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(nodes, func(i plan.Instance) bool { return i.Node == name }) {
			continue
		}
		if heard, err := foreignHeard(ctx, st, name); err != nil {
			return err
		} else if heard.IsZero() {
			a.noteNoNode(name, nodes)
		}
	}
	return nil
}
