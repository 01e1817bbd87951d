package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
)

// The configuration knows the protocols by name only, since it stands below them.
func TestConfigKnowsTheProtocols(t *testing.T) {
	if diff := cmp.Diff(Names(), config.Protocols); diff != "" {
		t.Error(diff)
	}
}
