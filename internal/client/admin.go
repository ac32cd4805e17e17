package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// post makes a request that changes something and has no answer. Again says that doing it twice does it once.
func (c *Client) post(ctx context.Context, again bool, body any, path ...string) error {
	return c.do(ctx, &request{method: "POST", path: in(path...), body: body, again: again, timeout: writeTime}, nil)
}

// CreatePlan implements store.Admin.
func (c *Client) CreatePlan(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	if p.ID.IsZero() {
		p.ID.ID = plan.NewID(time.Now())
	}
	var made api.Plan
	err := c.do(ctx, &request{method: "PUT", path: in("plans", p.ID.String()), body: api.NewPlanOf(&p), again: true, timeout: lookTime}, &made)
	if err != nil {
		return plan.Plan{}, err
	}
	return made.Domain(), nil
}

// Fits implements store.Fitter. It does not ask about tasks that fit into every store.
func (c *Client) Fits(ctx context.Context, p plan.Plan, tasks []plan.Task) error {
	var large []json.RawMessage
	for i := range tasks {
		if store.Size(&tasks[i]) > store.FitsAlways {
			text, err := json.Marshal(api.NewTaskOf(&tasks[i]))
			if err != nil {
				return err
			}
			large = append(large, text)
		}
	}
	type body struct {
		ID     plan.PlanID       `json:"id,omitzero"`
		Name   string            `json:"name"`
		Params json.RawMessage   `json:"params,omitempty"`
		Tasks  []json.RawMessage `json:"tasks,omitempty"`
	}
	if len(p.Params) > store.FitsAlways {
		if err := c.post(ctx, true, &body{ID: p.ID, Name: p.Name, Params: p.Params}, "plans", "fits"); err != nil {
			return err
		}
	}
	return c.inParts(len(p.Name)+64, large, func(part []json.RawMessage) error {
		return c.post(ctx, true, &body{ID: p.ID, Name: p.Name, Tasks: part}, "plans", "fits")
	})
}

// inParts sends the tasks in parts that fit into one request each, next to so many bytes of a
// frame.
func (c *Client) inParts(frame int, tasks []json.RawMessage, send func([]json.RawMessage) error) error {
	from, size := 0, frame
	for to, one := range tasks {
		if size += len(one) + 1; size > c.mostBody && to > from {
			if err := send(tasks[from:to]); err != nil {
				return err
			}
			from, size = to, frame+len(one)+1
		}
	}
	if from == len(tasks) {
		return nil
	}
	return send(tasks[from:])
}

// AddTasks implements store.Admin. Tasks that are too large for one request go in several, in the
// given order. If one request is refused, the tasks before it stay, as when tasks are added to a
// running plan.
func (c *Client) AddTasks(ctx context.Context, p plan.PlanID, tasks []plan.Task) error {
	encoded := make([]json.RawMessage, len(tasks))
	for i := range tasks {
		text, err := json.Marshal(api.NewTaskOf(&tasks[i]))
		if err != nil {
			return err
		}
		encoded[i] = text
	}
	if len(encoded) == 0 {
		return c.addTasks(ctx, p, encoded) // which may be refused all the same
	}
	return c.inParts(len(`{"tasks":[]}`), encoded, func(part []json.RawMessage) error { return c.addTasks(ctx, p, part) })
}

// addTasks adds tasks by one request, or by halves where what stands before the server takes less than it.
func (c *Client) addTasks(ctx context.Context, p plan.PlanID, tasks []json.RawMessage) error {
	path := []string{"plans", p.String(), "tasks"}
	if p.IsZero() {
		path = []string{"tasks"}
	}
	body := struct {
		Tasks []json.RawMessage `json:"tasks"`
	}{tasks}
	err := c.post(ctx, true, &body, path...)
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Code == api.CodeTooLarge && len(tasks) > 1 {
		if err = c.addTasks(ctx, p, tasks[:len(tasks)/2]); err == nil {
			err = c.addTasks(ctx, p, tasks[len(tasks)/2:])
		}
	}
	return err
}

// PutPack implements store.Packs.
func (c *Client) PutPack(ctx context.Context, p plan.PlanID, pack *io.SectionReader) error {
	if pack.Size() > rules.MaxPack { // it is not sent
		return rules.CheckPack(&plan.Plan{}, pack.Size())
	}
	return c.do(ctx, &request{method: "PUT", path: in("plans", p.String(), "pack"), stream: pack, again: true, timeout: writeTime}, nil)
}

