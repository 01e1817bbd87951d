package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// The parts of the Indexed Job, run side by side as its pods would be, merge into the load that its flags ask for.
func TestBenchJob(t *testing.T) {
	o := kustomize(t, manifests+"bench")
	job := o.job
	if job == nil {
		t.Fatal("no Job")
	}
	o.checkSecurity(t)
	if image := o.container().Image; !pinned.MatchString(image) {
		t.Errorf("image %s is not pinned", image)
	}
	parts := int(*job.Spec.Completions)
	if mode := *job.Spec.CompletionMode; mode != batchv1.IndexedCompletion || int(*job.Spec.Parallelism) != parts {
		t.Errorf("%s of %d pods, %d at a time", mode, parts, *job.Spec.Parallelism)
	}

	goodputctl := filepath.Join(imageContent(t), "bin/goodputctl")
	simulation := exec.CommandContext(t.Context(), goodputctl, "simulate", "--listen=127.0.0.1:0", "--ttft=fixed:5ms", "--gap=fixed:1ms", "--model=llama-3.3-70b")
	stdout, err := simulation.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := simulation.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = simulation.Wait() }()
	defer func() { _ = simulation.Process.Signal(os.Interrupt) }()
	base := ""
	for lines := bufio.NewScanner(stdout); base == "" && lines.Scan(); {
		if protocol, url, ok := strings.Cut(strings.TrimSpace(lines.Text()), " "); ok && protocol == "openai-chat" {
			base = strings.TrimSpace(url)
		}
	}

	dir, ended := t.TempDir(), make(chan error, parts)
	raw := []string{"merge", "--output=json"}
	for i := range parts {
		name := filepath.Join(dir, fmt.Sprint(i, ".jsonl"))
		raw = append(raw, name)
		cmd := exec.CommandContext(t.Context(), goodputctl, o.benchArgs(i)...)
		cmd.Env = []string{"LLM_URL=" + base, "LLM_MODEL=llama-3.3-70b"}
		go func() {
			// On a busy machine a part may say that it was the bottleneck, and exit with 2. Its counts are right.
			out, err := cmd.Output()
			if len(out) > 0 {
				err = os.WriteFile(name, out, 0o600)
			}
			ended <- err
		}()
	}
	for range parts {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	var report struct {
		Load struct {
			Rate float64 `json:"rate_req_s"`
		} `json:"load"`
		Counts struct {
			Attempts int `json:"attempts"`
		} `json:"counts"`
	}
	merged, _ := exec.CommandContext(t.Context(), goodputctl, raw...).Output() // the same of its exit code
	if err := json.Unmarshal(merged, &report); err != nil {
		t.Fatalf("%v: %s", err, merged)
	}
	if report.Counts.Attempts != jobRequests || report.Load.Rate != 200 {
		t.Errorf("%d requests at %v/s, want %d at 200/s", report.Counts.Attempts, report.Load.Rate, jobRequests)
	}
}

// jobRequests is what the test asks for, instead of the many requests of the Job.
const jobRequests = 400

// benchArgs returns the arguments of one pod, for fewer and shorter requests.
func (o *objects) benchArgs(index int) []string {
	expand := strings.NewReplacer("$(JOB_COMPLETION_INDEX)", fmt.Sprint(index), "$(PARTS)", o.variable("PARTS"))
	var args []string
	for _, arg := range o.container().Args {
		name, _, _ := strings.Cut(arg, "=")
		switch name {
		case "--requests":
			arg = fmt.Sprint("--requests=", jobRequests)
		case "--input-tokens":
			arg = "--input-tokens=20"
		case "--output-tokens":
			arg = "--output-tokens=5"
		}
		args = append(args, expand.Replace(arg))
	}
	return args
}

// variable returns the value of one of the container's environment variables.
func (o *objects) variable(name string) string {
	for _, v := range o.container().Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}
