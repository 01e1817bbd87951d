package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnEnvironmentThatTheSDKWouldPassOverIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sesame.pem")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ variable, value, want string }{
		"half a header":             {"OTEL_EXPORTER_OTLP_HEADERS", "a=b,sesame", "entry 2 is not name=value"},
		"a header's bad escape":     {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=sesame%zz", "entry 1 is not name=value"},
		"a header's bad name":       {"OTEL_EXPORTER_OTLP_HEADERS", "sesame open=x", "cannot stand in a header"},
		"a header's line feed":      {"OTEL_EXPORTER_OTLP_HEADERS", "x=sesame%0Ay", "cannot stand in a header"},
		"an endpoint with no URL":   {"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "http://localhost:4318"},
		"an endpoint that breaks":   {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://u:sesame@h:x/", "http://localhost:4318"},
		"a timeout with a unit":     {"OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "want milliseconds"},
		"no timeout":                {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "0", "want milliseconds"},
		"a protocol we do not have": {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"},
		"a file that is not there":  {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem", "no such file"},
		"a file with no PEM":        {"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", file, "no certificate in PEM"},
		"a certificate, no key":     {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", file, "_CLIENT_KEY"},
		"a resource attribute":      {"OTEL_RESOURCE_ATTRIBUTES", "a=%zz", "entry 1 is not name=value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			_, err := New(t.Context(), Options{})
			if err == nil {
				t.Fatalf("%s=%s is taken", c.variable, c.value)
			}
			if got := err.Error(); !strings.Contains(got, c.variable) && c.variable != "OTEL_EXPORTER_OTLP_PROTOCOL" || !strings.Contains(got, c.want) {
				t.Errorf("error %q, want it to name %s and %q", got, c.variable, c.want)
			}
			if strings.Contains(strings.ReplaceAll(err.Error(), file, ""), "sesame") {
				t.Errorf("the error tells the value: %s", err)
			}
		})
	}
}

func TestTheProtocolOfTracesGoesBeforeThatOfAll(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
	if _, err := checkEnvironment(); err != nil {
		t.Error(err)
	}
}
