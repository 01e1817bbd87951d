package wire

import (
	"sync/atomic"

	"goodput_exporter/probe/stream"
)

// The frames that come once in an answer of the OpenAI family (the role, the finish, the usage, or a whole answer) are
// recognised too, by what was learned in earlier answers of the series. What they say can depend on what came before, so
// each pattern holds in the state that it was learned in, and knows the one that it leaves.

// rareKind is a kind of such a frame.
type rareKind int

const (
	rareSilent rareKind = iota // says nothing: a role
	rareFinish
	rareUsage
	rareWhole
	rareKinds
)

// rareMemory is what a [Memory] keeps of the frames of one kind.
type rareMemory struct {
	pattern atomic.Pointer[rarePattern]
	vain    atomic.Int32 // frames in a row that were learned and not recognised
}

// rarePattern is a pattern that holds in one state.
type rarePattern struct {
	*pattern
	before, after openAIState
}

// openAIState is all that a chunk's meaning depends on besides its own bytes.
type openAIState struct {
	streamed bool // a chunk before this one brought generated matter
	finished bool // a choice ended
	choice   int  // the one that ended first
}

// recognise returns what a frame says that was learned in an earlier answer.
func (d *openAIChunks) recognise(f stream.Frame) (ev Event, ok bool) {
	for kind := range d.memory.rare {
		if f.Whole != (rareKind(kind) == rareWhole) {
			continue
		}
		known := &d.memory.rare[kind]
		p := known.pattern.Load()
		if p == nil || p.before != d.state {
			continue
		}
		d.rare.use(p.pattern)
		if d.rare.fit(f.Data, &ev) {
			if known.vain.Load() != 0 { // concurrent decoders need not write what is so already
				known.vain.Store(0)
			}
			d.state = p.after
			return ev, true
		}
	}
	return Event{}, false
}

// learn makes a pattern of a frame that was decoded in the state before.
func (d *openAIChunks) learn(f stream.Frame, ev Event, before openAIState) {
	kind, ok := rareKindOf(f, ev)
	if !ok {
		return
	}
	known := &d.memory.rare[kind]
	if known.vain.Load() >= maxMisses {
		return
	}
	known.vain.Add(1)
	after := d.state
	again := func(f stream.Frame) (Event, error) {
		d.state = before
		return d.decodeJSON(f)
	}
	if d.rare.prove(f, ev, again) && d.state == after {
		known.pattern.Store(&rarePattern{d.rare.pattern, before, after})
	}
	d.state = after
}

// rareKindOf returns which kind of rare frame it was that said this. False: none, or one that says what no pattern holds.
func rareKindOf(f stream.Frame, ev Event) (rareKind, bool) {
	switch {
	case !ev.simple():
		return 0, false
	case f.Whole:
		return rareWhole, true
	case ev.Channels != 0:
		return 0, false
	case ev.Finish != "":
		return rareFinish, true
	case ev.Usage != nil:
		return rareUsage, true
	}
	return rareSilent, true
}
