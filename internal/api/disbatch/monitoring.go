package disbatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-1177d267/sluice/internal/balance"
)

// freshFor is how long after its last beat a node, or who balances, is taken for running.
const freshFor = 60 // seconds

// getMonitoring is GET /monitoring.
func (h *Handler) getMonitoring(r *http.Request) answer {
	if !h.conf.Conf.Monitoring {
		off := object{"status": "OK", "message": "monitoring disabled"}
		return ok(object{"disbatch": off, "queuebalance": off})
	}
	now, err := h.store.Now(r.Context())
	if err != nil {
		h.failed(r, err)
		critical := object{"status": "CRITICAL", "message": fmt.Sprintf("Could not get current Disbatch nodes: %v", err)}
		return ok(object{"disbatch": critical, "queuebalance": h.checkBalance(r.Context(), time.Now())})
	}
	return ok(object{"disbatch": h.checkNodes(r.Context(), now), "queuebalance": h.checkBalance(r.Context(), now)})
}

// checkNodes says whether a node is running.
func (h *Handler) checkNodes(ctx context.Context, now time.Time) object {
	nodes, err := h.nodes(ctx)
	switch {
	case err != nil:
		return object{"status": "CRITICAL", "message": fmt.Sprintf("Could not get current Disbatch nodes: %v", err)}
	case len(nodes) == 0:
		return object{"status": "WARNING", "message": "No Disbatch nodes found"}
	}
	ages := object{}
	for _, n := range nodes {
		node := n.(object)
		at, _ := node["timestamp"].(int64) // what is no instant is long ago
		age, state := now.Unix()-at/1000, "fresh"
		if age > freshFor {
			state = "stale"
		}
		if ages[state] == nil {
			ages[state] = object{}
		}
		name, _ := node["node"].(string)
		ages[state].(object)[name] = age
	}
	if ages["fresh"] == nil {
		return object{"status": "CRITICAL", "message": "No active Disbatch nodes found", "nodes": ages}
	}
	return object{"status": "OK", "message": "Disbatch is running on one or more nodes", "nodes": ages}
}

// checkBalance says whether somebody balances.
func (h *Handler) checkBalance(ctx context.Context, now time.Time) object {
	if !h.conf.Conf.Balance.Enabled {
		return object{"status": "OK", "message": "queuebalance disabled"}
	}
	doc, err := h.balance(ctx)
	if err != nil && !errors.Is(err, balance.ErrMalformed) {
		return object{"status": "CRITICAL", "message": err.Error()}
	}
	result := object{}
	for _, key := range []string{"status", "message"} {
		if v, there := doc[key]; there {
			result[key] = v
		}
	}
	at, said := seconds(doc["timestamp"])
	if result["status"] == string(balance.Critical) && !said {
		return result
	}
	if at < now.Unix()-freshFor {
		return object{"status": "CRITICAL", "message": fmt.Sprintf("queuebalanced not running for %ds", now.Unix()-at)}
	}
	switch result["status"] {
	case string(balance.OK), string(balance.Warning), string(balance.Critical):
		return result
	}
	return object{"status": "CRITICAL", "message": "queuebalanced unknown status", "result": result}
}
