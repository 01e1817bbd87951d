package config

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Shard is one of several processes that share the targets of one configuration. The zero value has them all.
type Shard struct {
	Index, Count int // 0 ≤ Index < Count; Count 0 is no sharding
}

// ParseShard reads "i/n", with i from 0 to n − 1: the ordinal of a StatefulSet's pod, and its number of replicas.
func ParseShard(text string) (Shard, error) {
	index, count, ok := strings.Cut(text, "/")
	i, errI := strconv.Atoi(index)
	n, errN := strconv.Atoi(count)
	if !ok || errI != nil || errN != nil || n < 1 || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("shard %q: it must be i/n with i from 0 to n-1, such as 0/3", text)
	}
	return Shard{Index: i, Count: n}, nil
}

// Set is ParseShard for flags.
func (s *Shard) Set(text string) (err error) {
	*s, err = ParseShard(text)
	return err
}

// String returns what ParseShard reads; "" where there is no sharding.
func (s *Shard) String() string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// Has reports whether a target is the shard's, by a hash of its name. All series of a target are in one shard, and
// with them its budget.
func (s Shard) Has(target string) bool {
	if s.Count == 0 {
		return true
	}
	sum := sha256.Sum256([]byte(target))
	return binary.BigEndian.Uint64(sum[:8])%uint64(s.Count) == uint64(s.Index)
}

// Keep returns the configuration with only the shard's targets and series. The label names stay those of the whole,
// so that all shards expose the same.
func (c *Config) Keep(s Shard) *Config {
	kept := *c
	kept.Targets, kept.Series = nil, nil
	for _, t := range c.Targets {
		if s.Has(t.Name) {
			kept.Targets = append(kept.Targets, t)
		}
	}
	for _, sr := range c.Series {
		if s.Has(sr.Target.Name) {
			kept.Series = append(kept.Series, sr)
		}
	}
	return &kept
}
