package telemetry

import (
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
)

// A collector keeps the names of the spans that it receives. It gives the first requests the
// answers that a test sets.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	answers []func(http.ResponseWriter)
	asked   int
	header  http.Header
	names   []string
}

func newCollector(t *testing.T, answers ...func(http.ResponseWriter)) *collector {
	c := &collector{answers: answers}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked++
		c.header = r.Header
		if c.asked <= len(c.answers) {
			c.answers[c.asked-1](w)
			return
		}
		in := r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			unpacked, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			in = unpacked
		}
		body, err := io.ReadAll(in)
		var sent tracepb.TracesData
		if err := errors.Join(err, proto.Unmarshal(body, &sent)); err != nil {
			t.Error(err)
		}
		for _, of := range sent.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				for _, span := range scope.Spans {
					c.names = append(c.names, span.Name)
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func answering(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { http.Error(w, "said why", code) }
}

func TestTracesAreSentToACollector(t *testing.T) {
	c := newCollector(t)
	st := model.New(model.Options{})
	traces, err := NewTraces(t.Context(), Endpoint{URL: c.URL + "/v1/traces", Headers: map[string]string{"Api-Key": "k"}, Gzip: true}, "v1", st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	run(t, st, traces)
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.names)
	if want := []string{"a", "b", "b", "c", "d", "nightly"}; !slices.Equal(c.names, want) {
		t.Errorf("the collector has spans %v, not %v", c.names, want)
	}
	if got := c.header.Get("Api-Key"); got != "k" {
		t.Errorf("the header is %q", got)
	}
}

func TestABatchThatIsNotTaken(t *testing.T) {
	rejected := protowire.AppendTag(nil, 1, protowire.VarintType)
	rejected = protowire.AppendVarint(rejected, 3)
	rejected = protowire.AppendTag(rejected, 2, protowire.BytesType)
	rejected = protowire.AppendString(rejected, "too old")
	partial := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), rejected)
	for _, c := range []struct {
		name    string
		answers []func(http.ResponseWriter)
		asked   int
		wrong   string // of the error; "": the batch arrives
	}{
		{"a busy endpoint is asked again", []func(http.ResponseWriter){answering(503), answering(429), answering(502), answering(504)}, 5, ""},
		{"a pause that the endpoint asks for is kept", []func(http.ResponseWriter){func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600")
			answering(503)(w)
		}}, 1, "503 Service Unavailable: said why"},
		{"nor does a long pause become none", []func(http.ResponseWriter){func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "99999999999")
			answering(503)(w)
		}}, 1, "503 Service Unavailable: said why"},
		{"an accepted batch is not sent again, whatever its answer ends with", []func(http.ResponseWriter){func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("thanks"))
		}}, 1, ""},
		{"a request that is wrong is not sent again", []func(http.ResponseWriter){answering(400)}, 1, "400 Bad Request: said why"},
		{"a token that is wrong is not sent again", []func(http.ResponseWriter){answering(401)}, 1, "401"},
		{"spans that were refused are named", []func(http.ResponseWriter){func(w http.ResponseWriter) { _, _ = w.Write(partial) }}, 1, "refused 3 spans: too old"},
		{"an answer that is not the protocol's is no refusal", []func(http.ResponseWriter){func(w http.ResponseWriter) { _, _ = w.Write([]byte("thanks")) }}, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := newCollector(t, c.answers...)
			s, err := newSender(Endpoint{URL: to.URL, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			s.first = time.Millisecond
			if strings.Contains(c.name, " pause") {
				s.to.Timeout = 3 * time.Second // over before the pause is: it must not be asked meanwhile
			}
			err = s.UploadTraces(t.Context(), []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "a"}}}}}})
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("the error is %v, wanted %q", err, c.wrong)
			}
			if to.asked != c.asked {
				t.Errorf("the endpoint was asked %d times, not %d", to.asked, c.asked)
			}
		})
	}
}

func TestAnEndpointThatIsNoURL(t *testing.T) {
	for _, u := range []string{"", "collector:4318", "grpc://collector:4317", "http://", "http://[::1"} {
		if _, err := newSender(Endpoint{URL: u}); err == nil {
			t.Errorf("%q was accepted", u)
		}
	}
}
