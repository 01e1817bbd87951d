// Package probetest has servers that say what they do and do what they say, for tests, the demo and the
// benchmark:
//
//   - a [Player] plays one scripted [Case]: raw bytes at stated milliseconds, then a stated end;
//   - an [Endpoint] simulates an inference server: models with latencies, lengths and faults;
//   - a [TruthServer] streams tokens at a steady pace and remembers exactly when it wrote each.
//
// All of them listen on loopback only, unless told otherwise.
package probetest
