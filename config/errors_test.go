package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write puts files, named by their paths, into a new directory and makes it the working directory, so that messages
// hold short paths.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// valid is a configuration of which the tests spoil one part.
const valid = `global: {interval: 30s, timeout: 20s}
scenarios:
  chat:
    prompt: Say hello.
    max_tokens: 64
    slo: {objective: 95%, ttft: 800ms}
targets:
  - name: eu
    url: https://llm.example.net/v1
    model: m
    scenarios: [chat]
`

func TestLoadNamesWhatIsWrong(t *testing.T) {
	tests := []struct {
		name     string
		old, new string // what to replace in the valid configuration
		files    map[string]string
		want     string // all errors
	}{
		{
			"unknown key", "max_tokens: 64", "max_tokns: 64", nil,
			`c.yml:5: scenarios.chat.max_tokns: unknown key; did you mean "max_tokens"?`,
		},
		{
			"unknown key without a near one", "global: {", "global: {colour: red, ", nil,
			`c.yml:1: global.colour: unknown key; known are first_token_timeout, idle_timeout, interval, jitter, objective, timeout`,
		},
		{
			"unknown key in the settings of prometheus/common", "model: m", "model: m\n    http: {authorization: {credential: x}}", nil,
			`c.yml:11: targets[0].http.authorization.credential: unknown key; did you mean "credentials"?`,
		},
		{
			"unknown key in a list entry", "[chat]", "[{name: chat, intervall: 60s}]", nil,
			`c.yml:11: targets[0].scenarios[0].intervall: unknown key; did you mean "interval"?`,
		},
		{
			"duplicate key", "model: m", "model: m\n    model: n", nil,
			`c.yml:11: targets[0].model: given twice, first in line 10; remove one`,
		},
		{
			"wrong type of number", "max_tokens: 64", "max_tokens: many", nil,
			`c.yml:5: scenarios.chat.max_tokens: must be a whole number, not a string`,
		},
		{
			"wrong type of list", "[chat]", "chat", nil,
			`c.yml:11: targets[0].scenarios: must be a list, not a string`,
		},
		{
			"wrong type of mapping", "model: m", "model: m\n    budget: 5", nil,
			`c.yml:11: targets[0].budget: must be a mapping with the keys output_tokens_per_day, requests_per_day, not a number`,
		},
		{
			"wrong type of string", "model: m", "model: [m]", nil,
			`c.yml:10: targets[0].model: must be a string, not a list`,
		},
		{
			"wrong type of truth value", "max_tokens: 64", "stream: sometimes", nil,
			`c.yml:5: scenarios.chat.stream: must be true or false, not a string`,
		},
		{
			"number without a unit", "interval: 30s", "interval: 30", nil,
			`c.yml:1: global.interval: 30 has no unit: write a duration such as 15s or 800ms`,
		},
		{
			"no duration", "interval: 30s", "interval: 30 seconds", nil,
			`c.yml:1: global.interval: "30 seconds" is no duration: write one such as 15s, 800ms, 1.5s or 1m30s`,
		},
		{
			"negative duration", "interval: 30s", "interval: 30s, jitter: -5s", nil,
			`c.yml:1: global.jitter: must not be negative, as -5s is`,
		},
		{
			"timeout of 0", "timeout: 20s", "timeout: 0s", nil,
			`c.yml:1: global.timeout: must be more than 0: write a duration such as 15s or 800ms, or leave the key out`,
		},
		{
			"interval too short", "interval: 30s", "interval: 100ms", nil,
			`c.yml:1: global.interval: 100ms is too often for steady probing: at least 1s; for load there is goodputctl bench`,
		},
		{
			"jitter as long as the interval", "timeout: 20s", "timeout: 20s, jitter: 30s", nil,
			`c.yml:1: global.jitter: must be shorter than the interval of 30s, so that slots keep their order`,
		},
		{
			"first-token timeout longer than the whole", "timeout: 20s", "timeout: 20s, first_token_timeout: 25s", nil,
			`c.yml:1: global.first_token_timeout: 25s does not fit into the timeout of 20s for the whole probe: shorten it or lengthen timeout`,
		},
		{
			"idle timeout longer than the whole", "[chat]", "[{name: chat, idle_timeout: 1m}]", nil,
			`c.yml:11: targets[0].scenarios[0].idle_timeout: 1m does not fit into the timeout of 20s for the whole probe: shorten it or lengthen timeout`,
		},
		{
			"criterion beyond the timeout", "ttft: 800ms", "e2e: 40s", nil,
			`c.yml:6: scenarios.chat.slo.e2e: 40s is longer than the timeout of 20s, which ends the probe before: shorten the one or lengthen the other`,
		},
		{
			"duplicate target", "[chat]\n", "[chat]\n  - {name: eu, url: http://b, model: m, scenarios: [chat]}\n", nil,
			`c.yml:12: targets[1].name: duplicate target "eu", first in c.yml:8; names must be unique`,
		},
		{
			"unknown scenario", "[chat]", "[chta]", nil,
			`c.yml:11: targets[0].scenarios[0]: unknown scenario "chta"; did you mean "chat"?`,
		},
		{
			"unknown protocol", "model: m", "model: m\n    protocol: openai-chats", nil,
			`c.yml:11: targets[0].protocol: unknown protocol "openai-chats"; did you mean "openai-chat"?`,
		},
		{
			"the same scenario twice", "[chat]", "[chat, {name: chat}]", nil,
			`c.yml:11: targets[0].scenarios[1]: the series eu/chat is there twice: a target can have each scenario once`,
		},
		{
			"ttft without a stream", "max_tokens: 64", "stream: false", nil,
			`c.yml:6: scenarios.chat.slo.ttft: has no meaning for answers that are not streamed: remove it, use e2e, or set stream: true`,
		},
		{
			"ttft without a stream by an override", "[chat]", "[{name: chat, stream: false}]", nil,
			`c.yml:6: scenarios.chat.slo.ttft: has no meaning for answers that are not streamed: remove it, use e2e, or set stream: true`,
		},
		{
			"objective of 100 %", "95%", "100%", nil,
			`c.yml:6: scenarios.chat.slo.objective: must be more than 0 % and less than 100 %, such as 99%: an objective of 100 % leaves no error budget`,
		},
		{
			"objective of 0", "95%", "0", nil,
			`c.yml:6: scenarios.chat.slo.objective: must be more than 0 % and less than 100 %, such as 99%: an objective of 0 % asks for nothing`,
		},
		{
			"objective without its percent sign", "95%", "95", nil,
			`c.yml:6: scenarios.chat.slo.objective: must be below 1, or have a % sign: write 95% for 95 percent`,
		},
		{
			"objective missing", "objective: 95%, ", "", nil,
			`c.yml:6: scenarios.chat.slo.objective: missing: say how many of the probes must be good, such as 99%`,
		},
		{
			"criterion without its limit", "ttft: 800ms", "ttft: {objective: 90%}", nil,
			`c.yml:6: scenarios.chat.slo.ttft.limit: missing: give a duration such as 800ms`,
		},
		{
			"criterion limit of 0", "ttft: 800ms", "ttft: 0s", nil,
			`c.yml:6: scenarios.chat.slo.ttft: must be more than 0: write a duration such as 15s or 800ms, or leave the key out`,
		},
		{
			"complete of another type", "ttft: 800ms", "complete: 5s", nil,
			`c.yml:6: scenarios.chat.slo.complete: must be true, false, or {objective: 95%}`,
		},
		{
			"nothing to ask", "    prompt: Say hello.\n", "", nil,
			`c.yml:3: scenarios.chat.prompt: nothing to ask: give prompt (a text), prompts_file (JSON lines), or synthetic (lengths in tokens)`,
		},
		{
			"two kinds of prompts", "max_tokens: 64", "synthetic: {input_tokens: 50}", nil,
			`c.yml:4: scenarios.chat.prompt: give only one of prompt, prompts_file and synthetic`,
		},
		{
			"max_tokens and output_tokens", "max_tokens: 64", "max_tokens: 64\n    output_tokens: 64", nil,
			`c.yml:6: scenarios.chat.output_tokens: contradicts max_tokens: max_tokens is a ceiling, output_tokens pins the length; remove one`,
		},
		{
			"max_tokens of 0", "max_tokens: 64", "max_tokens: 0", nil,
			`c.yml:5: scenarios.chat.max_tokens: must be at least 1; leave it out for no limit`,
		},
		{
			"synthetic lengths in the wrong order", "prompt: Say hello.", "synthetic: {input_tokens: {p50: 90, p95: 60}}", nil,
			`c.yml:4: scenarios.chat.synthetic.input_tokens: must have a p50 of at least 1 and a p95 of at least the p50, such as {p50: 3000, p95: 6000}`,
		},
		{
			"bad regular expression", "max_tokens: 64", "expect: '(hello'", nil,
			"c.yml:5: scenarios.chat.expect: not a regular expression of RE2: error parsing regexp: missing closing ): `(hello`",
		},
		{
			"cache of another word", "max_tokens: 64", "cache: maybe", nil,
			`c.yml:5: scenarios.chat.cache: must be keep (the endpoint's prefix cache may answer) or bust (every prompt begins with a new nonce)`,
		},
		{
			"invalid label name", "model: m", "model: m\n    labels: {my-team: a}", nil,
			`c.yml:11: targets[0].labels.my-team: not a label name: it must match [a-zA-Z_][a-zA-Z0-9_]*`,
		},
		{
			"reserved label", "model: m", "model: m\n    labels: {instance: a}", nil,
			`c.yml:11: targets[0].labels.instance: the label instance is set by the exporter or by Prometheus: choose another, such as llm_instance`,
		},
		{
			"label of Prometheus itself", "model: m", "model: m\n    labels: {__name__: a}", nil,
			`c.yml:11: targets[0].labels.__name__: label names that begin with __ are reserved for Prometheus: choose another`,
		},
		{
			"negative budget", "model: m", "model: m\n    budget: {requests_per_day: -1}", nil,
			`c.yml:11: targets[0].budget.requests_per_day: must not be negative; leave it out for no bound`,
		},
		{
			"negative price", "model: m", "model: m\n    price: {input: -0.5}", nil,
			`c.yml:11: targets[0].price.input: must be dollars per million tokens, 0 or more`,
		},
		{
			"connection of another word", "model: m", "model: m\n    connection: close", nil,
			`c.yml:11: targets[0].connection: must be keep or new`,
		},
		{
			"URL without a scheme", "https://llm.example.net/v1", "llm.example.net/v1", nil,
			`c.yml:9: targets[0].url: must begin with http:// or https://`,
		},
		{
			"URL with a password", "https://llm", "https://me:hunter2@llm", nil,
			`c.yml:9: targets[0].url: must not hold a user name or password: put them under http.basic_auth`,
		},
		{
			"no model and no URL", "    url: https://llm.example.net/v1\n    model: m\n", "", nil,
			"c.yml:8: targets[0].url: missing: give the base URL or the full URL of the endpoint, such as https://llm.example.net/v1\n" +
				"c.yml:8: targets[0].model: missing: give the name of the model as the endpoint knows it",
		},
		{
			"no scenarios named", "    scenarios: [chat]\n", "", nil,
			`c.yml:8: targets[0].scenarios: no scenarios: name at least one, such as [chat]`,
		},
		{
			"unreadable secret", "model: m", "model: m\n    http: {authorization: {credentials_file: key}}", nil,
			`c.yml:11: targets[0].http.authorization.credentials_file: cannot read key: no such file or directory; it must be a file that the user of this process may read`,
		},
		{
			"secret variable that is not set", "model: m", "model: m\n    http:\n      basic_auth: {username: me, password_ref: NO_SUCH_VARIABLE}", nil,
			`c.yml:12: targets[0].http.basic_auth.password_ref: environment variable is not set: NO_SUCH_VARIABLE; a reference names a variable of this process`,
		},
		{
			"contradicting credentials", "model: m", "model: m\n    http: {basic_auth: {username: me}, authorization: {type: Bearer}}", nil,
			`c.yml:11: targets[0].http: at most one of basic_auth, oauth2 & authorization must be configured`,
		},
		{
			"no certificate in a CA file", "model: m", "model: m\n    http: {tls_config: {ca_file: ca.pem}}",
			map[string]string{"ca.pem": "nothing"},
			`c.yml:11: targets[0].http.tls_config: unable to use specified CA cert file ca.pem`,
		},
		{
			"missing prompts file", "prompt: Say hello.", "prompts_file: p.jsonl", nil,
			`c.yml:4: scenarios.chat.prompts_file: cannot read the prompts file p.jsonl: no such file or directory; paths are relative to the file that names them`,
		},
		{
			"empty prompts file", "prompt: Say hello.", "prompts_file: p.jsonl",
			map[string]string{"p.jsonl": "\n"},
			`c.yml:4: scenarios.chat.prompts_file: the prompts file p.jsonl is empty: write lines such as {"prompt": "Say hello."}`,
		},
		{
			"bad JSON on line 7 of a prompts file", "prompt: Say hello.", "prompts_file: p.jsonl",
			map[string]string{"p.jsonl": strings.Repeat(`{"prompt": "Hi."}`+"\n", 6) + `{"prompt": "Hi.}` + "\n"},
			`p.jsonl:7: not JSON: the line ends inside the object; write each object in one line`,
		},
		{
			"every bad line of a prompts file", "prompt: Say hello.", "prompts_file: p.jsonl",
			map[string]string{"p.jsonl": `{"promt": "a"}
{"prompt": "a", "weight": 0}
{"prompt": "a", "messages": [{"role": "user", "content": "b"}]}

{"prompt": "a", "expect": "["}
{"prompt": 5}
"a"
{"prompt": "a"} {"prompt": "b"}
{"messages": [{"content": "b"}], "max_tokens": -1}
`},
			`p.jsonl:1: unknown key "promt"; did you mean "prompt"?
p.jsonl:2: weight: must be more than 0; leave it out for 1
p.jsonl:3: must have either a text as prompt or messages
p.jsonl:5: expect: not a regular expression of RE2: error parsing regexp: missing closing ]: ` + "`[`" + `
p.jsonl:6: prompt must be of type string, not number
p.jsonl:7: must be an object such as {"prompt": "Say hello."}, not a JSON string
p.jsonl:8: not JSON: something follows the object; write one object a line
p.jsonl:9: messages: every message needs a role, such as "user"
p.jsonl:9: max_tokens: must be at least 1; leave it out to take the scenario's`,
		},
		{
			"no targets", valid[strings.Index(valid, "targets:"):], "targets: []\n", nil,
			`c.yml:7: targets: no targets: list at least one with name, url and model`,
		},
		{
			"bad pattern of target files", "targets:", "target_files: ['[']\ntargets:", nil,
			`c.yml:7: target_files[0]: not a pattern: syntax error in pattern; write one such as targets/*.yml`,
		},
		{
			"scenario that no target uses", "targets:", "  spare: {stream: false, prompt: x, slo: {objective: 90%, tpot: 1s}}\ntargets:", nil,
			`c.yml:7: scenarios.spare.slo.tpot: has no meaning for answers that are not streamed: remove it, use e2e, or set stream: true`,
		},
		{
			"syntax", "global: {interval: 30s, timeout: 20s}", "global: {interval: 30s", nil,
			`c.yml:2: not YAML: did not find expected ',' or '}'`,
		},
		{
			"syntax of a scalar", "model: m", "model: m: n", nil,
			`c.yml:10: not YAML: mapping values are not allowed in this context`,
		},
		{
			"wrong type of criterion", "ttft: 800ms", "ttft: [1s]", nil,
			`c.yml:6: scenarios.chat.slo.ttft: must be a duration such as 800ms, or {limit: 800ms, objective: 95%}, not a list`,
		},
		{
			"wrong type of list entry", "[chat]", "[[chat]]", nil,
			"c.yml:11: targets[0].scenarios[0]: must be the name of a scenario, or a mapping such as {name: chat, interval: 60s}, not a list",
		},
		{
			"merge of a scalar", "model: m", "model: m\n    <<: 5", nil,
			`c.yml:11: targets[0]: a merge (<<) must name a mapping or a list of mappings`,
		},
		{
			"merge of itself", "  - name: eu", "  - &eu\n    <<: *eu\n    name: eu", nil,
			`c.yml:8: targets[0]: merges (<<) nest too deep, or one contains itself`,
		},
		{
			"body that is no JSON", "model: m", "model: m\n    extra_body: {temperature: .nan}", nil,
			`c.yml:11: targets[0].extra_body: cannot be sent as JSON: keys must be strings and numbers finite`,
		},
		{
			"key given twice in a body", "model: m", "model: m\n    extra_body: {a: 1, a: 2}", nil,
			`c.yml:11: targets[0].extra_body.a: given twice, first in line 11; remove one`,
		},
		{
			"URL without a host", "https://llm.example.net/v1", "https:///v1", nil,
			`c.yml:9: targets[0].url: has no host: write one such as https://llm.example.net/v1`,
		},
		{
			"two documents", "targets:", "---\ntargets:", nil,
			`c.yml:7: a second YAML document: put everything into one`,
		},
		{
			"errors of several files and kinds at once", "    scenarios: [chat]\n",
			"    scenarios: [chat, talk]\n    labels: {job: x}\n    protocol: grpc\ntarget_files: [t/*.yml]\n",
			map[string]string{
				"t/a.yml": "- {name: eu, url: ftp://a, model: m, scenarios: [chat]}\n- {nam: b}\n",
				"t/b.yml": "targets:\n- {name: b, url: 'http://b', model: m, scenarios: [{name: chat, prompts_file: p.jsonl}]}\n",
			},
			`c.yml:11: targets[0].scenarios[1]: unknown scenario "talk"; known are chat
c.yml:12: targets[0].labels.job: the label job is set by the exporter or by Prometheus: choose another, such as llm_job
c.yml:13: targets[0].protocol: unknown protocol "grpc"; known are anthropic-messages, azure-openai, bedrock-converse, cohere, gemini, ollama, openai-chat, openai-completions, openai-embeddings, openai-responses, rerank, tgi
t/a.yml:1: [0].url: must begin with http:// or https://
t/a.yml:1: [0].name: duplicate target "eu", first in c.yml:8; names must be unique
t/a.yml:2: [1].nam: unknown key; did you mean "name"?
t/a.yml:2: [1].name: missing: give each target a name; it becomes the label target
t/a.yml:2: [1].url: missing: give the base URL or the full URL of the endpoint, such as https://llm.example.net/v1
t/a.yml:2: [1].model: missing: give the name of the model as the endpoint knows it
t/a.yml:2: [1].scenarios: no scenarios: name at least one, such as [chat]
t/b.yml:2: targets[0].scenarios[0].prompts_file: cannot read the prompts file t/p.jsonl: no such file or directory; paths are relative to the file that names them`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, tt.files)
			spoilt := strings.Replace(valid, tt.old, tt.new, 1)
			if spoilt == valid {
				t.Fatalf("the valid configuration has no %q", tt.old)
			}
			if err := os.WriteFile("c.yml", []byte(spoilt), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load("c.yml")
			if err == nil {
				t.Fatal("Load returned no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadOfMissingAndEmptyFiles(t *testing.T) {
	write(t, map[string]string{"empty.yml": "# nothing\n", "list.yml": "- a\n"})
	tests := []struct{ file, want string }{
		{"no.yml", "no.yml: cannot read the file: no such file or directory"},
		{"empty.yml", "empty.yml: the file is empty: list targets"},
		{"list.yml", "list.yml:1: must be a mapping with the keys global, maintenance, scenarios, target_files, targets, not a list"},
	}
	for _, tt := range tests {
		_, err := Load(tt.file)
		if err == nil || err.Error() != tt.want {
			t.Errorf("Load(%s) = %v, want %s", tt.file, err, tt.want)
		}
	}
	if _, err := Load("no.yml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error of a missing file does not wrap fs.ErrNotExist: %v", err)
	}
}

// Values that do not fit their place are where a secret would slip into a message.
func TestErrorsNeverRepeatSecrets(t *testing.T) {
	for name, http := range map[string]string{
		"credentials as the mapping":  "{authorization: hunter2-secret}",
		"credentials as a bare key":   "{authorization: {hunter2-secret}}",
		"credentials as a list":       "{authorization: {credentials: [hunter2-secret]}}",
		"password as an alias":        "{basic_auth: {username: me, password: *hunter2-secret}}",
		"header without its mapping":  "{http_headers: {X-Api-Key: hunter2-secret}}",
		"proxy URL that is none":      "{proxy_url: 'http://me:hunter2-secret@proxy:port'}",
		"secret where a bool belongs": "{enable_http2: hunter2-secret}",
		"secret as a number":          "{tls_config: {min_version: hunter2-secret}}",
		"binary that is none":         "{authorization: {credentials: !!int hunter2-secret}}",
		"two secrets":                 "{authorization: {credentials: hunter2-secret, credentials_file: c.yml}}",
		"key that is no key":          "{tls_config: {cert: x, key: hunter2-secret}}",
		"claims that are none":        "{oauth2: {client_id: a, token_url: b, claims: {n: !!int hunter2-secret}}}",
	} {
		t.Run(name, func(t *testing.T) {
			write(t, map[string]string{"c.yml": valid + "    http: " + http + "\n"})
			_, err := Load("c.yml")
			if err == nil && name != "binary that is none" {
				t.Fatal("Load returned no error")
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error repeats a secret: %v", err)
			}
		})
	}
}
