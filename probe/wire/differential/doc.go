// Package differential compares what this project's decoders read out of a stream with what the vendors' own SDKs do.
// It is a module of its own, so that nothing else depends on them.
package differential
