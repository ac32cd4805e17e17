package disbatch

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// balance returns the balance document, nil if there is none.
func (h *Handler) balance(ctx context.Context) (object, error) {
	text, err := h.store.Balance(ctx)
	if err != nil || text == nil {
		return nil, err
	}
	v, err := jsontext.Decode(text)
	doc, _ := v.(object)
	delete(doc, "_id")
	return doc, err
}

// seconds returns a whole number of a document.
func seconds(v any) (int64, bool) {
	n, is := v.(json.Number)
	if !is {
		return 0, false
	}
	f, err := n.Float64()
	return int64(f), err == nil && f > -1e15 && f < 1e15
}

// queueNames returns the names of all queues, in order.
func (h *Handler) queueNames(ctx context.Context) (names []string, err error) {
	queues, err := h.store.Queues(ctx)
	for _, q := range queues {
		names = append(names, q.Name)
	}
	slices.Sort(names)
	return append([]string{}, names...), err
}

// getBalance is GET /balance.
func (h *Handler) getBalance(r *http.Request) answer {
	doc, err := h.balance(r.Context())
	if err != nil {
		return h.failed(r, err)
	}
	if doc == nil {
		doc = object{"notice": "balance document not found"}
	}
	known, err := h.queueNames(r.Context())
	if err != nil {
		return h.failed(r, err)
	}
	doc["known_queues"], doc["settings"] = known, nil
	if h.conf.Conf.BalanceText != nil {
		doc["settings"] = h.conf.Conf.BalanceText
	}
	if wantsPage(r) {
		return answer{page: balancePage(doc, h.conf.Conf.Balance)}
	}
	return answer{value: doc, pretty: true}
}

// postBalance is POST /balance. Whatever is wrong, the answer has one key.
func (h *Handler) postBalance(r *http.Request) answer {
	given, options, err := parse(r, smallBody)
	var settings json.RawMessage
	if err == nil {
		for name := range options {
			given[name] = options[name] // they are keys that it cannot have
		}
		var known []string
		if known, err = h.queueNames(r.Context()); err == nil {
			var now time.Time
			if now, err = h.store.Now(r.Context()); err == nil {
				settings, err = checkBalance(given, known, now)
			}
		}
	}
	if err == nil {
		err = h.store.SetBalance(r.Context(), settings)
	}
	if err != nil {
		return h.failed(r, err, object{"status": "failed: invalid json passed " + err.Error()})
	}
	return ok(object{"status": "success: queuebalance modified"})
}

var (
	balanceName = regexp.MustCompile(`\A[\w-]+\z`)
	balanceTime = regexp.MustCompile(`\A[*0-6] (?:[01][0-9]|2[0-3]):[0-5][0-9]\z`)
)

// checkBalance returns what a request sets of the balance document. It takes what Disbatch takes.
// queues and max_tasks are required, disabled is optional. Each name of a queue exists and occurs
// once. Times have both digits.
func checkBalance(given params, known []string, now time.Time) (json.RawMessage, error) {
	if name, is := given.unknown("disabled", "max_tasks", "queues"); is {
		return nil, refusef("%s is not one of disabled, max_tasks, queues", strconv.Quote(name))
	}
	settings := object{}
	if v, there := given["disabled"]; there {
		settings["disabled"] = nil
		if !isNull(v) {
			s, _ := given.text("disabled")
			until, err := strconv.ParseInt(s, 10, 64)
			if err != nil || !digits.MatchString(s) {
				return nil, refusef("disabled is a time in seconds since 1970")
			}
			if until != 0 && until < now.Unix() {
				return nil, refusef("disabled is in the past")
			}
			settings["disabled"] = until
		}
	}
	var queues [][]string
	if first(given["queues"]) != '[' || json.Unmarshal(given["queues"], &queues) != nil || slices.ContainsFunc(queues, func(set []string) bool { return set == nil }) {
		return nil, refusef("queues is a list of lists of names of queues")
	}
	seen := map[string]bool{}
	sets := list{}
	for _, set := range queues {
		for _, name := range set {
			switch {
			case !balanceName.MatchString(name):
				return nil, refusef("%q cannot be the name of a queue here", name)
			case !slices.Contains(known, name):
				return nil, refusef("there is no queue %q", name)
			case seen[name]:
				return nil, refusef("queue %q is there twice", name)
			}
			seen[name] = true
		}
		sets = append(sets, set)
	}
	settings["queues"] = sets
	times := params{}
	if first(given["max_tasks"]) != '{' || json.Unmarshal(given["max_tasks"], &times) != nil {
		return nil, refusef("max_tasks is an object of times and numbers")
	}
	most := object{}
	for _, at := range times.names() {
		n, is := times.count(at)
		if !is || strings.ContainsAny(string(times[at]), ".eE") {
			return nil, refusef("max_tasks: %q is not a number of tasks, 0 to %d", string(times[at]), plan.MaxThreads)
		}
		if !balanceTime.MatchString(at) {
			return nil, refusef("max_tasks: %q is not a time like \"* 07:00\"", at)
		}
		most[at] = n
	}
	settings["max_tasks"] = most
	return encode(settings, false), nil
}
