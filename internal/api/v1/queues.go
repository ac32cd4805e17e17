package v1

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// InQueue is the part of a path that names a queue.
type InQueue struct {
	Queue string `path:"queue" minLength:"1" doc:"Its id or name."`
}

type queueAnswer struct {
	ETag string `header:"ETag"`
	Body api.Queue
}

func (a *API) queues() {
	const tag = "queues"
	serve(a, endpoint{method: "GET", path: "/queues", id: "list-queues", summary: "List queues, by name", tag: tag, scope: Read}, a.listQueues)
	serve(a, endpoint{
		method: "POST", path: "/queues", id: "create-queue", summary: "Make a queue", tag: tag, scope: Submit, status: 201, errors: []int{409, 422},
		doc: "With ensure, an existing queue of that name is returned as it is.",
	}, a.createQueue)
	serve(a, endpoint{method: "GET", path: "/queues/{queue}", id: "get-queue", summary: "Read a queue", tag: tag, scope: Read, errors: []int{404}}, a.getQueue)
	serve(a, endpoint{
		method: "PUT", path: "/queues/{queue}", id: "set-queue", summary: "Set a queue's limits", tag: tag, scope: Operate, errors: []int{404, 412, 422},
		doc: "All limits at once. If on_lost, secrets, keep, group, weight, rate or defaults is left out, it stays as it is, and null " +
			"takes it away. Nodes follow within a second, and running tasks continue. With " +
			"If-Match, only if the settings are still those of that ETag, or already have the new " +
			"values. To change params of defaults needs the scope submit, because they are what tasks " +
			"do. To remove a name from secrets needs the scope admin, because everybody who may " +
			"read would then see the values.",
	}, a.setQueue)
	serve(a, endpoint{
		method: "DELETE", path: "/queues/{queue}", id: "delete-queue", summary: "Delete a queue", tag: tag, scope: Admin, status: 204, errors: []int{404, 409, 501},
		doc: "Refused while the queue has an unfinished task of a plan, or finished tasks that are to be handed over. Its other tasks stay, and nobody claims them. Running tasks continue.",
	}, a.deleteQueue)
}

