package differential

// differences says, case by case, why an SDK reads something else out of a stream than we do. We are right in all of
// them: README.md has the reasons at length. A case that does not differ any more makes the tests fail.
var differences = map[string]string{
	"A1.11":  loneCR,
	"A1.12":  loneCR,
	"A1.17":  loneCR,
	"A1.15":  byteOrderMark,
	"A1.16":  byteOrderMark,
	"A2.13":  emptyData,
	"A2.14":  emptyData,
	"A3.11":  paddedDone,
	"A3.12":  paddedDone,
	"A6":     unterminated,
	"A6.15":  unterminated,
	"A6.17":  unterminated,
	"A6.20":  unterminated,
	"A27.24": unterminated,
	"A10.14": "openai-go takes the JSON value false for the finish reason \"false\"",
	"A13.12": "Groq reports usage in x_groq, which openai-go does not know",
	"A14.14": "the last report leaves the output tokens out; what an earlier one said of them stands",
	"A15.12": contentParts,
	"A18":    contentParts,
	"A18.11": contentParts,
	"A18.12": contentParts,
	"A18.13": contentParts,
	"A20.13": contentParts,
	"A21.51": "openai-go takes the presence of the key \"error\" for an error, even if it is null",
	"P3.3":   jsonList,
	"P3.4":   jsonList,
	"P3.34":  "genai takes a comment for a broken event",
}

const (
	loneCR        = "a line may end with CR alone, by the standard; openai-go splits at LF and CRLF only"
	byteOrderMark = "one may lead, by the standard; openai-go loses the first event by it"
	emptyData     = "an empty data field is no event, by the standard; openai-go decodes it as JSON"
	paddedDone    = "openai-go takes [DONE] with white space before it for JSON"
	unterminated  = "the standard drops an event without a blank line behind it; one that is whole was sent all the same"
	contentParts  = "openai-go knows content as a string only, and returns a list of parts as its JSON"
	jsonList      = "genai always asks for server-sent events and knows nothing else; a proxy may drop the question"
)
