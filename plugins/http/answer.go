package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"code.dny.dev/ssrf"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// An answer is what a receiver said.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	cut     bool // the body is longer, or did not come to its end
	host    string
	masks   []string
	release func() // of the memory that the body takes

	redirects int // that led to it
}

func (a *answer) success() bool { return a.status/100 == 2 }

// again reports whether the receiver may answer better later.
func (a *answer) again() bool {
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return a.status >= 500
}

// result returns how the attempt went.
func (a *answer) result(now time.Time) plan.Result {
	switch {
	case a.success():
		return plan.Result{Status: plan.Succeeded, Output: a.output(a.body)}
	case a.again():
		return plan.Result{Status: plan.Failed, Detail: a.detail(), After: duration.RetryAfter(a.header.Get("Retry-After"), now, plan.MaxAfter)}
	}
	return plan.Result{Status: plan.Failed, Detail: a.detail(), Final: true}
}

// output is the status and a body as the tasks that follow get them.
func (a *answer) output(body []byte) json.RawMessage {
	b := append(make([]byte, 0, len(body)+64), `{"status":`...)
	b = append(strconv.AppendInt(b, int64(a.status), 10), `,"body":`...)
	out := bytes.NewBuffer(b)
	switch {
	case len(body) == 0:
		out.WriteString("null")
	case !a.meantAsJSON(body) || json.Compact(out, body) != nil:
		out = bytes.NewBuffer(jsontext.AppendText(b, strings.ToValidUTF8(string(body), "\uFFFD")))
	}
	if a.cut && len(body) > 0 {
		out.WriteString(`,"cut":true`)
	}
	out.WriteByte('}')
	return out.Bytes()
}

// meantAsJSON reports whether a body is to be JSON, by its type or because it is an object or a
// list, and may be JSON of an output.
func (a *answer) meantAsJSON(body []byte) bool {
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	first := bytes.TrimLeft(body[:min(len(body), 64)], " \t\r\n")
	meant := kind == "application/json" || strings.HasSuffix(kind, "+json") || len(first) > 0 && (first[0] == '{' || first[0] == '[')
	return meant && !a.cut && utf8.Valid(body) && jsontext.Depth(body, plan.MaxOutputDepth-1) < plan.MaxOutputDepth
}

// detail says why the answer is no success.
func (a *answer) detail() string {
	how := fmt.Sprintf("%d %s from %s", a.status, http.StatusText(a.status), a.host)
	if to := a.header.Get("Location"); a.status/100 == 3 && to != "" {
		why := "only redirects of a GET on the same host are followed"
		if a.redirects >= mostRedirects {
			why = fmt.Sprintf("no more than %d redirects are followed", mostRedirects)
		}
		return fmt.Sprintf("%s: it leads to %s, and %s", how, brief(secret.HideText(to, a.masks)), why)
	}
	if said := brief(secret.HideText(string(a.body[:min(len(a.body), loggedBody)]), a.masks)); said != "" { // a cut secret would not be found
		return failures.Detail(said, how)
	}
	return how
}

// brief returns the first line of a text, or nothing if that is no text.
func brief(text string) string {
	const most = 200
	text, _, _ = strings.Cut(strings.TrimSpace(text[:min(len(text), 4*most)]), "\n")
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return ""
	}
	return text
}

// Why there is no answer.
var (
	errSlow    = errors.New("no complete answer in time")
	errRequest = errors.New("the request cannot be made")
)

// failure returns the result of a request without an answer. limited is ctx with the time that the
// request may take.
func failure(ctx, limited context.Context, s *settings, err error) plan.Result {
	r := plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: err.Error()}
	switch {
	case ctx.Err() != nil:
		r.Status = plan.Terminated
	case errors.Is(context.Cause(limited), errSlow):
		r.Reason, r.Detail = plan.ReasonTimeout, fmt.Sprintf("%v: timeout is %v", errSlow, s.timeout)
	case errors.Is(err, errRequest):
		r.Reason, r.Final = plan.ReasonInput, true
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // of a connection: nothing was sent
		r.Lacks = plan.LacksRoom
	case errors.Is(err, ssrf.ErrProhibitedIP): // another node may have been started with it
		r.Final, r.Lacks = true, plan.LacksMeans
		r.Detail = reachable(err).Error()
	}
	return r
}