func (a *API) listQueues(ctx context.Context, in *struct {
	Counts bool `query:"counts" default:"true" doc:"Count the queued and active tasks."`
}) (*api.QueuesAnswer, error) {
	found, err := a.st.Queues(ctx)
	if err == nil && in.Counts {
		err = a.st.CountQueues(ctx, found)
	}
	if err != nil {
		return nil, err
	}
	out := &api.QueuesAnswer{Queues: api.Each(found, api.QueueOf)}
	if s, ok := a.st.(store.Refuser); ok && in.Counts {
		if out.Refused, err = s.Refused(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (a *API) queueNames(ctx context.Context) (map[plan.QueueID]string, error) {
	found, err := a.st.Queues(ctx)
	names := make(map[plan.QueueID]string, len(found))
	for i := range found {
		names[found[i].ID] = found[i].Name
	}
	return names, err
}

// findQueue returns the queue that a word names, uncounted. Where an id and a name fit, the id is meant.
func (a *API) findQueue(ctx context.Context, word string) (plan.Queue, error) {
	found, err := a.st.Queues(ctx)
	if err != nil {
		return plan.Queue{}, err
	}
	i := slices.IndexFunc(found, func(q plan.Queue) bool { return q.ID.String() == word })
	if i < 0 {
		i = slices.IndexFunc(found, func(q plan.Queue) bool { return q.Name == word })
	}
	if i < 0 {
		return plan.Queue{}, notThere("queue", word)
	}
	return found[i], nil
}

func (a *API) answerQueue(ctx context.Context, q plan.Queue) (*queueAnswer, error) {
	counted := []plan.Queue{q}
	if err := a.st.CountQueues(ctx, counted); err != nil {
		return nil, err
	}
	return &queueAnswer{api.VersionOf(&q), api.QueueOf(&counted[0])}, nil
}

func (a *API) getQueue(ctx context.Context, in *InQueue) (*queueAnswer, error) {
	q, err := a.findQueue(ctx, in.Queue)
	if err != nil {
		return nil, err
	}
	return a.answerQueue(ctx, q)
}

func (a *API) deleteQueue(ctx context.Context, in *InQueue) (*struct{}, error) {
	st, ok := a.st.(store.QueueDeleter)
	if !ok {
		return nil, api.NewProblem(http.StatusNotImplemented, api.CodeUnsupported, "this store does not delete queues")
	}
	q, err := a.findQueue(ctx, in.Queue)
	if err != nil {
		return nil, err
	}
	auth.Changed(ctx, q.ID.String())
	return nil, st.DeleteQueue(ctx, q.ID)
}

func (a *API) createQueue(ctx context.Context, in *struct {
	Ensure bool `query:"ensure"`
	Body   api.NewQueue
}) (*queueAnswer, error) {
	q := plan.Queue{ID: in.Body.ID, Name: in.Body.Name, Plugin: in.Body.Plugin}
	if err := compiler.CheckQueueName("queue", q.Name); err != nil {
		return nil, api.InvalidAt("body.name", "%v", err)
	}
	if err := compiler.CheckPluginName(q.Plugin); err != nil {
		return nil, api.InvalidAt("body.plugin", "%v", err)
	}
	if q.ID.IsZero() {
		q.ID.ID = plan.NewID(time.Now())
	}
	if err := cmp.Or(checkDefaults(&in.Body.Defaults), in.Body.SetQueue.Apply(&q), a.checkDefault(&q)); err != nil {
		return nil, err
	}
	create := a.st.CreateQueue
	if in.Ensure {
		create = a.st.EnsureQueue
	}
	inGroup := q.Group
	q, err := create(ctx, q)
	if errors.Is(err, plan.ErrExists) {
		err = placed(api.NewProblem(http.StatusConflict, "exists", "queue %q is there already; GET %s/queues/NAME shows it, and PUT changes it", in.Body.Name, api.Root), "body.name")
	}
	if err != nil {
		return nil, ungrouped(err, inGroup)
	}
	auth.Changed(ctx, q.ID.String())
	return a.answerQueue(ctx, q)
}

type setQueue struct {
	InQueue
	IfMatch IfMatch `header:"If-Match"`
	Body    api.QueueSettings
}

func (a *API) setQueue(ctx context.Context, in *setQueue) (*queueAnswer, error) {
	return again(func() (*queueAnswer, error) { return a.trySetQueue(ctx, in) })
}

func (a *API) trySetQueue(ctx context.Context, in *setQueue) (*queueAnswer, error) {
	was, err := a.findQueue(ctx, in.Queue)
	if err != nil {
		return nil, err
	}
	auth.Changed(ctx, was.ID.String())
	q := was
	if err := cmp.Or(checkDefaults(&in.Body.Defaults), in.Body.Apply(&q)); err != nil {
		return nil, err
	}
	if err := compiler.CheckSaid(&in.Body.Defaults, in.Body.Said("defaults")); err != nil {
		return nil, api.InvalidAt("body.defaults", "%v", err)
	}
	if err := secret.CheckUnhidden(&was, &q, may(ctx, Admin)); err != nil {
		return nil, api.NewProblem(http.StatusForbidden, api.CodeForbidden, "%v", err)
	}
	if !jsontext.Same(was.Defaults.Params, q.Defaults.Params) && !may(ctx, Submit) {
		return nil, api.NewProblem(http.StatusForbidden, api.CodeForbidden, "params among the defaults of queue %q change what its tasks do, which needs the scope submit", was.Name)
	}
	if !jsontext.Same(was.Defaults.Params, q.Defaults.Params) {
		if err := a.checkDefault(&q); err != nil {
			return nil, err
		}
	}
	free := in.IfMatch.any()
	switch {
	case free, in.IfMatch.has(api.VersionOf(&was)):
		err = a.st.ChangeQueue(ctx, was, q) // what the body leaves out is as it was read
	case q.SameSettings(&was): // asked again, since an answer was lost
	default:
		err = plan.ErrConflict
	}
	if !free && errors.Is(err, plan.ErrConflict) {
		return nil, unlike("queue", was.Name)
	}
	if err != nil {
		return nil, ungrouped(err, q.Group)
	}
	return a.answerQueue(ctx, q)
}

// ungrouped gives its place to the error of a group that is not there.
func ungrouped(err error, group string) error {
	if group != "" && errors.Is(err, plan.ErrNotFound) {
		return placed(err, "body.group")
	}
	return err
}

func checkDefaults(d *plan.TaskDefaults) error {
	if err := compiler.CheckDefaults(d); err != nil {
		return api.InvalidAt("body.defaults", "%v", err)
	}
	return nil
}

// checkDefault refuses params among the defaults of a queue that no task of it can have.
func (a *API) checkDefault(q *plan.Queue) error {
	if name, err := compiler.RefusedDefault(q, a.c.Check); err != nil {
		return api.InvalidAt("body.defaults.params."+name, "no task of queue %q can have it: %v", q.Name, err)
	}
	return nil
}

// may reports whether who asks has the scope. Where no guard stands before the API it asks nobody who they are.
func may(ctx context.Context, scope auth.Scope) bool {
	who := auth.From(ctx)
	return who.By == "" || who.May(scope)
}
