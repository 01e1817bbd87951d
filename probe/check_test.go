package probe

import (
	"regexp"
	"strings"
	"testing"

	"goodput_exporter/config"
)

func TestCheckText(t *testing.T) {
	const schema = `{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}, "n": {"minimum": 1}}}`
	json := config.Check{JSON: true}
	city := config.Check{Schema: schema}
	repeats := func(n int) config.Check { return config.Check{MaxRepetition: n} }
	for _, tc := range []struct {
		name, text string
		check      config.Check
		expect     string
		require    bool
		want       string // a part of the reason; "" is none
	}{
		{name: "nothing wanted", text: ""},
		{name: "text wanted", text: " \n", require: true, want: "no visible text"},
		{name: "expression met", text: "It is Paris.", expect: "(?i)paris"},
		{name: "expression missed", text: "Rome", expect: "Paris", want: `does not match "Paris"`},

		{name: "long enough", text: " äöü ", check: config.Check{MinLength: 3}},
		{name: "too short", text: "  äö    ", check: config.Check{MinLength: 3}, want: "2 characters, not at least 3"},

		{name: "JSON", text: " {\"a\": [1, 2]}\n", check: json},
		{name: "JSON that is no object", text: "17", check: json},
		{name: "no JSON", text: "Sure! {}", check: json, want: "not JSON: invalid character 'S'"},
		{name: "JSON in a fence", text: "```json\n{}\n```", check: json, want: "not JSON: invalid character '`'"},
		{name: "two JSON values", text: "{} {}", check: json, want: "not JSON"},
		{name: "half of JSON", text: `{"a": [1`, check: json, want: "not JSON: unexpected EOF"},
		{name: "no text instead of JSON", text: " ", check: json, want: "not JSON: there is none"},
		{name: "schema met", text: `{"city": "Paris"}`, check: city},
		{name: "schema missed", text: `{"town": "Paris"}`, check: city, want: "does not fit the schema: missing property 'city'"},
		{name: "schema missed inside", text: `{"city": 1, "n": 0}`, check: city, want: "/city: got number, want string"},
		{name: "schema and no JSON", text: "Paris", check: city, want: "not JSON"},

		{name: "as often as may be", text: strings.Repeat("ab", 3), check: repeats(3)},
		{name: "too often", text: "Well, " + strings.Repeat("ab", 4), check: repeats(3), want: `ends with "ab" 4 times in a row, more than 3`},
		{name: "too often, the last one cut", text: strings.Repeat(" moss fern", 5) + " mos", check: repeats(4), want: "5 times in a row"},
		{name: "one character", text: "no" + strings.Repeat("!", 30), check: repeats(20), want: `"!" 30 times`},
		{name: "line ends", text: "{}" + strings.Repeat("\n", 30), check: repeats(20), want: `"\n" 30 times`},
		{name: "a sentence", text: strings.Repeat("I am not sure that I can say that. ", 9), check: repeats(8), want: "9 times"},
		{name: "in the midst, but not at the end", text: strings.Repeat("ab", 50) + ". Enough.", check: repeats(3)},
		{name: "longer than a unit can be", text: strings.Repeat(strings.Repeat("x", 150)+strings.Repeat("y", 51), 5), check: repeats(51)},
		{name: "repetition that nobody limits", text: strings.Repeat("ab", 1000)},
		{name: "no text repeats nothing", text: "", check: repeats(1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &attempt{Prober: &Prober{scenario: &config.Scenario{Check: tc.check, RequireText: tc.require}}}
			if tc.expect != "" {
				a.expect = regexp.MustCompile(tc.expect)
			}
			var err error
			if a.schema, err = tc.check.CompileSchema(); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := a.checkText([]byte(tc.text)); err != nil {
				got = err.Error()
			}
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if strings.Contains(got, "\n") {
				t.Errorf("more than one line: %q", got)
			}
		})
	}
}

// A text of which only the beginning was kept has an end that nobody knows.
func TestCheckOfClippedText(t *testing.T) {
	a := &attempt{Prober: &Prober{scenario: &config.Scenario{Check: config.Check{JSON: true, MaxRepetition: 3, MinLength: 5}}}}
	a.answer.clipped = true
	if err := a.checkText([]byte("aaaaaaaa")); err != nil {
		t.Error(err)
	}
}
