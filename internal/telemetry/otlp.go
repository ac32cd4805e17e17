package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/plan"
)

// An Endpoint says where traces go, and how.
type Endpoint struct {
	URL     string            // as it is asked, its path included
	Headers map[string]string // sent with each request
	Timeout time.Duration     // of a batch, with its retries; default 10 s
	Gzip    bool              // batches are compressed
	TLS     *tls.Config       // default: the certificates of the system
}

const (
	defaultTimeout = 10 * time.Second
	// maxAnswer bounds how much of an answer is read: it is a sentence.
	maxAnswer = 64 << 10
)

// A sender sends spans to an OTLP endpoint over HTTP. It implements otlptrace.Client.
//
// The package otlptracehttp does the same. It links gRPC, its gateway and their generated code.
// That is about a tenth of the whole binary, and a request over HTTP uses none of it.
//
// Source: OpenTelemetry Protocol Specification 1.9, "OTLP/HTTP".
type sender struct {
	to     Endpoint
	client *http.Client
	first  time.Duration // how long the first pause between two tries is
}

func newSender(to Endpoint) (*sender, error) {
	u, err := url.Parse(to.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not a URL of HTTP; write it as http://HOST:4318", to.URL)
	}
	if to.Timeout <= 0 {
		to.Timeout = defaultTimeout
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = to.TLS
	return &sender{to: to, client: &http.Client{Transport: transport}, first: backoff.DefaultInitialInterval}, nil
}

// Start does nothing: a connection is made when there is something to send.
func (*sender) Start(context.Context) error { return nil }

// Stop closes the connections.
func (s *sender) Stop(context.Context) error {
	s.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends a batch, and tries again while the endpoint is busy or cannot be reached.
func (s *sender) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// TracesData and the request have the same fields, and so the same bytes.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if s.to.Gzip {
		body = compressed(body)
	}
	ctx, cancel := context.WithTimeout(ctx, s.to.Timeout)
	defer cancel()
	pause := &pauses{ExponentialBackOff: backoff.NewExponentialBackOff(backoff.WithInitialInterval(s.first))}
	var last error
	err = backoff.Retry(func() error {
		last = s.post(ctx, body, pause)
		return last
	}, backoff.WithContext(pause, ctx))
	if last != nil && ctx.Err() != nil && !errors.Is(last, ctx.Err()) {
		return fmt.Errorf("%w (%w)", last, ctx.Err())
	}
	return err
}

func (s *sender) post(ctx context.Context, body []byte, pause *pauses) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.to.URL, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	for name, value := range s.to.Headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	if s.to.Gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode <= 299:
		return refused(text) // the spans are there, however the answer ends; sent again they would be there twice
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode == http.StatusBadGateway,
		answer.StatusCode == http.StatusServiceUnavailable, answer.StatusCode == http.StatusGatewayTimeout:
		pause.asked = duration.RetryAfter(answer.Header.Get("Retry-After"), time.Now(), plan.MaxAfter)
		return failure(answer.Status, text)
	}
	return backoff.Permanent(failure(answer.Status, text))
}

func failure(status string, text []byte) error {
	if said := strings.TrimSpace(strings.ToValidUTF8(string(text[:min(len(text), 500)]), "")); said != "" {
		return fmt.Errorf("the endpoint of the traces answered %s: %s", status, said)
	}
	return fmt.Errorf("the endpoint of the traces answered %s", status)
}

// refused returns an error about the spans that the endpoint did not accept although it answered
// with success. The answer is an ExportTraceServiceResponse. Its field 1 is the partial success,
// with the number of rejected spans in its field 1 and a message in its field 2.
func refused(answer []byte) error {
	partial := field(answer, 1, protowire.BytesType)
	text := field(partial, 2, protowire.BytesType)
	spans, _ := protowire.ConsumeVarint(field(partial, 1, protowire.VarintType)) // without the field 0
	if spans == 0 && len(text) == 0 {
		return nil
	}
	return backoff.Permanent(fmt.Errorf("the endpoint of the traces refused %d spans: %s", spans, text))
}

// field returns the last value of a field in a message: the content of bytes, or a number's varint.
func field(message []byte, number protowire.Number, kind protowire.Type) (value []byte) {
	for len(message) > 0 {
		n, t, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return value
		}
		size := protowire.ConsumeFieldValue(n, t, message[tag:])
		if size < 0 {
			return value
		}
		if n == number && t == kind {
			value = message[tag : tag+size]
			if t == protowire.BytesType {
				value, _ = protowire.ConsumeBytes(value)
			}
		}
		message = message[tag+size:]
	}
	return value
}

func compressed(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// Pauses are those between two tries: the ones that the endpoint asks for, if they are longer.
type pauses struct {
	*backoff.ExponentialBackOff
	asked time.Duration
}

// NextBackOff implements backoff.BackOff.
func (p *pauses) NextBackOff() time.Duration {
	next := p.ExponentialBackOff.NextBackOff()
	if next == backoff.Stop {
		return next
	}
	next, p.asked = max(next, p.asked), 0
	return next
}
