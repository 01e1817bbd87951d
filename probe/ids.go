package probe

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// newTraceIDs returns the ids of a trace and of its span, as W3C Trace Context has them. They identify, they do
// not protect.
func newTraceIDs() (trace, span string) {
	var id [24]byte
	for i := 0; i < len(id); i += 8 {
		binary.BigEndian.PutUint64(id[i:], rand.Uint64()|1) // all zero is not allowed
	}
	return hex.EncodeToString(id[:16]), hex.EncodeToString(id[16:])
}
