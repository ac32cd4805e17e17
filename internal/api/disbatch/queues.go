package disbatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// getPlugins is GET /plugins.
func (h *Handler) getPlugins(*http.Request) answer {
	return ok(append([]string{}, h.conf.Plugins()...))
}

// report is what is shown of a queue. Held, cancelled and orphaned tasks count as queued: every code from -2 down.
func report(q *store.QueueView) object {
	queued, running, completed := 0, 0, 0
	for status, n := range q.Statuses {
		switch {
		case status == plan.Unknown:
		case status.Active():
			running += n
		case status > 0:
			completed += n
		default:
			queued += n
		}
	}
	threads := any(nil)
	if q.Threads != nil {
		threads = *q.Threads
	}
	return object{
		"id": q.ID.String(), "plugin": q.Plugin, "name": q.Name, "threads": threads, "queued": queued, "running": running, "completed": completed,
	}
}

// reports returns what is shown of all queues.
func (h *Handler) reports(ctx context.Context) (list, error) {
	views, err := h.store.QueueViews(ctx)
	out := make(list, len(views))
	for i := range views {
		out[i] = report(&views[i])
	}
	return out, err
}

// getQueues is GET /queues.
func (h *Handler) getQueues(r *http.Request) answer {
	queues, err := h.reports(r.Context())
	if err != nil {
		return h.failedTo(r, "Could not get current queues", err)
	}
	return ok(queues)
}

// getQueue is GET /queues/:queue.
func (h *Handler) getQueue(r *http.Request) answer {
	word := r.PathValue("queue")
	queues, err := h.reports(r.Context())
	if err != nil {
		return h.failedTo(r, "Could not get current queues", err)
	}
	key := "name"
	if _, is := parseID(word); is {
		key = "id"
	}
	i := slices.IndexFunc(queues, func(q any) bool { return q.(object)[key] == word })
	if i < 0 {
		return answer{code: http.StatusNotFound, value: object{"error": "no queue with id or name " + word}}
	}
	return ok(queues[i])
}

// findQueue returns the id of the queue with that id, or name if it is none; plan.ErrNotFound if there is none.
func (h *Handler) findQueue(ctx context.Context, word string) (plan.QueueID, error) {
	id, is := parseID(word)
	queues, err := h.store.Queues(ctx)
	if err != nil {
		return plan.QueueID{}, err
	}
	for _, q := range queues {
		if is && q.ID.ID == id || !is && q.Name == word {
			return q.ID, nil
		}
	}
	return plan.QueueID{}, fmt.Errorf("no queue with id or name %s: %w", word, plan.ErrNotFound)
}

// postQueues is POST /queues.
func (h *Handler) postQueues(r *http.Request, given params) answer {
	name, isName := given.text("name")
	plugin, isPlugin := given.text("plugin")
	if !isName || !isPlugin || !given.truth("name") || !given.truth("plugin") {
		return bad(object{"error": "name and plugin required"})
	}
	if name, is := given.unknown("name", "plugin"); is {
		return bad(object{"error": "Invalid param", "param": name})
	}
	if !slices.Contains(h.conf.Plugins(), plugin) {
		return bad(object{"error": "Unknown plugin", "plugin": plugin})
	}
	if why := queueName(name); why != "" {
		return bad(object{"error": why})
	}
	id, err := h.store.AddQueue(r.Context(), name, plugin)
	if err != nil {
		h.failed(r, err)
		class, value := refused(err)
		value["result"] = object{insertOneResult: written(object{"inserted_id": nil})}
		return bad(object{class: value, "id": nil, "error": class + ": " + err.Error()})
	}
	auth.Changed(r.Context(), id.String())
	return ok(object{insertOneResult: written(object{"inserted_id": id.ID}), "id": id.ID})
}

// noName is what Disbatch says of what is no queue's name.
const noName = "name must be a string"

// queueName says why a text cannot be a queue's name, "" if it can. Names with other signs than those
// of a plan file are taken, as by Disbatch.
func queueName(s string) string {
	err := plan.CheckQueueName(s)
	switch {
	case s == "", s == "0": // which Perl takes for none
		return noName
	case err != nil:
		return noName + ": " + err.Error()
	}
	return ""
}

// postQueue is POST /queues/:queue.
func (h *Handler) postQueue(r *http.Request, given params) answer {
	if len(given) == 0 {
		return bad(object{"error": "no params"})
	}
	if name, is := given.unknown("threads", "name", "plugin"); is {
		return bad(object{"error": "unknown param", "param": name})
	}
	if _, more := given.unknown("threads"); more && !auth.May(r.Context(), auth.Submit) { // name and plugin are what its tasks do
		return answer{code: http.StatusForbidden, value: object{
			"error": fmt.Sprintf("name and plugin need the scope %s, threads %s", auth.Submit, auth.Operate), "code": string(auth.CodeForbidden),
		}}
	}
	var edit store.QueueEdit
	if v, there := given["plugin"]; there {
		plugin, is := given.text("plugin")
		if !is || !slices.Contains(h.conf.Plugins(), plugin) {
			return bad(object{"error": "unknown plugin", "plugin": v})
		}
		edit.Plugin = &plugin
	}
	if _, there := given["threads"]; there {
		threads, is := given.count("threads")
		if !is {
			return bad(object{"error": "threads must be a non-negative integer"})
		}
		edit.Threads = &threads
	}
	if _, there := given["name"]; there {
		name, is := given.text("name")
		if !is {
			return bad(object{"error": noName})
		}
		if why := queueName(name); why != "" {
			return bad(object{"error": why})
		}
		edit.Name = &name
	}
	there, changed, err := h.editQueue(r, edit)
	if err != nil {
		h.failed(r, err)
		class, value := refused(err)
		value["result"] = object{updateResult: updated(false, false)}
		return bad(object{class: value, "error": class + ": " + err.Error()})
	}
	if !there {
		return bad(object{updateResult: updated(false, false), "error": "no queue with id or name " + r.PathValue("queue")})
	}
	return ok(object{updateResult: updated(true, changed)})
}

func (h *Handler) editQueue(r *http.Request, edit store.QueueEdit) (there, changed bool, err error) {
	id, err := h.findQueue(r.Context(), r.PathValue("queue"))
	if err == nil {
		auth.Changed(r.Context(), id.String())
		changed, err = h.store.EditQueue(r.Context(), id, edit)
	}
	if errors.Is(err, plan.ErrNotFound) {
		return false, false, nil
	}
	return err == nil, changed, err
}

// deleteQueue is DELETE /queues/:queue.
func (h *Handler) deleteQueue(r *http.Request) answer {
	deleted, why := h.dropQueue(r, r.PathValue("queue"))
	if why != "" {
		return bad(object{deleteResult: deleted, "error": why})
	}
	return ok(object{deleteResult: deleted})
}

// dropQueue deletes a queue, or says why not.
func (h *Handler) dropQueue(r *http.Request, word string) (deleted object, why string) {
	id, err := h.findQueue(r.Context(), word)
	if err == nil {
		auth.Changed(r.Context(), id.String())
		err = h.store.DeleteQueue(r.Context(), id)
	}
	switch {
	case errors.Is(err, plan.ErrNotFound):
		return written(object{"deleted_count": 0}), "no queue with id or name " + word
	case err != nil:
		h.failed(r, err)
		return written(object{"deleted_count": 0}), err.Error()
	}
	return written(object{"deleted_count": 1}), ""
}
