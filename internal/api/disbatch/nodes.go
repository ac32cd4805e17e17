package disbatch

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// nodes returns the documents of nodes as they are shown: with the id as text, and the instant of the last beat in milliseconds.
func (h *Handler) nodes(ctx context.Context) (list, error) {
	docs, err := h.store.NodeDocuments(ctx)
	nodes := make(list, len(docs))
	for i, doc := range docs {
		if id, ok := doc["_id"].(plan.ID); ok {
			doc["id"] = id.String()
		}
		if at, ok := doc["timestamp"].(time.Time); ok {
			doc["timestamp"] = at.UnixMilli()
		}
		nodes[i] = doc
	}
	return nodes, err
}

// findNode returns the node that a path names, by its id if it looks like one, else by its name; nil if there is none.
func (h *Handler) findNode(r *http.Request) (store.Document, string, error) {
	word := r.PathValue("node")
	nodes, err := h.nodes(r.Context())
	key := "node"
	if _, is := parseID(word); is {
		key = "id"
	}
	i := slices.IndexFunc(nodes, func(n any) bool { return n.(object)[key] == word })
	if err != nil || i < 0 {
		return nil, word, err
	}
	return nodes[i].(object), word, nil
}

// getNodes is GET /nodes.
func (h *Handler) getNodes(r *http.Request) answer {
	nodes, err := h.nodes(r.Context())
	if err != nil {
		return h.failedTo(r, "Could not get current nodes", err)
	}
	return ok(nodes)
}

// getNode is GET /nodes/:node.
func (h *Handler) getNode(r *http.Request) answer {
	node, word, err := h.findNode(r)
	switch {
	case err != nil:
		return h.failedTo(r, "Could not get node "+word, err)
	case node == nil:
		return answer{code: http.StatusNotFound, value: object{"error": "no node with id or name " + word}}
	}
	return ok(node)
}

// postNode is POST /nodes/:node.
func (h *Handler) postNode(r *http.Request, given params) answer {
	if len(given) == 0 {
		return bad(object{"error": "No params"})
	}
	if name, is := given.unknown("maxthreads"); is {
		return bad(object{"error": "Invalid param", "param": name})
	}
	var threads *int
	if given.is("maxthreads") {
		n, is := given.count("maxthreads")
		if !is {
			return bad(object{"error": "maxthreads must be a non-negative integer or null"})
		}
		threads = &n
	}
	node, _, err := h.findNode(r)
	there, changed := false, false
	if err == nil && node != nil {
		name, _ := node["node"].(string)
		auth.Changed(r.Context(), name)
		there, changed, err = h.store.LimitNode(r.Context(), plan.NodeName(name), threads)
	}
	if err != nil {
		return h.failed(r, err)
	}
	result := updated(there, changed)
	if !there {
		return bad(object{updateResult: result, "error": result})
	}
	return ok(object{updateResult: result})
}

// The names of results of writes in Perl's MongoDB, which clients look for.
const (
	updateResult     = "MongoDB::UpdateResult"
	insertOneResult  = "MongoDB::InsertOneResult"
	insertManyResult = "MongoDB::InsertManyResult"
	deleteResult     = "MongoDB::DeleteResult"
	duplicateKey     = "MongoDB::DuplicateKeyError"
	databaseError    = "MongoDB::DatabaseError"
)

// written is the result of a write.
func written(fields object) object {
	fields["write_concern_errors"], fields["write_errors"] = list{}, list{}
	return fields
}

func updated(matched, modified bool) object {
	count := map[bool]int{true: 1}
	return written(object{"matched_count": count[matched], "modified_count": count[modified], "upserted_id": nil})
}

// refused returns the name and the value under which an answer shows an error.
func refused(err error) (class string, value object) {
	if errors.Is(err, plan.ErrExists) {
		return duplicateKey, object{"code": 11000, "message": err.Error()}
	}
	return databaseError, object{"message": err.Error()}
}
