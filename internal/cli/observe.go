package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/telemetry"
	"github.com/seed-1177d267/sluice/plan"
)

// sendTime is how long the remaining traces may take to be sent when a command ends.
const sendTime = 5 * time.Second

// observe returns the observer of a node: the figures, if there are any, and traces, if OpenTelemetry's variables say where they go. Call
// end when the node has ended.
func (a *app) observe(ctx context.Context, st store.Store, m *telemetry.Metrics, log *slog.Logger) (o den.Observer, end func(), err error) {
	var all telemetry.All
	if m != nil {
		all = append(all, m)
	}
	end = func() {}
	to, err := a.traceEndpoint()
	if err != nil {
		return nil, nil, err
	}
	if to != nil {
		traces, err := telemetry.NewTraces(ctx, *to, a.version().Version, st, log)
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

// traceEndpoint says where traces are sent; nil if they are sent nowhere. A variable for traces alone,
// as OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, counts before the one for all signals.
// Source: OpenTelemetry Protocol Exporter, "Configuration Options" and "Endpoint URLs for OTLP/HTTP".
func (a *app) traceEndpoint() (*telemetry.Endpoint, error) {
	if strings.EqualFold(a.Getenv("OTEL_SDK_DISABLED"), "true") || a.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	setting := func(name string) (value, variable string) {
		if v := a.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
			return v, "OTEL_EXPORTER_OTLP_TRACES_" + name
		}
		return a.Getenv("OTEL_EXPORTER_OTLP_" + name), "OTEL_EXPORTER_OTLP_" + name
	}
	u, variable := setting("ENDPOINT")
	if u == "" {
		return nil, nil
	}
	if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = strings.TrimSuffix(u, "/") + "/v1/traces"
	}
	to := &telemetry.Endpoint{URL: u}
	compression, _ := setting("COMPRESSION")
	to.Gzip = compression == "gzip"
	if ms, variable := setting("TIMEOUT"); ms != "" {
		n, err := strconv.Atoi(ms)
		if err != nil || n <= 0 {
			return nil, usagef("%s: %q is not a number of milliseconds", variable, ms)
		}
		to.Timeout = time.Duration(n) * time.Millisecond
	}
	headers, variable := setting("HEADERS")
	var err error
	if to.Headers, err = traceHeaders(headers); err != nil {
		return nil, usagef("%s: %w", variable, err)
	}
	to.TLS, err = traceTLS(setting)
	return to, err
}

// traceHeaders reads NAME=VALUE,NAME=VALUE with values as in a URL.
func traceHeaders(text string) (map[string]string, error) {
	headers := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !isHeader(name, value) {
			return nil, fmt.Errorf("the header %q is not NAME=VALUE as HTTP has it", name) // its value may be a secret
		}
		headers[name] = value
	}
	return headers, nil
}

// isHeader reports whether HTTP can carry a header (RFC 9110, 5.5 and 5.6.2).
func isHeader(name, value string) bool {
	notInName := func(r rune) bool {
		return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	return name != "" && !strings.ContainsFunc(name, notInName) && !strings.ContainsFunc(value, control)
}

// traceTLS returns the certificates that the variables name; nil if they name none.
func traceTLS(setting func(name string) (value, variable string)) (*tls.Config, error) {
	roots, rootsVariable := setting("CERTIFICATE")
	own, ownVariable := setting("CLIENT_CERTIFICATE")
	key, keyVariable := setting("CLIENT_KEY")
	if roots == "" && own == "" && key == "" {
		return nil, nil
	}
	c := &tls.Config{}
	if roots != "" {
		pem, err := os.ReadFile(roots)
		if err != nil {
			return nil, usagef("%s: %w", rootsVariable, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("%s: %s has no certificate in PEM", rootsVariable, roots)
		}
	}
	if own != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(own, key)
		if err != nil {
			return nil, usagef("%s, %s: %w", ownVariable, keyVariable, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// besideRun starts what goes on beside a command that runs a plan: the pages, if there is an address for them, and what observes its node.
// Call end when the node has ended.
func (a *app) besideRun(ctx context.Context, st store.Store, p plan.PlanID, address string, log *slog.Logger) (o den.Observer, end func() error, err error) {
	var set *dciSetup
	if address != "" {
		if set, err = (&dciSettings{listen: address, plan: p}).setUp(log); err != nil {
			return nil, nil, err
		}
	}
	o, _, end, err = a.watched(ctx, st, set, log)
	return o, end, err
}

// watched starts a server, if there is a setup for one, and the observer of a node, whose figures the server shows. Call end when the node has
// ended. Without a server the figures are nil.
func (a *app) watched(ctx context.Context, st store.Store, set *dciSetup, log *slog.Logger) (o den.Observer, figures *telemetry.Metrics, end func() error, err error) {
	served := func() error { return nil }
	if set != nil {
		figures = telemetry.NewMetrics(st, log)
		server, err := set.server(ctx, a, st, figures)
		if err != nil {
			return nil, nil, nil, err
		}
		served = set.beside(ctx, server)
	}
	o, sent, err := a.observe(ctx, st, figures, log)
	if err != nil {
		return nil, nil, nil, errors.Join(err, served())
	}
	return o, figures, func() error { sent(); return served() }, nil
}
