package v1

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// disco serves what Disco's own submitters ask of a master, under api.DiscoRoot.
func (a *API) disco() {
	const tag, doc = "disco", "For Disco's own submitters. A request of a page in a browser, with Origin or Sec-Fetch-Site, is refused."
	serve(a, endpoint{
		method: "POST", root: api.DiscoRoot, path: "/job/new", id: "disco-new-job", summary: "Submit a job pack, as to a master of Disco", tag: tag, scope: Submit,
		pack: alwaysIs, programs: true, doc: doc + ` The answer is ["ok", JOBNAME], or ["error", WHY].`,
		answers: map[int][]any{http.StatusOK: {[]string{}}, http.StatusRequestEntityTooLarge: {[]string{}}},
	}, a.newJob)
	serve(a, endpoint{
		method: "POST", root: api.DiscoRoot, path: "/ctrl/get_results", id: "disco-get-results", summary: "Wait for jobs, as at a master of Disco", tag: tag, scope: Read,
		programs: true, errors: []int{422},
		doc: doc + ` The body is [MILLISECONDS, [JOBNAME, …]]. The answer comes when one of the jobs ends, or after that time, at most 60 s. It has ` +
			`[JOBNAME, [STATUS, [[URL, …], …]]] for each job. STATUS is active, ready, dead or unknown job, and the URLs are of the outputs of a job that is ready.`,
		answers: map[int][]any{http.StatusOK: {[]any{}}},
	}, a.jobResults)
}

// onlyPrograms refuses requests of pages in a browser, which send one of these headers. They would run
// commands here in the name of a person who only looks at a page.
func onlyPrograms(c huma.Context, next func(huma.Context)) {
	if c.Header("Origin") != "" || c.Header("Sec-Fetch-Site") != "" {
		_, w := humago.Unwrap(c)
		WriteProblem(w, api.NewProblem(http.StatusForbidden, string(auth.CodeCrossOrigin), "a page in a browser sent this request; send it from a program"))
		return
	}
	next(c)
}

// newJob submits a job pack. An error of the pack has the status 200, as a master's answer has it.
func (a *API) newJob(ctx context.Context, _ *struct{}) (*submitAnswer, error) {
	file, err := packOf(ctx).read()
	if err == nil {
		var p *plan.Plan
		if p, _, err = a.submitSpec(ctx, file, ""); err == nil {
			return &submitAnswer{Status: http.StatusOK, Body: []string{"ok", jobpack.JobName(p.Name, p.ID.String())}}, nil
		}
	}
	problem := a.problem(ctx, err)
	out := &submitAnswer{Status: problem.Status, Body: []string{"error", problem.Detail}}
	if problem.Status < http.StatusInternalServerError && problem.Status != http.StatusRequestEntityTooLarge {
		auth.Unchanged(ctx)
		out.Status = http.StatusOK
	}
	return out, nil
}

// The states of a job, in Disco's words.
const (
	jobActive  = "active"
	jobReady   = "ready"
	jobDead    = "dead"
	jobUnknown = "unknown job"
)

type jobResults struct {
	RawBody []byte `contentType:"application/json" doc:"[MILLISECONDS, [JOBNAME, …]]"`
}

func (a *API) jobResults(ctx context.Context, in *jobResults) (*submitAnswer, error) {
	auth.Unchanged(ctx)
	var asked []json.RawMessage
	var wait float64
	var names []string
	if json.Unmarshal(in.RawBody, &asked) != nil || len(asked) != 2 || json.Unmarshal(asked[0], &wait) != nil || json.Unmarshal(asked[1], &names) != nil || len(names) > api.MostPage {
		return nil, api.InvalidAt("body", "write [MILLISECONDS, [JOBNAME, …]]")
	}
	held, over := context.WithTimeout(ctx, min(time.Duration(max(0, wait)*float64(time.Millisecond)), longestWait))
	defer over()
	told, leave := a.events.join()
	defer leave()
	before := -1
	for {
		out, active := make([]any, len(names)), 0
		for i, name := range names {
			state, urls, err := a.jobState(ctx, name)
			if err != nil {
				return nil, err
			}
			if out[i] = []any{name, []any{state, urls}}; state == jobActive {
				active++
			}
		}
		if before < 0 {
			before = active
		}
		ended := func(c *store.Change) bool {
			return c.Task.IsZero() && slices.ContainsFunc(names, func(name string) bool { return jobpack.JobID(name) == c.Plan.ID })
		}
		if active == 0 || active < before || !heard(held, told, ended) {
			return &submitAnswer{Status: http.StatusOK, Body: out}, ctx.Err()
		}
	}
}

// jobState returns the state of a job, and the URLs of its outputs if it is ready: those of the tasks
// that no other task needs.
func (a *API) jobState(ctx context.Context, name string) (state string, urls [][]string, err error) {
	urls = [][]string{}
	p, err := a.st.Plan(ctx, plan.PlanID{ID: jobpack.JobID(name)})
	switch {
	case errors.Is(err, plan.ErrNotFound), err == nil && jobpack.JobName(p.Name, p.ID.String()) != name:
		return jobUnknown, urls, nil
	case err != nil:
		return "", nil, err
	case !p.State.Ended():
		return jobActive, urls, nil
	case p.State != plan.PlanSucceeded:
		return jobDead, urls, nil
	}
	needed, last := map[plan.TaskID]bool{}, []plan.TaskID{}
	err = store.EachTask(ctx, a.st, store.TaskQuery{Plan: p.ID, NoItems: true, Needs: true, Limit: api.MostPage}, func(t *plan.Task) error {
		for _, id := range t.Needs {
			needed[id] = true
		}
		last = append(last, t.ID)
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	for _, id := range slices.DeleteFunc(last, func(id plan.TaskID) bool { return needed[id] }) {
		t, err := a.st.Task(ctx, id)
		if err != nil {
			return "", nil, err
		}
		all, _ := rules.OutputURLs(t.Output) // of another plugin, it has none
		for _, url := range all {
			urls = append(urls, []string{url})
		}
	}
	return jobReady, urls, nil
}
