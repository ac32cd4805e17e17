package disbatch

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// search is the last part of the path of a search, where else a queue stands.
const search = "search"

// addTasksRoutes adds the routes of Disbatch 4.0 for tasks, which Disbatch has in Disbatch::Web::Tasks.
func (h *Handler) addTasksRoutes() {
	find, queue := h.asked(smallBody, h.postSearch), h.asked(maxBody, h.postOldTasks)
	h.add(route{"POST", "/tasks/{queue}", func(r *http.Request) answer {
		if r.PathValue("queue") == search {
			return find(r)
		}
		return queue(r)
	}})
	h.add(route{"POST", "/tasks/{queue}/{collection...}", queue})
}

// postOldTasks is POST /tasks/:queue, with a list of params, and POST /tasks/:queue/:collection, with filter and params.
func (h *Handler) postOldTasks(r *http.Request, given params) answer {
	for _, name := range []string{"queue", "collection"} {
		if word := r.PathValue(name); word != "" {
			given[name] = encode(word, false)
		}
	}
	return h.createTasks(r, given)
}

// postSearch is POST /tasks/search.
func (h *Handler) postSearch(r *http.Request, given params) answer {
	const limit = 100
	options := params{}
	for _, name := range []string{"filter", "options"} {
		if !given.is(name) {
			given[name] = json.RawMessage("{}")
		}
	}
	if first(given["filter"]) != '{' || first(given["options"]) != '{' || json.Unmarshal(given["options"], &options) != nil {
		return bad(object{"error": "filter and options must be name/value objects"})
	}
	where, err := filter(given["filter"])
	q := store.DocumentQuery{Where: where, Limit: limit}
	for _, name := range options.names() {
		switch {
		case err != nil || !options.is(name):
		case name == "limit":
			if q.Limit, err = options.number(name); q.Limit > limit {
				return bad(object{"error": "limit cannot exceed 100"})
			}
		case name == "skip":
			q.Skip, err = options.number(name)
		case name == "sort":
			q.Sort, err = options.sortKeys(name)
		case name == "projection" || name == "fields":
			q.Fields, err = options.fields(name)
		default:
			err = refusef("the option %q is not known here; there are limit, skip, sort and projection", name)
		}
	}
	if err != nil {
		return h.failed(r, err)
	}
	if given.truth("count") {
		n, err := h.store.CountTaskDocuments(r.Context(), where)
		if err != nil {
			return h.failed(r, err)
		}
		return ok(object{"count": n})
	}
	terse := !given.is("terse") || given.truth("terse")
	text, _, err := h.searchTasks(r.Context(), q, shownTask{h: h, terse: terse, full: true, epoch: true}, false, given.truth("pretty"))
	if err != nil {
		return h.failed(r, err)
	}
	return answer{text: text}
}

// addV3Routes adds the routes of Disbatch 3, which Disbatch has in Disbatch::Web::V3. None changes anything by GET.
func (h *Handler) addV3Routes() {
	for _, r := range []route{
		{"GET", "/scheduler-json", h.getQueues},
		{"POST", "/set-queue-attr-json", h.asked(smallBody, h.setQueueAttr)},
		{"POST", "/start-queue-json", h.asked(smallBody, h.startQueue)},
		{"POST", "/delete-queue-json", h.asked(smallBody, h.deleteQueueV3)},
		{"GET", "/queue-prototypes-json", h.prototypes},
		{"POST", "/queue-create-tasks-json", h.asked(maxBody, h.createTasksV3)},
		{"POST", "/queue-create-tasks-from-query-json", h.asked(maxBody, h.createFromQuery)},
		{"POST", "/search-tasks-json", h.asked(smallBody, h.searchV3)},
	} {
		h.add(r)
	}
	h.answering["POST /search-tasks-json"] = true
}

func badList(values ...any) answer { return answer{code: http.StatusBadRequest, value: list(values)} }

// asJSON returns a parameter that is JSON, or a text of it.
func (p params) asJSON(name string) json.RawMessage {
	if s, is := p.text(name); is && first(p[name]) == '"' {
		if !json.Valid([]byte(s)) {
			return nil
		}
		return json.RawMessage(s)
	}
	return p[name]
}

