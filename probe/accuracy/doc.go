// Package accuracy measures how right the prober is and what it costs, beside a plain client and against the truth
// of a server in a process of its own. All of it is a test behind the build tag bench: see TestGoals, or run
// make bench.
package accuracy
