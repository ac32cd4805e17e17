package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	listLimit = 100 // of a list, where none is asked for
	idsAtOnce = 200 // in one URL, which not everything on the way takes in any length
)

// query makes a query of names and values; those without a value are left out.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func flag(on bool) string {
	if on {
		return "true"
	}
	return ""
}

func id(i plan.ID) string {
	if i.IsZero() {
		return ""
	}
	return i.String()
}

// isPrefix reports whether an id can begin so.
func isPrefix(s string) bool { return len(s) <= 24 && strings.Trim(s, "0123456789abcdef") == "" }

// Plan implements store.Reader.
func (c *Client) Plan(ctx context.Context, p plan.PlanID) (plan.Plan, error) {
	got, err := get[api.Plan](ctx, c, nil, "plans", p.String())
	if err != nil {
		return plan.Plan{}, err
	}
	return got.Domain(), nil
}

// PlanFile implements store.Reader.
func (c *Client) PlanFile(ctx context.Context, p plan.PlanID) (plan.File, error) {
	return get[plan.File](ctx, c, nil, "plans", p.String(), "file")
}

// Plans implements store.Reader.
func (c *Client) Plans(ctx context.Context, q store.PlanQuery) (plans []plan.Plan, err error) {
	if !isPrefix(q.Prefix) {
		return nil, nil
	}
	state := ""
	if q.State != nil {
		state = q.State.String()
	}
	v := query("name", q.Name, "run", number(q.Run), "prefix", q.Prefix, "source", q.Source, "state", state)
	err = c.pages("before", q.Before.ID, cmp.Or(q.Limit, listLimit), v, func() (int, plan.ID, error) {
		page, err := get[api.PlanList](ctx, c, v, "plans")
		for i := range page.Plans {
			if q.NoParams {
				page.Plans[i].Params = nil
			}
		}
		plans = append(plans, api.Domain[plan.Plan](page.Plans)...)
		return len(page.Plans), page.Next.ID, err
	})
	return plans, err
}

// pages reads up to so many entries of a list, a page at a time. read reads the page that v asks
// for. It returns the number of its entries and the begin of the next page.
func (c *Client) pages(cursor string, after plan.ID, most int, v url.Values, read func() (int, plan.ID, error)) error {
	for most > 0 {
		v.Del(cursor)
		if !after.IsZero() {
			v.Set(cursor, after.String())
		}
		v.Set("limit", strconv.Itoa(min(most, api.MostPage)))
		n, next, err := read()
		if most -= n; err != nil || next.IsZero() {
			return err
		}
		if next == after || n == 0 {
			return c.nonsense(errStandsStill)
		}
		after = next
	}
	return nil
}

// Task implements store.Reader.
func (c *Client) Task(ctx context.Context, t plan.TaskID) (plan.Task, error) {
	got, err := get[api.TaskAnswer](ctx, c, nil, "tasks", t.String())
	if err != nil {
		return plan.Task{}, err
	}
	if got.OutputLeftOut != "" {
		err = api.NewProblem(http.StatusUnprocessableEntity, "too_much_output", "%s", got.OutputLeftOut)
	}
	return got.Domain(), err
}

