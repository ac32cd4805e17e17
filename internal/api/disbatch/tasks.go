package disbatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// maxAnswer is how many bytes the documents of one answer may have.
const maxAnswer = 256 << 20

const tasksTitle = "Disbatch Tasks Query"

// indexes returns by which fields tasks may be asked for: those of each index in its order, but of an index that another one begins with
// nothing. Descending is as good as ascending. _id is called id.
func (h *Handler) indexes(ctx context.Context) ([][]string, error) {
	found, err := h.store.TaskIndexes(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string][]string{} // as Disbatch calls them, which is their order
	for _, i := range found {
		fields := slices.Clone(i.Fields)
		name := "_id_"
		if !slices.Equal(fields, []string{"_id"}) {
			name = strings.Join(fields, "_1_") + "_1"
		}
		for k, f := range fields {
			if f == "_id" {
				fields[k] = "id"
			}
		}
		byName[name] = fields
	}
	params := [][]string{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		fields := byName[name]
		longer := func(other []string) bool {
			return len(other) > len(fields) && slices.Equal(other[:len(fields)], fields)
		}
		if !slices.ContainsFunc(slices.Sorted(maps.Keys(byName)), func(n string) bool { return longer(byName[n]) }) {
			params = append(params, fields)
		}
	}
	return params, nil
}

// notIndexed returns the parameters that no index serves: one serves a parameter if all fields to its left are parameters as well.
func notIndexed(given params, indexes [][]string) []string {
	invalid := []string{}
	for _, name := range given.names() {
		serves := func(fields []string) bool {
			at := slices.Index(fields, name)
			return at >= 0 && !slices.ContainsFunc(fields[:at], func(f string) bool { _, there := given[f]; return !there })
		}
		if !slices.ContainsFunc(indexes, serves) {
			invalid = append(invalid, name)
		}
	}
	return invalid
}

// getTasks is GET /tasks.
func (h *Handler) getTasks(r *http.Request) answer {
	given, options, err := parse(r, smallBody)
	if err != nil {
		return h.failed(r, err)
	}
	indexes, err := h.indexes(r.Context())
	if err != nil {
		return h.failed(r, err)
	}
	page := wantsPage(r)
	if page && len(given) == 0 && len(options) == 0 {
		return answer{page: queryPage(indexes, "")}
	}
	wrong := func(text string, more object) answer {
		if page {
			return answer{code: http.StatusBadRequest, page: queryPage(indexes, text)}
		}
		more["error"], more["indexes"], more["title"], more["path"] = text, indexes, tasksTitle, r.URL.Path
		return answer{code: http.StatusBadRequest, value: more, pretty: options.truth(".pretty")}
	}
	if invalid := notIndexed(given, indexes); len(invalid) > 0 {
		return wrong("non-indexed params given", object{"invalid_params": invalid})
	}
	where, err := given.query()
	var q store.DocumentQuery
	if err == nil {
		q, err = options.documentQuery()
	}
	if err != nil {
		return wrong(err.Error(), object{})
	}
	q.Where = where
	if options.truth(".count") {
		n, err := h.store.CountTaskDocuments(r.Context(), where)
		if err != nil {
			return h.failed(r, err)
		}
		if page {
			return answer{page: resultsPage(tasksTitle, []byte(fmt.Sprint(n)), n)}
		}
		return answer{value: object{"count": n}, pretty: options.truth(".pretty")}
	}
	if len(where) == 0 && q.Limit == 0 {
		return wrong("refusing to return everything - include one or more indexed search restrictions", object{})
	}
	shown := shownTask{h: h, terse: options.truth(".terse"), full: options.truth(".full"), epoch: options.truth(".epoch")}
	text, n, err := h.searchTasks(r.Context(), q, shown, q.Limit == 1, page || options.truth(".pretty"))
	switch {
	case err != nil:
		return h.failed(r, err)
	case page:
		return answer{page: resultsPage(tasksTitle, text, n)}
	case n == 0:
		return answer{value: object{}, pretty: options.truth(".pretty")}
	}
	return answer{text: text}
}

// documentQuery reads the options of a search.
func (p params) documentQuery() (q store.DocumentQuery, err error) {
	if q.Limit, err = p.number(".limit"); err != nil {
		return q, err
	}
	if q.Skip, err = p.number(".skip"); err != nil {
		return q, err
	}
	q.Fields, err = p.fields(".fields")
	return q, err
}

