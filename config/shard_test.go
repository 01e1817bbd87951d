package config

import (
	"fmt"
	"testing"
)

func TestParseShard(t *testing.T) {
	if s, err := ParseShard("2/3"); err != nil || s != (Shard{2, 3}) {
		t.Errorf("got %v, %v", s, err)
	}
	for _, bad := range []string{"", "1", "3/3", "-1/3", "0/0", "a/b", "1/2/3"} {
		if _, err := ParseShard(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Every target is in exactly one shard, with all its series, and the shards are about equal.
func TestKeep(t *testing.T) {
	const targets, shards = 1000, 4
	seen := map[string]int{}
	for i := range shards {
		cfg := &Config{LabelNames: []string{"env"}}
		for n := range targets {
			target := &Target{Name: fmt.Sprintf("target-%d", n)}
			cfg.Targets = append(cfg.Targets, target)
			for _, name := range []string{"chat", "summarize"} {
				cfg.Series = append(cfg.Series, &Series{Target: target, Scenario: &Scenario{Name: name}})
			}
		}
		cfg = cfg.Keep(Shard{i, shards})
		if len(cfg.Series) != 2*len(cfg.Targets) || len(cfg.LabelNames) != 1 {
			t.Errorf("shard %d: %d series of %d targets, labels %v", i, len(cfg.Series), len(cfg.Targets), cfg.LabelNames)
		}
		if n := len(cfg.Targets); n < targets/shards*8/10 || n > targets/shards*12/10 {
			t.Errorf("shard %d has %d targets", i, n)
		}
		for _, target := range cfg.Targets {
			seen[target.Name]++
		}
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is in %d shards", name, n)
		}
	}
	if len(seen) != targets {
		t.Errorf("%d targets are in a shard", len(seen))
	}
}