// setQueueAttr is POST /set-queue-attr-json.
func (h *Handler) setQueueAttr(r *http.Request, given params) answer {
	no := func(why string) answer { return bad(object{"success": 0, "error": why}) }
	switch attr, _ := given.text("attr"); {
	case attr != "threads":
		return no("Invalid attr")
	case !given.is("value"):
		return no("You must supply a value")
	case !given.is("queueid"):
		return no("You must supply a queueid")
	}
	threads, is := given.count("value")
	if !is {
		return no("threads must be a non-negative integer")
	}
	id, is := asID(given["queueid"])
	changed, err := false, plan.ErrNotFound
	if is {
		auth.Changed(r.Context(), id.String())
		changed, err = h.store.EditQueue(r.Context(), plan.QueueID{ID: id}, store.QueueEdit{Threads: &threads})
	}
	if err != nil {
		h.failed(r, err)
		return bad(object{"success": 0, updateResult: updated(false, false), "error": "no such queue: " + err.Error()})
	}
	return ok(object{"success": 1, updateResult: updated(true, changed)})
}

// types returns the plugins that queues may have, and those that queues have.
func (h *Handler) types(r *http.Request) (object, error) {
	queues, err := h.store.Queues(r.Context())
	types := object{}
	for _, q := range queues {
		types[q.Plugin] = q.Plugin
	}
	for _, p := range h.conf.Plugins() {
		types[p] = p
	}
	return types, err
}

// prototypes is GET /queue-prototypes-json.
func (h *Handler) prototypes(r *http.Request) answer {
	types, err := h.types(r)
	if err != nil {
		return h.failed(r, err)
	}
	return ok(types)
}

// startQueue is POST /start-queue-json.
func (h *Handler) startQueue(r *http.Request, given params) answer {
	plugin, isPlugin := given.text("type")
	name, isName := given.text("name")
	if !isPlugin || !isName {
		return badList(0, "type and name required")
	}
	switch why := queueName(name); why {
	case "":
	case noName:
		return badList(0, "type and name required")
	default:
		return badList(0, why)
	}
	types, err := h.types(r)
	if err != nil {
		return h.failed(r, err)
	}
	if types[plugin] == nil {
		return badList(0, "unknown type")
	}
	id, err := h.store.AddQueue(r.Context(), name, plugin)
	if err != nil {
		h.failed(r, err)
		class, value := refused(err)
		return badList(0, nil, object{"success": 0, class: value, "error": class + ": " + err.Error()})
	}
	auth.Changed(r.Context(), id.String())
	return ok(list{1, id.ID, object{"success": 1, insertOneResult: written(object{"inserted_id": id.ID})}})
}

// deleteQueueV3 is POST /delete-queue-json.
func (h *Handler) deleteQueueV3(r *http.Request, given params) answer {
	id, is := asID(given["id"])
	if !given.is("id") {
		return badList(0, "id required")
	}
	deleted, why := written(object{"deleted_count": 0}), "no such queue"
	if is {
		deleted, why = h.dropQueue(r, id.String())
	}
	if why != "" {
		return badList(0, object{"success": 0, deleteResult: deleted, "error": why})
	}
	return ok(list{1, object{"success": 1, deleteResult: deleted}})
}

// queueV3 returns the queue that a request names by id or name.
func (h *Handler) queueV3(r *http.Request, given params) (plan.QueueID, error) {
	if id, is := asID(given["queueid"]); is {
		return h.findQueue(r.Context(), id.String())
	}
	word, _ := given.text("queueid")
	return h.findQueue(r.Context(), word)
}

// createdV3 queues tasks for the queue that a request names, and returns what was made.
func (h *Handler) createdV3(r *http.Request, given params, tasks []json.RawMessage) (inserted list, no *answer) {
	queue, err := h.queueV3(r, given)
	if errors.Is(err, plan.ErrNotFound) {
		a := ok(list{0, "Queue not found"})
		return nil, &a
	}
	if err == nil {
		inserted, err = h.insert(r.Context(), queue, tasks)
	}
	if err != nil {
		a := h.failed(r, err, list{0, err.Error()})
		return nil, &a
	}
	return inserted, nil
}