// searchTasks returns the JSON of the matching tasks, and their number. The JSON is a list, or the
// first task if single is set.
func (h *Handler) searchTasks(ctx context.Context, q store.DocumentQuery, shown shownTask, single, pretty bool) (text []byte, n int, err error) {
	e := encoder{pretty: pretty}
	depth := 1
	if single {
		depth = 0
	} else {
		e.b = append(e.b, '[')
	}
	err = h.store.TaskDocuments(ctx, q, func(doc store.Document) error {
		if err := shown.make(ctx, doc); err != nil {
			return err
		}
		if !single {
			e.next(n, depth)
		}
		e.members(doc, depth)
		n++
		if len(e.b) > maxAnswer {
			return refusef("the answer has more than %d bytes; ask for fewer tasks by .limit, for less of each by .fields, or with .terse", maxAnswer)
		}
		return nil
	})
	if !single {
		e.end(n, 0, ']')
	}
	if pretty {
		e.b = append(e.b, '\n')
	}
	return e.b, n, err
}

// shownTask says how a task's document is shown.
type shownTask struct {
	h     *Handler
	terse bool // without the output
	full  bool // with the output in files
	epoch bool // instants in seconds since 1970
	v3    bool // as Disbatch 3 had it
}

const terseMode = "[terse mode]"

// make changes the document accordingly.
func (s *shownTask) make(ctx context.Context, doc store.Document) error {
	for name, stream := range map[string]plan.Stream{"stdout": plan.Stdout, "stderr": plan.Stderr} {
		switch v := doc[name].(type) {
		case plan.ID:
			if !s.full || s.terse {
				continue
			}
			text, err := s.h.printed(ctx, doc, stream)
			if err != nil {
				if small := new(badRequest); errors.As(err, &small) {
					return err
				}
				s.h.conf.Log.WarnContext(ctx, "no content of what a task printed", "task", fmt.Sprint(doc["_id"]), "stream", name, "err", err)
				continue // the id stays
			}
			doc[name] = text
		case nil:
		case string:
			if s.terse && v != "" && v != "0" {
				doc[name] = terseMode
			}
		default:
			if s.terse {
				doc[name] = terseMode
			}
		}
	}
	for _, name := range []string{"ctime", "mtime"} {
		if at, is := doc[name].(time.Time); is && s.epoch {
			doc[name] = float64(at.UnixMilli()) / 1000
		}
	}
	if s.v3 {
		s.makeV3(doc)
	}
	return nil
}

// printed reads what a task printed.
func (h *Handler) printed(ctx context.Context, doc store.Document, stream plan.Stream) (string, error) {
	id, is := doc["_id"].(plan.ID)
	if !is {
		return "", errors.New("the task's id is no ObjectID, or was not asked for")
	}
	in, _, err := h.store.OpenResult(ctx, plan.TaskID{ID: id}, stream)
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxAnswer+1))
	if len(text) > maxAnswer {
		return "", refusef("what task %s printed has more than %d bytes", id, maxAnswer)
	}
	return string(text), err
}

// getTask is GET /tasks/:id.
func (h *Handler) getTask(r *http.Request) answer {
	const title = "Disbatch Single Task Query"
	word := r.PathValue("id")
	id, is := parseID(word)
	if !is {
		return answer{code: http.StatusNotFound, value: object{"error": "no task with id " + word}, pretty: true}
	}
	q := store.DocumentQuery{Where: []store.Condition{{Field: "_id", Any: []any{id}}}, Limit: 1}
	text, n, err := h.searchTasks(r.Context(), q, shownTask{h: h}, true, true)
	if err != nil {
		return h.failed(r, err)
	}
	a := answer{text: text}
	switch page := wantsPage(r); {
	case page:
		a = answer{page: resultsPage(title, text, n)}
	case n == 0:
		a = answer{value: object{"error": "no task with id " + word}, pretty: true}
	}
	if n == 0 {
		a.code = http.StatusNotFound
	}
	return a
}

// postTasks is POST /tasks.
func (h *Handler) postTasks(r *http.Request) answer {
	given, options, err := parse(r, maxBody)
	if err != nil {
		return h.failed(r, err)
	}
	if len(options) > 0 {
		return bad(object{"error": "invalid parameters passed"})
	}
	return h.createTasks(r, given)
}

// createTasks makes tasks as a request gives them: one, a list of them, or one for each document of a collection.
func (h *Handler) createTasks(r *http.Request, given params) answer {
	word, _ := given.text("queue")
	queue, err := h.findQueue(r.Context(), word)
	if errors.Is(err, plan.ErrNotFound) {
		return bad(object{"error": "queue not found"})
	}
	if err != nil {
		return h.failed(r, err)
	}
	var tasks []json.RawMessage
	kind := first(given["params"])
	switch names := strings.Join(given.names(), ","); {
	case names == "params,queue" && (kind == '{' || kind == '['):
		if tasks, err = taskParams(given["params"]); err == nil && len(tasks) == 0 {
			err = refusef("'params' must be a JSON array of task params objects")
		}
	case names == "collection,filter,params,queue" && kind == '{':
		tasks, err = h.fromCollection(r.Context(), given)
	default:
		err = refusef("invalid parameters passed")
	}
	if err != nil {
		return h.failed(r, err)
	}
	inserted, err := h.insert(r.Context(), queue, tasks)
	if mistake := new(badRequest); errors.As(err, &mistake) {
		return h.failed(r, err)
	}
	if err != nil {
		h.failed(r, err)
		class, value := refused(err)
		return bad(object{class: value, "error": err.Error()})
	}
	result := written(object{"acknowledged": 1, "inserted": inserted})
	if len(inserted) == 0 {
		return bad(object{insertManyResult: result, "error": "Unknown error"})
	}
	return ok(object{insertManyResult: result})
}