// Tasks implements store.Reader. Many ids are asked for some at a time.
func (c *Client) Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error) {
	if !isPrefix(q.Prefix) {
		return nil, nil
	}
	var words []string
	for _, s := range q.Statuses {
		if s == plan.Failed { // as a word it covers every code above 1; as a number only that code
			words = append(words, s.String())
		} else {
			words = append(words, strconv.Itoa(int(s)))
		}
	}
	var with []string
	for word, asked := range map[string]bool{"needs": q.Needs, "params": q.Params, "output": q.Output} {
		if asked {
			with = append(with, word)
		}
	}
	v := query("plan", id(q.Plan.ID), "no_plan", flag(q.NoPlan), "name", q.Name, "subject", q.Subject, "prefix", q.Prefix, "queue", id(q.Queue.ID), "state", strings.Join(words, ","),
		"of", id(q.Of.ID), "parent", id(q.Parent.ID), "no_items", flag(q.NoItems), "reached", flag(q.Reached), "retried", flag(q.Retried), "troubled", flag(q.Troubled), "began", flag(q.Began), "newest", flag(q.Newest), "with", strings.Join(with, ","))
	most := cmp.Or(q.Limit, listLimit)
	if len(q.IDs) == 0 {
		return c.someTasks(ctx, v, q.After, most)
	}
	ids := slices.Clone(q.IDs) // in the order of the list, so that each part comes after the one before
	slices.SortFunc(ids, func(a, b plan.TaskID) int {
		if q.Newest {
			a, b = b, a
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	ids = slices.Compact(ids)
	var tasks []plan.Task
	for part := range slices.Chunk(ids, idsAtOnce) {
		v.Set("ids", strings.Join(api.Each(part, func(id *plan.TaskID) string { return id.String() }), ","))
		found, err := c.someTasks(ctx, v, q.After, most-len(tasks))
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, found...)
	}
	return tasks, nil
}

// someTasks reads up to so many tasks, some at a time.
func (c *Client) someTasks(ctx context.Context, v url.Values, after plan.TaskID, most int) (tasks []plan.Task, err error) {
	err = c.pages("after", after.ID, most, v, func() (int, plan.ID, error) {
		page, err := get[api.TaskList](ctx, c, v, "tasks")
		tasks = append(tasks, api.Domain[plan.Task](page.Tasks)...)
		return len(page.Tasks), page.Next.ID, err
	})
	return tasks, err
}

// Queues implements store.Reader.
func (c *Client) Queues(ctx context.Context) ([]plan.Queue, error) { return c.queues(ctx, "false") }

func (c *Client) queues(ctx context.Context, counts string) ([]plan.Queue, error) {
	got, err := get[api.QueuesAnswer](ctx, c, query("counts", counts), "queues")
	return api.Domain[plan.Queue](got.Queues), err
}

// Refused implements store.Refuser. A server of an older version names nothing.
func (c *Client) Refused(ctx context.Context) ([]string, error) {
	got, err := get[api.QueuesAnswer](ctx, c, query("counts", "true"), "queues")
	return got.Refused, err
}

// CountQueues implements store.Reader.
func (c *Client) CountQueues(ctx context.Context, queues []plan.Queue) error {
	if len(queues) == 0 {
		return nil
	}
	counted, err := c.queues(ctx, "true")
	for i := range counted {
		for k := range queues {
			if queues[k].ID == counted[i].ID {
				queues[k].Queued, queues[k].Active = counted[i].Queued, counted[i].Active
			}
		}
	}
	return err
}

// Log implements store.Reader.
func (c *Client) Log(ctx context.Context, t plan.TaskID, after int64, limit int) (entries []plan.LogEntry, next int64, err error) {
	for next = after; limit > 0; {
		most := min(limit, api.MostPage)
		page, err := get[api.LogAnswer](ctx, c, query("after", strconv.FormatInt(next, 10), "limit", strconv.Itoa(most)), "tasks", t.String(), "log")
		if err != nil {
			return nil, after, err
		}
		entries = append(entries, api.Domain[plan.LogEntry](page.Entries)...)
		next = page.Next
		if limit -= len(page.Entries); len(page.Entries) < most {
			break
		}
	}
	return entries, next, nil
}

// Changes implements store.Reader.
func (c *Client) Changes(ctx context.Context, after store.Cursor, limit int) (out []store.Change, next store.Cursor, err error) {
	for next = after; limit > 0; {
		most := min(limit, api.MostPage)
		page, err := get[api.ChangesAnswer](ctx, c, query("after", string(next), "limit", strconv.Itoa(most)), "changes")
		if err != nil {
			return nil, after, err
		}
		out, next = append(out, api.Domain[store.Change](page.Changes)...), page.Cursor
		if limit -= len(page.Changes); len(page.Changes) < most {
			break
		}
	}
	return out, next, nil
}

// WaitChanges implements store.Waiter.
func (c *Client) WaitChanges(ctx context.Context, p plan.PlanID, after store.Cursor, limit int, wait time.Duration) ([]store.Change, store.Cursor, error) {
	var page api.ChangesAnswer
	r := &request{method: "GET", path: in("changes"), again: true, timeout: wait + lookTime}
	r.query = query("after", string(after), "plan", id(p.ID), "wait", wait.String(), "limit", strconv.Itoa(min(limit, api.MostPage)))
	if err := c.do(ctx, r, &page); err != nil {
		return nil, after, err
	}
	return api.Domain[store.Change](page.Changes), page.Cursor, nil
}

// Latest implements store.Reader.
func (c *Client) Latest(ctx context.Context) (store.Cursor, error) {
	page, err := get[api.ChangesAnswer](ctx, c, nil, "changes")
	return page.Cursor, err
}

// Now implements store.Reader.
func (c *Client) Now(ctx context.Context) (time.Time, error) {
	got, err := get[api.NowAnswer](ctx, c, nil, "now")
	return got.Now.UTC(), err
}

// MaxThreads implements store.Reader.
func (c *Client) MaxThreads(ctx context.Context) (map[plan.NodeName]int, error) {
	got, err := get[api.NodesAnswer](ctx, c, query("counts", "false"), "nodes")
	return got.Limits, err
}

// Instances implements store.Reader.
func (c *Client) Instances(ctx context.Context) ([]plan.Instance, error) {
	got, err := get[api.NodesAnswer](ctx, c, query("counts", "false"), "nodes")
	return api.Domain[plan.Instance](got.Nodes), err
}

// Inputs implements store.Node.
func (c *Client) Inputs(ctx context.Context, t plan.TaskID) ([]plan.Input, error) {
	got, err := get[api.InputsAnswer](ctx, c, nil, "tasks", t.String(), "inputs")
	return api.Domain[plan.Input](got.Inputs), err
}

// Parents implements store.Node.
func (c *Client) Parents(ctx context.Context, t plan.TaskID) ([]plan.Parent, error) {
	got, err := get[api.ParentsAnswer](ctx, c, nil, "tasks", t.String(), "parents")
	return api.Domain[plan.Parent](got.Parents), err
}

// OpenResult implements store.Results.
func (c *Client) OpenResult(ctx context.Context, t plan.TaskID, s plan.Stream) (body io.ReadCloser, size int64, err error) {
	r := &request{method: "GET", path: in("tasks", t.String(), api.StreamWord(s)), again: true, timeout: lookTime}
	err = c.trying(ctx, r, func() error {
		body, size, err = c.openResult(ctx, r)
		return err
	})
	return body, size, err
}

func (c *Client) openResult(ctx context.Context, r *request) (io.ReadCloser, int64, error) {
	reading, cancel := context.WithCancel(ctx)
	begins := time.AfterFunc(r.timeout, cancel) // reading may take as long as it does
	answer, err := c.send(reading, r, nil, false)
	if late := !begins.Stop(); err != nil {
		cancel()
		if late {
			err = context.DeadlineExceeded
		}
		return nil, 0, c.unanswered(ctx, r, err)
	}
	body := &result{answer.Body, cancel, c}
	if answer.StatusCode != http.StatusOK {
		defer body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, 0, c.unanswered(ctx, r, &cutError{err})
		}
		return nil, 0, c.refused(answer, text)
	}
	size, err := strconv.ParseInt(answer.Header.Get(api.SizeHeader), 10, 64)
	if err != nil {
		_ = body.Close()
		return nil, 0, fmt.Errorf("the server %s does not say how long the result is", c.shown)
	}
	return body, size, nil
}

// A result is read as it comes.
type result struct {
	io.ReadCloser
	cancel context.CancelFunc
	c      *Client
}

func (r *result) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("the server %s has cut it off: %w", r.c.shown, err)
	}
	return n, err
}

func (r *result) Close() error {
	err := r.ReadCloser.Close()
	r.cancel()
	return err
}
