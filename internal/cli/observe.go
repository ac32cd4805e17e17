package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/telemetry"
	"github.com/seed-1177d267/sluice/plan"
)

// sendTime is how long what is left of traces may take to be sent when a command ends.
const sendTime = 5 * time.Second

// observe returns the observer of a node: the figures, if there are any, and traces, if OpenTelemetry's variables say where they go. Call
// end when the node has ended.
func (a *app) observe(ctx context.Context, st store.Store, m *telemetry.Metrics, log *slog.Logger) (o den.Observer, end func(), err error) {
	var all telemetry.All
	if m != nil {
		all = append(all, m)
	}
	end = func() {}
	if endpoint := a.traceEndpoint(); endpoint != "" {
		traces, err := telemetry.NewTraces(ctx, endpoint, a.version().Version, st, log)
		if err != nil {
			return nil, nil, usagef("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
		}
		all = append(all, traces)
		end = func() {
			last, done := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
			defer done()
			if err := traces.Close(last); err != nil {
				log.Warn("traces were not sent to their end", "error", err)
			}
		}
	}
	if len(all) == 0 {
		return nil, end, nil
	}
	return all, end, nil
}

// traceEndpoint is the URL that traces are sent to; "" if there is none.
// Source: OpenTelemetry Protocol Exporter, "Endpoint URLs for OTLP/HTTP".
func (a *app) traceEndpoint() string {
	if strings.EqualFold(a.Getenv("OTEL_SDK_DISABLED"), "true") || a.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	if u := a.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); u != "" {
		return u
	}
	if u := a.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); u != "" {
		return strings.TrimSuffix(u, "/") + "/v1/traces"
	}
	return ""
}

// besideRun starts what goes on beside a command that runs a plan: the pages, if there is an address for them, and what observes its node.
// Call end when the node has ended.
func (a *app) besideRun(ctx context.Context, st store.Store, p plan.PlanID, address string, log *slog.Logger) (o den.Observer, end func() error, err error) {
	served := func() error { return nil }
	var figures *telemetry.Metrics
	if address != "" {
		set, err := (&dciSettings{listen: address, plan: p}).setUp(log)
		if err != nil {
			return nil, nil, err
		}
		figures = telemetry.NewMetrics(st, log)
		server, err := set.server(ctx, a, st, figures)
		if err != nil {
			return nil, nil, err
		}
		served = set.beside(ctx, server)
	}
	o, sent, err := a.observe(ctx, st, figures, log)
	if err != nil {
		return nil, nil, errors.Join(err, served())
	}
	return o, func() error { sent(); return served() }, nil
}