// taskParams reads the params of one task, or of a list of them.
func taskParams(v json.RawMessage) ([]json.RawMessage, error) {
	tasks, err := items(v)
	empty := false
	for _, t := range tasks {
		var fields params
		if first(t) != '{' || json.Unmarshal(t, &fields) != nil {
			return nil, refusef("'params' must be a JSON array of task params objects")
		}
		empty = empty || len(fields) == 0
	}
	if empty {
		return nil, refusef("'params' must be a JSON array of task params objects with key/value pairs")
	}
	return tasks, err
}

// insert queues tasks with these params.
func (h *Handler) insert(ctx context.Context, queue plan.QueueID, all []json.RawMessage) (inserted list, err error) {
	inserted = list{}
	if len(all) == 0 {
		return inserted, nil
	}
	if err := h.check(ctx, queue, all); err != nil {
		return nil, err
	}
	now, err := h.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	ids := plan.NewIDs(now, len(all))
	tasks := make([]plan.Task, len(all))
	for i, p := range all {
		tasks[i] = plan.Task{ID: plan.TaskID{ID: ids.Next()}, Queue: queue, Params: p}
		inserted = append(inserted, object{"_id": tasks[i].ID.ID, "index": i})
		auth.Changed(ctx, tasks[i].ID.String())
	}
	return inserted, h.store.AddTasks(ctx, plan.PlanID{}, tasks)
}

// check refuses params with which no attempt could succeed, as the plugin of the queue tells.
func (h *Handler) check(ctx context.Context, queue plan.QueueID, all []json.RawMessage) error {
	if h.conf.Check == nil {
		return nil
	}
	queues, err := h.store.Queues(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == queue })
	if i < 0 {
		return nil // AddTasks refuses it
	}
	spec := plan.Spec{Tasks: make([]plan.TaskSpec, len(all))}
	for n, p := range all {
		spec.Tasks[n] = plan.TaskSpec{Plugin: queues[i].Plugin, Params: p}
	}
	for _, p := range h.conf.Check(&spec) {
		return refusef("task %d: %s", p.Task, strings.TrimPrefix(p.Message, `task "": `))
	}
	return nil
}

var documentField = regexp.MustCompile(`\Adocument\.(.*)\z`)

// fromCollection makes the params of a task for each document of a collection that the filter
// selects. A text like "document.FIELD" becomes the value of that field, or null.
func (h *Handler) fromCollection(ctx context.Context, given params) ([]json.RawMessage, error) {
	if first(given["filter"]) != '{' {
		return nil, refusef("'filter' must be a JSON object")
	}
	where, err := filter(given["filter"])
	if err != nil {
		return nil, err
	}
	collection, _ := given.text("collection")
	if first(given["collection"]) != '"' || !given.truth("collection") {
		return nil, refusef("'collection' required and must be a scalar (string)'")
	}
	template, err := jsontext.Decode(given["params"])
	if err != nil {
		return nil, refusef("'params' must be a JSON object: %v", err)
	}
	from := map[string]string{} // fields of the document by names of params
	fields := map[string]bool{}
	for name, v := range template.(object) {
		if s, is := v.(string); is {
			if m := documentField.FindStringSubmatch(s); m != nil {
				if from[name] = m[1]; fieldName(m[1]) {
					fields[m[1]] = true
				}
			}
		}
	}
	if len(fields) == 0 {
		fields["_id"] = true
	}
	var tasks []json.RawMessage
	bytes := 0
	err = h.store.CollectionDocuments(ctx, collection, store.DocumentQuery{Where: where, Fields: overlap(fields)}, func(doc store.Document) error {
		task := object{}
		for name, v := range template.(object) {
			if field, is := from[name]; is {
				v = doc[field]
			}
			task[name] = v
		}
		tasks = append(tasks, encode(task, false))
		if bytes += len(tasks[len(tasks)-1]); bytes > maxAnswer {
			return refusef("the tasks have more than %d bytes together; make them in parts", maxAnswer)
		}
		return nil
	})
	if errors.Is(err, plan.ErrNotFound) {
		return nil, refusef("collection %q cannot be read", collection)
	}
	return tasks, err
}
