package disbatch

import (
	"net/http"

	"github.com/seed-1177d267/sluice/internal/auth"
)

// scopes are the scopes of requests that change something, by their route. Other such requests need
// auth.Submit, because an extension may do anything.
var scopes = map[string]auth.Scope{
	"POST /nodes/{node...}":         auth.Operate,
	"POST /balance":                 auth.Operate,
	"POST /set-queue-attr-json":     auth.Operate,
	"POST /queues":                  auth.Submit,  // a queue's plugin is what its tasks do
	"POST /queues/{queue...}":       auth.Operate, // for its threads; postQueue asks for more where it is to do more
	"DELETE /queues/{queue...}":     auth.Admin,
	"POST /delete-queue-json":       auth.Admin,
	"POST /tasks":                   auth.Submit,
	"POST /tasks/{queue}":           auth.Submit,
	"POST /start-queue-json":        auth.Submit,
	"POST /queue-create-tasks-json": auth.Submit,
}

// Scope returns what a request needs: auth.Read if it only looks, as Changes says. Pages and files need it as well.
func (h *Handler) Scope(r *http.Request) auth.Scope {
	if !h.Changes(r) {
		return auth.Read
	}
	_, pattern := h.mux.Handler(r)
	if s, known := scopes[pattern]; known {
		return s
	}
	if r.Method == http.MethodDelete {
		return auth.Admin
	}
	return auth.Submit
}
