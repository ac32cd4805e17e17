package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// A Problem is the body of an answer of 400 and above, as application/problem+json (RFC 9457). It
// is an error, and wraps the sentinel of package plan for its Code. So a caller handles an error
// from a server like an error from a store.
type Problem struct {
	Type   string  `json:"type,omitempty" doc:"The page that explains the code."`
	Title  string  `json:"title" doc:"The status in words."`
	Status int     `json:"status" doc:"The answer's HTTP status."`
	Detail string  `json:"detail" doc:"The mistake and its remedy, for people."`
	Code   string  `json:"code" doc:"For programs."`
	Fields []Field `json:"errors,omitempty" doc:"Each mistake with its place, if the request is at fault."`
}

// Bounds of a problem as it is answered: of its Fields, and of the bytes of a text.
const (
	MostFields = 50
	mostDetail = 4 << 10
	mostField  = 500
)

// MarshalJSON implements json.Marshaler. It cuts what is long, since much of it may be what the request said.
func (p Problem) MarshalJSON() ([]byte, error) {
	type plain Problem
	p.Detail = cut(textfile.Brief(p.Detail), mostDetail)
	if more := len(p.Fields) - MostFields; more > 0 {
		p.Fields = append(slices.Clone(p.Fields[:MostFields]), Field{Message: fmt.Sprintf("and %d more", more)})
	}
	p.Fields = slices.Clone(p.Fields)
	for i := range p.Fields {
		f := &p.Fields[i]
		f.Message, f.Location = cut(textfile.Brief(f.Message), mostField), cut(f.Location, mostField)
	}
	return json.Marshal(plain(p))
}

// cut returns at most most bytes of a text, with a mark at the end of a longer one.
func cut(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}

// A Field is one thing that is wrong with a request, or with a plan file in it.
type Field struct {
	Message  string `json:"message"`
	Location string `json:"location,omitempty" doc:"As in body.threads, query.limit or path.plan."`
	Line     int    `json:"line,omitempty" doc:"Of a plan file, from 1."`
	Column   int    `json:"column,omitempty" doc:"In the line, in characters from 1."`
}

// Codes that no error of package plan stands behind.
const (
	CodeInvalid      = "invalid"      // the request is malformed; Fields say where
	CodeUnauthorized = "unauthorized" // it does not say who asks
	CodeForbidden    = "forbidden"    // who asks may not
	CodeTooLarge     = "too_large"    // the body is
	CodeQueue        = "queue"        // one that is there runs another plugin, or more than the plan lets it
	CodePrecondition = "precondition" // If-Match names another version
	CodeRepeated     = "repeated"     // the idempotency key was used for another request
	CodeUnsupported  = "unsupported"  // by this server or its store
	CodeTimeout      = "timeout"      // the body came too slowly
	CodeInternal     = "internal"     // the server is at fault
)

// The errors that have a meaning for callers, with their codes and HTTP status. The first that an error is decides.
var known = []struct {
	err    error
	code   string
	status int
}{
	{plan.ErrTooMuchInput, "too_much_input", http.StatusUnprocessableEntity},
	{plan.ErrTooMuchOutput, "too_much_output", http.StatusUnprocessableEntity},
	{plan.ErrTooLarge, "too_large_to_keep", http.StatusUnprocessableEntity},
	{plan.ErrNotFound, "not_found", http.StatusNotFound},
	{plan.ErrNoStore, "no_store", http.StatusServiceUnavailable},
	{plan.ErrExists, "exists", http.StatusConflict},
	{plan.ErrPlanEnded, "plan_ended", http.StatusConflict},
	{plan.ErrPlanNotReady, "plan_not_ready", http.StatusConflict},
	{plan.ErrPlanActive, "plan_active", http.StatusConflict},
	{plan.ErrOverlap, "overlap", http.StatusConflict},
	{plan.ErrConflict, "conflict", http.StatusConflict},
	{balance.ErrMalformed, "malformed_balance", http.StatusUnprocessableEntity},
	{plan.ErrCursor, "invalid_cursor", http.StatusUnprocessableEntity},
	{plan.ErrSecret, "secret", http.StatusUnprocessableEntity},
	{plan.ErrFull, "full", http.StatusInsufficientStorage},
	{plan.ErrNewerSchema, "newer_schema", http.StatusServiceUnavailable},
	{plan.ErrStoreGone, "store_gone", http.StatusServiceUnavailable},
	{plan.ErrUnavailable, "unavailable", http.StatusServiceUnavailable},
}

// ProblemOf is the one place where an error becomes an HTTP status and a code. An unknown error is
// the server's fault.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var problems plan.Problems
	if errors.As(err, &problems) {
		p := Invalid("%s", err.Error())
		for _, one := range problems {
			p.Fields = append(p.Fields, Field{Message: one.Error()})
		}
		return p
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return problem(k.status, k.code, err.Error())
		}
	}
	return problem(http.StatusInternalServerError, CodeInternal, err.Error())
}

func problem(status int, code, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// NewProblem is a problem of a status and a code.
func NewProblem(status int, code, format string, args ...any) *Problem {
	return problem(status, code, fmt.Sprintf(format, args...))
}

// Invalid is a request that is malformed.
func Invalid(format string, args ...any) *Problem {
	return NewProblem(http.StatusUnprocessableEntity, CodeInvalid, format, args...)
}

// InvalidAt is a request that is malformed at one place, as in body.threads.
func InvalidAt(location, format string, args ...any) *Problem {
	message := textfile.Brief(fmt.Sprintf(format, args...))
	p := Invalid("%s: %s", location, message)
	p.Fields = []Field{{Message: message, Location: location}}
	return p
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus and ContentType say how huma answers with a problem.
func (p *Problem) GetStatus() int { return p.Status }

func (p *Problem) ContentType(string) string { return ProblemType }

// ProblemType is the media type of a problem.
const ProblemType = "application/problem+json"

// Unwrap returns the sentinel for the code, or nil. A failed precondition is a plan.ErrConflict as
// well.
func (p *Problem) Unwrap() error {
	if p.Code == CodePrecondition {
		return plan.ErrConflict
	}
	for _, k := range known {
		if k.code == p.Code {
			return k.err
		}
	}
	return nil
}