// createTasksV3 is POST /queue-create-tasks-json.
func (h *Handler) createTasksV3(r *http.Request, given params) answer {
	if !given.is("queueid") || !given.is("object") {
		return badList(0, "queueid and object required")
	}
	text := given.asJSON("object")
	if first(text) != '[' {
		return ok(list{0, "object param must be a JSON array"})
	}
	tasks, err := items(text)
	if err != nil || slices.ContainsFunc(tasks, func(t json.RawMessage) bool { return first(t) != '{' }) {
		return ok(list{0, "object param must be a JSON array of objects"})
	}
	inserted, no := h.createdV3(r, given, tasks)
	if no != nil {
		return *no
	}
	result := object{"success": 1, insertManyResult: written(object{"acknowledged": 1, "inserted": inserted})}
	if len(inserted) == 0 {
		result["success"], result["error"] = 0, "Unknown error"
		return badList(0, 0, result)
	}
	return ok(append(append(list{1, len(inserted)}, inserted...), result))
}

// createFromQuery is POST /queue-create-tasks-from-query-json.
func (h *Handler) createFromQuery(r *http.Request, given params) answer {
	for _, name := range []string{"queueid", "collection", "jsonfilter", "params"} {
		if !given.is(name) {
			return badList(0, "queueid, collection, jsonfilter, and params required")
		}
	}
	given["filter"], given["params"] = given.asJSON("jsonfilter"), given.asJSON("params")
	if first(given["filter"]) != '{' || first(given["params"]) != '{' {
		return ok(list{0, "jsonfilter and params must be JSON objects"})
	}
	if _, err := h.queueV3(r, given); errors.Is(err, plan.ErrNotFound) {
		return ok(list{0, "Queue not found"})
	}
	tasks, err := h.fromCollection(r.Context(), given)
	if err != nil {
		return h.failed(r, err, list{0, err.Error()})
	}
	inserted, no := h.createdV3(r, given, tasks)
	switch {
	case no != nil:
		return *no
	case len(inserted) == 0:
		return badList(0, 0)
	}
	return ok(list{1, len(inserted)})
}

// searchV3 is POST /search-tasks-json.
func (h *Handler) searchV3(r *http.Request, given params) answer {
	no := func(err error) answer { return h.failed(r, err, list{0, err.Error()}) }
	fields := params{}
	if given.is("filter") {
		if text := given.asJSON("filter"); first(text) != '{' || json.Unmarshal(text, &fields) != nil {
			return ok(list{0, "JSON object required for filter"})
		}
	}
	if given.truth("queue") {
		fields["queue"] = given["queue"]
	}
	if fields.truth("id") {
		fields["_id"] = fields["id"]
		delete(fields, "id")
	}
	if s, is := fields.text("status"); is {
		if n, is := asNumber(s); is {
			fields["status"] = json.RawMessage(n)
		}
	}
	for _, name := range oidFields {
		if _, is := asID(fields[name]); fields.is(name) && !is {
			return ok(list{0, "Bad OID passed: " + name})
		}
	}
	where, err := filterOf(fields)
	q := store.DocumentQuery{Where: where}
	if err == nil {
		q.Limit, err = given.number("limit")
	}
	if err == nil {
		q.Skip, err = given.number("skip")
	}
	if err != nil {
		return no(err)
	}
	if given.truth("count") {
		n, err := h.store.CountTaskDocuments(r.Context(), where)
		if err != nil {
			return no(err)
		}
		return ok(list{1, n})
	}
	text, _, err := h.searchTasks(r.Context(), q, shownTask{h: h, terse: given.truth("terse"), full: true, v3: true}, false, false)
	if err != nil {
		return no(err)
	}
	return answer{text: text}
}

// makeV3 is make as Disbatch 3 has it: what is null is terse as well, and instants are there as whole seconds and as text.
func (s *shownTask) makeV3(doc store.Document) {
	for _, name := range []string{"stdout", "stderr"} {
		if _, file := doc[name].(plan.ID); s.terse && !file {
			doc[name] = terseMode
		}
	}
	for _, name := range []string{"ctime", "mtime"} {
		if at, is := doc[name].(time.Time); is {
			doc[name+"_str"], doc[name] = instant(at), at.Unix()
		}
	}
}
