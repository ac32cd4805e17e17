package v1

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

type nodeSettings struct {
	MaxThreads *int `json:"maxthreads" minimum:"0" doc:"At most 1000000. null: no limit."`
}

func (a *API) nodes() {
	serve(a, endpoint{method: "GET", path: "/nodes", id: "list-nodes", summary: "List nodes", tag: "nodes", scope: Read}, a.listNodes)
	serve(a, endpoint{
		method: "PUT", path: "/nodes/{node}", id: "set-node", summary: "Limit how many tasks a node runs at once", tag: "nodes", scope: Operate, status: 204, errors: []int{422},
		doc: "Over all its processes. The node need not exist yet.",
	}, func(ctx context.Context, in *struct {
		Node plan.NodeName `path:"node" minLength:"1"`
		Body nodeSettings
	}) (*struct{}, error) {
		if err := rules.CheckNodeName(string(in.Node)); err != nil {
			return nil, api.InvalidAt("path.node", "%v", err)
		}
		most := -1
		if in.Body.MaxThreads != nil {
			most = *in.Body.MaxThreads
			if err := rules.CheckLimit("maxthreads", most); err != nil {
				return nil, api.InvalidAt("body.maxthreads", "%v", err)
			}
		}
		auth.Changed(ctx, string(in.Node))
		return nil, a.st.SetMaxThreads(ctx, in.Node, most)
	})
	serve(a, endpoint{method: "GET", path: "/plugins", id: "list-plugins", summary: "List the plugins of this program", tag: "nodes", scope: Read},
		func(context.Context, *struct{}) (*pluginsAnswer, error) {
			var plugins []Plugin
			if a.c.Plugins != nil {
				plugins = a.c.Plugins()
			}
			return &pluginsAnswer{nonNil(plugins)}, nil
		})
	serve(a, endpoint{method: "GET", path: "/balance", id: "get-balance", summary: "The document by which QueueBalance works", tag: "queues", scope: Read, errors: []int{501}}, a.getBalance)
	serve(a, endpoint{
		method: "PATCH", path: "/balance", id: "set-balance", summary: "Set keys of that document", tag: "queues", scope: Operate, status: 204, errors: []int{422, 501},
		doc: "Other keys stay as they are. With queues or max_tasks, the result has to be a valid document.",
	}, a.setBalance)
}

type pluginsAnswer struct {
	Plugins []Plugin `json:"plugins"`
}

func (a *API) listNodes(ctx context.Context, in *struct {
	Counts bool `query:"counts" default:"true" doc:"Count the tasks of each node."`
}) (*api.NodesAnswer, error) {
	return api.ReadNodes(ctx, a.st, in.Counts)
}

func (a *API) balance() (store.Balance, error) {
	if b, ok := a.st.(store.Balance); ok {
		return b, nil
	}
	return nil, api.NewProblem(http.StatusNotImplemented, api.CodeUnsupported, "this store has no place for QueueBalance's document")
}

func (a *API) getBalance(ctx context.Context, _ *struct{}) (*api.BalanceAnswer, error) {
	b, err := a.balance()
	if err != nil {
		return nil, err
	}
	out := &api.BalanceAnswer{}
	if out.Document, err = b.Balance(ctx); err != nil {
		return nil, err
	}
	if out.Document == nil {
		out.Document = json.RawMessage("null")
	}
	return out, nil
}

func (a *API) setBalance(ctx context.Context, in *struct{ Body json.RawMessage }) (*struct{}, error) {
	b, err := a.balance()
	if err != nil {
		return nil, err
	}
	if err := object("body", in.Body); err != nil {
		return nil, err
	}
	if err := checkBalance(ctx, b, in.Body); err != nil {
		return nil, err
	}
	return nil, b.SetBalance(ctx, in.Body)
}

// checkBalance refuses settings of the balance document by which nobody could work. Where they are not about what is wrong with the one that is
// there, as where it is only disabled, that is no reason.
func checkBalance(ctx context.Context, b store.Balance, settings json.RawMessage) error {
	var given struct {
		Queues   json.RawMessage `json:"queues"`
		MaxTasks json.RawMessage `json:"max_tasks"`
	}
	document := balance.Empty
	if err := json.Unmarshal(settings, &given); err == nil && (given.Queues != nil || given.MaxTasks != nil) {
		if document, err = b.Balance(ctx); err != nil {
			return err
		}
	}
	is, err := balance.With(document, settings)
	if err == nil {
		_, err = balance.Parse(is)
	}
	return err
}
