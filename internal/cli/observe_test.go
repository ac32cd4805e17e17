package cli

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/telemetry"
)

func TestTraceEndpoint(t *testing.T) {
	noPEM := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(noPEM, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	const all, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	at := func(url string) *telemetry.Endpoint {
		return &telemetry.Endpoint{URL: url, Headers: map[string]string{}}
	}
	for _, c := range []struct {
		name  string
		env   map[string]string
		want  *telemetry.Endpoint
		wrong string // what the error says
	}{
		{"no variable sends no traces", nil, nil, ""},
		{"the path is added to the endpoint of all signals", map[string]string{all + "ENDPOINT": "http://c:4318/"}, at("http://c:4318/v1/traces"), ""},
		{"the endpoint of traces is taken as it is", map[string]string{all + "ENDPOINT": "http://c:4318", traces + "ENDPOINT": "http://t/in"}, at("http://t/in"), ""},
		{"the SDK can be disabled", map[string]string{all + "ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, nil, ""},
		{"traces can be disabled", map[string]string{all + "ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, nil, ""},
		{"headers are unescaped", map[string]string{traces + "ENDPOINT": "http://t", all + "HEADERS": "a=1, b = x%20y,"},
			&telemetry.Endpoint{URL: "http://t", Headers: map[string]string{"a": "1", "b": "x y"}}, ""},
		{"a setting of traces counts before that of all signals", map[string]string{traces + "ENDPOINT": "http://t", all + "TIMEOUT": "1", traces + "TIMEOUT": "2500", traces + "COMPRESSION": "gzip"},
			&telemetry.Endpoint{URL: "http://t", Headers: map[string]string{}, Timeout: 2500 * time.Millisecond, Gzip: true}, ""},
		{"a timeout is a number", map[string]string{traces + "ENDPOINT": "http://t", all + "TIMEOUT": "10s"}, nil, all + `TIMEOUT: "10s"`},
		{"a header has a name", map[string]string{traces + "ENDPOINT": "http://t", traces + "HEADERS": "=secret"}, nil, traces + "HEADERS"},
		{"a header's name is a token", map[string]string{traces + "ENDPOINT": "http://t", traces + "HEADERS": "a b=secret"}, nil, traces + "HEADERS"},
		{"a header's value is one line", map[string]string{traces + "ENDPOINT": "http://t", traces + "HEADERS": "a=secret%0Ab"}, nil, traces + "HEADERS"},
		{"certificates are PEM", map[string]string{traces + "ENDPOINT": "https://t", all + "CERTIFICATE": noPEM}, nil, all + "CERTIFICATE"},
		{"a key needs its certificate", map[string]string{traces + "ENDPOINT": "https://t", all + "CLIENT_KEY": noPEM}, nil, all + "CLIENT_KEY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &app{}
			a.Getenv = func(name string) string { return c.env[name] }
			got, err := a.traceEndpoint()
			switch {
			case c.wrong != "":
				if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret") {
					t.Errorf("the error is %v, which is to name %q", err, c.wrong)
				}
			case err != nil:
				t.Error(err)
			case (got == nil) != (c.want == nil):
				t.Errorf("%+v, not %+v", got, c.want)
			case got != nil && (got.URL != c.want.URL || got.Timeout != c.want.Timeout || got.Gzip != c.want.Gzip || got.TLS != nil || !maps.Equal(got.Headers, c.want.Headers)):
				t.Errorf("%+v, not %+v", got, c.want)
			}
		})
	}
}
