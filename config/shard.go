package config

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
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

// Has reports whether a target is the shard's, by a hash of its name. All series of a target are in one shard, and
// with them its budget.
func (s Shard) Has(target string) bool {
	if s.Count == 0 {
		return true
	}
	sum := sha256.Sum256([]byte(target))
	return binary.BigEndian.Uint64(sum[:8])%uint64(s.Count) == uint64(s.Index)
}

// Keep leaves only the shard's targets and series in the configuration. The label names stay those of the whole,
// so that all shards expose the same.
func (c *Config) Keep(s Shard) {
	c.Targets = slices.DeleteFunc(c.Targets, func(t *Target) bool { return !s.Has(t.Name) })
	c.Series = slices.DeleteFunc(c.Series, func(sr *Series) bool { return !s.Has(sr.Target.Name) })
}
