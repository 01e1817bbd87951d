package workload

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func FuzzReadTrace(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, "")
	}
	f.Add([]byte("Timestamp,Request tokens,Response tokens\n1e300,1,1\n\"2\",1,1\n"), "burstgpt")
	f.Add([]byte(`{"timestamp":1e-9,"input_length":1,"output_length":1,"hash_ids":null}`), "mooncake")
	f.Add([]byte("GeneratedTokens,ContextTokens,TIMESTAMP,TIMESTAMP\n1,1,2024-05-10T00:00:00Z,\n"), "azure")

	f.Fuzz(func(t *testing.T, content []byte, format string) {
		trace, err := ReadTrace(bytes.NewReader(content), format)
		if err != nil {
			return
		}
		lines := bytes.Count(content, []byte("\n")) + bytes.Count(content, []byte("\r")) + 1
		if n := len(trace.Entries); n == 0 || n+trace.LeftOut > lines {
			t.Fatalf("%d requests, %d left out, of %d lines", n, trace.LeftOut, lines)
		}
		last := trace.Entries[0]
		if last.At != 0 {
			t.Fatalf("the first is due at %v", last.At)
		}
		for _, e := range trace.Entries {
			if e.At < last.At || e.At > maxTraceTime {
				t.Fatalf("an entry at %v after one at %v", e.At, last.At)
			}
			if e.InputTokens < 1 || e.OutputTokens < 1 || e.InputTokens > maxTraceTokens || e.OutputTokens > maxTraceTokens {
				t.Fatalf("lengths of %d and %d tokens", e.InputTokens, e.OutputTokens)
			}
			last = e
		}
	})
}
