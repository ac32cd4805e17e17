package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// TraceReader is what traces are completed from.
type TraceReader interface {
	Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error)
	Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error)
}

// Traces sends each plan as one trace. It has a span for the plan, and below it one for each
// attempt of a task, with links to the attempts of its parents. The ids of traces and spans follow
// from the ids of plans and tasks, so the nodes of a cluster need not talk to each other. Traces is
// a den.Observer. It drops spans that it cannot send in time: a plan never waits for its trace.
type Traces struct {
	r        TraceReader
	log      *slog.Logger
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	ended    chan attempt
	plans    chan plan.PlanID
	done     chan struct{}
}

// An attempt is one that ended.
type attempt struct {
	task   protocol.ClaimedTask
	status plan.Status
	state  string
	detail string
	from   time.Time
	to     time.Time
}

// waitingSpans is how many attempts may wait to be told of.
const waitingSpans = 10_000

// NewTraces sends traces to an OTLP endpoint over HTTP. Close ends it.
func NewTraces(ctx context.Context, to Endpoint, version string, r TraceReader, log *slog.Logger) (*Traces, error) {
	client, err := newSender(to)
	if err != nil {
		return nil, err
	}
	out, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, err
	}
	// Later errors go through a variable of that package. By default it would print them in the
	// middle of a run.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces cannot be sent", "error", err) }))
	return newTraces(sdk.NewBatchSpanProcessor(out), version, r, log), nil
}

func newTraces(to sdk.SpanProcessor, version string, r TraceReader, log *slog.Logger) *Traces {
	about := resource.NewSchemaless(attribute.String("service.name", "sluice"), attribute.String("service.version", version))
	t := &Traces{
		r: r, log: log, ended: make(chan attempt, waitingSpans), plans: make(chan plan.PlanID, waitingSpans), done: make(chan struct{}),
		provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(to), sdk.WithIDGenerator(ids{}), sdk.WithResource(about)),
	}
	t.tracer = t.provider.Tracer("github.com/seed-1177d267/sluice")
	go t.tell()
	return t
}

// Close sends what waits, as long as the context lets it. The node whose observer it is has ended.
func (t *Traces) Close(ctx context.Context) error {
	close(t.ended)
	close(t.plans)
	select {
	case <-t.done:
	case <-ctx.Done():
	}
	return t.provider.Shutdown(ctx)
}

// Claimed implements den.Observer, as do the following.
func (*Traces) Claimed(*protocol.ClaimedTask) {}

// Lost sends nothing: the node that has the task now reports its attempt.
func (*Traces) Lost(*protocol.ClaimedTask) {}

// Asked is not told.
func (*Traces) Asked(string, time.Duration, error) {}

// Ended tells of an attempt of a plan's task.
func (t *Traces) Ended(c *protocol.ClaimedTask, e *protocol.Ending, ran time.Duration) {
	if c.Plan.IsZero() {
		return
	}
	now := time.Now()
	a := attempt{task: *c, status: e.Status, state: plan.State(e.Status, e.Reason), detail: e.Detail, from: now.Add(-max(0, ran)), to: now}
	a.task.Params = nil // which may be large, and are nobody's business
	select {
	case t.ended <- a:
	default: // more end than can be told of
	}
}

// PlanEnded tells of the plan as a whole.
func (t *Traces) PlanEnded(p protocol.EndedPlan) {
	select {
	case t.plans <- p.ID:
	default:
	}
}

// tell makes spans of what waits, many at a time, since what each of them needed is asked of the store.
func (t *Traces) tell() {
	defer close(t.done)
	const most = 500
	attempts, plans := t.ended, t.plans
	for attempts != nil || plans != nil {
		var batch []attempt
		select {
		case a, ok := <-attempts:
			if !ok {
				attempts = nil
				break
			}
			batch = append(batch, a)
			for more := true; more && len(batch) < most; {
				select {
				case a, ok := <-attempts:
					if more = ok; ok {
						batch = append(batch, a)
					}
				default:
					more = false
				}
			}
		case p, ok := <-plans:
			if !ok {
				plans = nil
				break
			}
			t.tellPlan(p)
		}
		if len(batch) > 0 {
			t.tellAttempts(batch)
		}
	}
}

// readTime is how long the store may take to say what a batch of tasks needed.
const readTime = 10 * time.Second