// Ready implements store.Admin.
func (c *Client) Ready(ctx context.Context, p plan.PlanID) error {
	return c.post(ctx, true, nil, "plans", p.String(), "ready")
}

// CancelPlan implements store.Admin.
func (c *Client) CancelPlan(ctx context.Context, p plan.PlanID, finally bool) error {
	r := &request{method: "POST", path: in("plans", p.String(), "cancel"), timeout: writeTime}
	if finally {
		r.query = query("finally", "true")
	}
	return c.do(ctx, r, nil)
}

// CancelTask implements store.Admin.
func (c *Client) CancelTask(ctx context.Context, id plan.TaskID) error {
	return c.post(ctx, false, nil, "tasks", id.String(), "cancel")
}

// AnswerTask implements store.Admin. The server knows who answers, and when.
func (c *Client) AnswerTask(ctx context.Context, id plan.TaskID, a rules.Answer) error {
	return c.post(ctx, false, &api.AnswerBody{Approve: a.Approve, Note: a.Note, Asked: a.Asked}, "tasks", id.String(), "approval")
}

// SetTask implements store.Admin.
func (c *Client) SetTask(ctx context.Context, id plan.TaskID, change rules.TaskChange) error {
	r := &request{method: "PATCH", path: in("tasks", id.String()), match: api.TaskTag(change.Modified), body: api.TaskChangeOf(&change), again: true, timeout: lookTime}
	return c.do(ctx, r, nil)
}

// BulkPortion implements bulk.Server. The server asks about new params itself.
func (c *Client) BulkPortion(ctx context.Context, o *bulk.Order) (bulk.Portion, error) {
	body := struct {
		api.BulkOrder
		Change *api.TaskChange `json:"change,omitempty"`
	}{BulkOrder: api.BulkOrder{Filter: api.TaskFilterOf(&o.Filter), Check: o.Check, After: o.After}}
	if o.What == rules.BulkSet {
		change := api.TaskChangeOf(&o.Change)
		body.Change = &change
	}
	var out api.BulkAnswer
	r := &request{
		method: "POST", path: in("tasks", "matching", string(o.What)), body: &body, again: o.Check || o.What == rules.BulkSet, timeout: writeTime,
	}
	err := c.do(ctx, r, &out)
	return bulk.Portion{Matched: out.Matched, Changed: out.Changed, Active: out.Stopping, LeftOut: out.LeftOut, Next: out.Next}, err
}

// Retry implements store.Admin.
func (c *Client) Retry(ctx context.Context, p plan.PlanID, ask rules.Ask) ([]rules.Retried, error) {
	path, route := []string{"plans", p.String()}, "retry"
	if p.IsZero() {
		path = []string{"tasks"}
	}
	if ask.Params == nil {
		ask.Choices = nil // they are those of the params
	}
	if len(ask.Replace) > 0 || ask.Params != nil || ask.Timeout != nil || ask.Found != nil {
		route = "retry-with"
	}
	body := struct {
		api.Ask
		Replace []api.NewTask   `json:"replace,omitempty"`
		Params  json.RawMessage `json:"params,omitempty"`
		Timeout *api.Duration   `json:"timeout,omitempty"`

		Choices map[string]rules.Choices          `json:"choices,omitzero"`
		Found   map[plan.TaskID][]json.RawMessage `json:"found,omitempty"`
	}{api.Ask{Tasks: ask.Tasks, Downstream: ask.Downstream, Lists: ask.Lists, Check: ask.Check}, api.Each(ask.Replace, api.NewTaskOf), ask.Params, (*api.Duration)(ask.Timeout), ask.Choices, ask.Found}
	var out api.RetriedAnswer
	err := c.do(ctx, &request{method: "POST", path: in(append(path, route)...), body: &body, timeout: writeTime}, &out)
	return api.Domain[rules.Retried](out.Tasks), err
}

// Adopt implements store.Admin.
func (c *Client) Adopt(ctx context.Context, p plan.PlanID) error {
	return c.post(ctx, true, nil, "plans", p.String(), "adopt")
}