func (t *Traces) tellAttempts(batch []attempt) {
	ctx, done := context.WithTimeout(context.Background(), readTime)
	defer done()
	needs := t.needs(ctx, batch)
	for i := range batch {
		a := &batch[i]
		var links []trace.Link
		for _, parent := range needs[a.task.Task] {
			links = append(links, trace.Link{SpanContext: spanOf(a.task.Plan, parent.ID, parent.Attempt)})
		}
		ctx := trace.ContextWithSpanContext(context.Background(), spanOf(a.task.Plan, plan.TaskID{}, 0))
		ctx = context.WithValue(ctx, spanKey{}, spanOf(a.task.Plan, a.task.Task, a.task.Attempt))
		_, span := t.tracer.Start(ctx, a.task.Name, trace.WithTimestamp(a.from), trace.WithLinks(links...), trace.WithAttributes(
			attribute.String("sluice.plan", a.task.Plan.String()), attribute.String("sluice.task", a.task.Task.String()),
			attribute.Int("sluice.attempt", a.task.Attempt), attribute.String("sluice.queue", a.task.QueueName),
			attribute.String("sluice.plugin", a.task.Plugin), attribute.String("sluice.state", a.state),
		))
		if a.status != plan.Succeeded {
			span.SetStatus(codes.Error, a.detail)
		}
		span.End(trace.WithTimestamp(a.to))
	}
}

// needs returns the parents of tasks. Without an answer of the store there are none to link to.
func (t *Traces) needs(ctx context.Context, batch []attempt) map[plan.TaskID][]plan.Task {
	ids := make([]plan.TaskID, len(batch))
	for i := range batch {
		ids[i] = batch[i].task.Task
	}
	tasks, err := t.r.Tasks(ctx, store.TaskQuery{IDs: ids, Needs: true, Limit: len(ids)})
	if err != nil {
		t.log.Debug("traces: what tasks needed cannot be read", "error", err)
		return nil
	}
	const mostLinks = 128 // of one span; OpenTelemetry's own default
	asked := map[plan.TaskID]bool{}
	var parents []plan.TaskID
	for i := range tasks {
		for _, id := range tasks[i].Needs[:min(mostLinks, len(tasks[i].Needs))] {
			if !asked[id] {
				asked[id] = true
				parents = append(parents, id)
			}
		}
	}
	known := map[plan.TaskID]plan.Task{}
	for len(parents) > 0 {
		some := parents[:min(1000, len(parents))]
		parents = parents[len(some):]
		found, err := t.r.Tasks(ctx, store.TaskQuery{IDs: some, Limit: len(some)})
		if err != nil {
			t.log.Debug("traces: what tasks needed cannot be read", "error", err)
			return nil
		}
		for i := range found {
			known[found[i].ID] = found[i]
		}
	}
	of := map[plan.TaskID][]plan.Task{}
	for i := range tasks {
		for _, id := range tasks[i].Needs {
			if p, ok := known[id]; ok && p.Attempt > 0 { // one that was skipped has no span
				of[tasks[i].ID] = append(of[tasks[i].ID], p)
			}
		}
	}
	return of
}

func (t *Traces) tellPlan(id plan.PlanID) {
	ctx, done := context.WithTimeout(context.Background(), readTime)
	defer done()
	p, err := t.r.Plan(ctx, id)
	if err != nil {
		t.log.Debug("traces: a plan cannot be read", "plan", id, "error", err)
		return
	}
	ctx = context.WithValue(context.Background(), spanKey{}, spanOf(id, plan.TaskID{}, 0))
	_, span := t.tracer.Start(ctx, p.Name, trace.WithNewRoot(), trace.WithTimestamp(p.Created), trace.WithAttributes(
		attribute.String("sluice.plan", id.String()), attribute.Int("sluice.run", p.Run), attribute.String("sluice.state", p.State.String()),
		attribute.Int("sluice.tasks", p.Counts.Total()),
	))
	if p.State != plan.PlanSucceeded {
		span.SetStatus(codes.Error, p.State.String())
	}
	span.End(trace.WithTimestamp(p.Ended))
}

// spanOf is the span of an attempt, or, of no task, that of the plan itself.
func spanOf(p plan.PlanID, t plan.TaskID, attempt int) trace.SpanContext {
	var of [16]byte
	copy(of[:], p.ID[:])
	copy(of[12:], "plan")
	key := append(append([]byte{}, p.ID[:]...), t.ID[:]...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(key, uint64(attempt)))
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: of, SpanID: [8]byte(sum[:8]), TraceFlags: trace.FlagsSampled, Remote: true})
}

// spanKey is under what a context holds the span that is to be made.
type spanKey struct{}

// ids gives a span the ids that its context says.
type ids struct{}

// NewIDs implements trace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	s, _ := ctx.Value(spanKey{}).(trace.SpanContext)
	return s.TraceID(), s.SpanID()
}

// NewSpanID implements trace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	s, _ := ctx.Value(spanKey{}).(trace.SpanContext)
	return s.SpanID()
}