// SetPriority implements store.Admin.
func (c *Client) SetPriority(ctx context.Context, p plan.PlanID, priority int) error {
	body := api.PlanChange{Priority: priority}
	return c.do(ctx, &request{method: "PATCH", path: in("plans", p.String()), body: &body, again: true, timeout: writeTime}, nil)
}

// DeletePlan implements store.Admin.
func (c *Client) DeletePlan(ctx context.Context, p plan.PlanID, budget int) (more bool, err error) {
	var out api.LeftAnswer
	r := &request{method: "DELETE", path: in("plans", p.String()), query: query("budget", strconv.Itoa(budget)), timeout: writeTime}
	err = c.do(ctx, r, &out)
	return out.More, err
}

// Prune implements store.Admin.
func (c *Client) Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error) {
	body := struct {
		Keep   api.Duration `json:"keep"`
		Budget int          `json:"budget"`
	}{api.Duration(keep), budget}
	var out api.LeftAnswer
	err = c.do(ctx, &request{method: "POST", path: in("plans", "prune"), body: &body, timeout: writeTime}, &out)
	return out.Plans, out.More, err
}

// CreateQueue implements store.Admin.
func (c *Client) CreateQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	return c.makeQueue(ctx, q, false)
}

// EnsureQueue implements store.Admin.
func (c *Client) EnsureQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	return c.makeQueue(ctx, q, true)
}

// makeQueue makes a queue. Its id is minted here, so that asking again makes no other.
func (c *Client) makeQueue(ctx context.Context, q plan.Queue, ensure bool) (plan.Queue, error) {
	if q.ID.IsZero() {
		q.ID.ID = plan.NewID(time.Now())
	}
	r := &request{method: "POST", path: in("queues"), again: true, timeout: lookTime}
	r.body = &api.NewQueue{ID: q.ID, Name: q.Name, Plugin: q.Plugin, SetQueue: api.SettingsOf(&q)}
	if ensure {
		r.query = query("ensure", "true")
	}
	var made api.Queue
	if err := c.do(ctx, r, &made); err != nil {
		return plan.Queue{}, err
	}
	q = made.Domain()
	q.Queued, q.Active = 0, 0 // CountQueues reads them
	return q, nil
}

// SetQueue implements store.Admin.
func (c *Client) SetQueue(ctx context.Context, q plan.Queue) error { return c.setQueue(ctx, q, "") }

// ChangeQueue implements store.Admin.
func (c *Client) ChangeQueue(ctx context.Context, was, q plan.Queue) error {
	return c.setQueue(ctx, q, api.VersionOf(&was))
}

func (c *Client) setQueue(ctx context.Context, q plan.Queue, match string) error {
	r := &request{method: "PUT", path: in("queues", q.ID.String()), match: match, body: api.QueueSettings{SetQueue: api.SettingsOf(&q)}, again: true, timeout: lookTime}
	return c.do(ctx, r, nil)
}

// DeleteQueue implements store.QueueDeleter.
func (c *Client) DeleteQueue(ctx context.Context, id plan.QueueID) error {
	return c.do(ctx, &request{method: "DELETE", path: in("queues", id.String()), timeout: lookTime}, nil)
}

// SetMaxThreads implements store.Admin.
func (c *Client) SetMaxThreads(ctx context.Context, n plan.NodeName, most int) error {
	var body struct {
		MaxThreads *int `json:"maxthreads"`
	}
	if most >= 0 {
		body.MaxThreads = &most
	}
	return c.do(ctx, &request{method: "PUT", path: in("nodes", string(n)), body: &body, again: true, timeout: lookTime}, nil)
}

// Balance implements store.Balance.
func (c *Client) Balance(ctx context.Context) (json.RawMessage, error) {
	out, err := get[api.BalanceAnswer](ctx, c, nil, "balance")
	if bytes.Equal(out.Document, []byte("null")) {
		out.Document = nil
	}
	return out.Document, err
}

// SetBalance implements store.Balance.
func (c *Client) SetBalance(ctx context.Context, settings json.RawMessage) error {
	if _, err := balance.With(nil, settings); err != nil { // what is no JSON cannot be sent
		return err
	}
	return c.do(ctx, &request{method: "PATCH", path: in("balance"), body: settings, again: true, timeout: lookTime}, nil)
}
