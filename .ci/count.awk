# Reads the events of `go test -json`, prints what a person wants to see of them, and closes with the number of
# tests that ran, subtests included:
#
#     N passed, M failed, K skipped
#
# The last line of the input is "exit S" with the exit status of go itself, so that a go that could not even
# begin is a failure too. A package that fails without a failed test of its own (it does not compile, or its
# TestMain found a leak) counts as one failure. Exits 1 where anything failed or nothing ran.

# field returns the string value of a key of one event. The decoding of what it returns is left to text.
function field(key,    from, rest) {
	from = index($0, "\"" key "\":\"")
	if (!from) return ""
	rest = substr($0, from + length(key) + 4)
	if (!match(rest, /^([^"\\]|\\.)*/)) return ""
	return substr(rest, 1, RLENGTH)
}

# text decodes the escapes of a JSON string. Two backslashes are set aside first, so that "\\n" stays a
# backslash and an n.
function text(s) {
	gsub(/\\\\/, "\001", s)
	gsub(/\\n/, "\n", s); gsub(/\\t/, "\t", s); gsub(/\\r/, "", s); gsub(/\\"/, "\"", s); gsub(/\\\//, "/", s)
	gsub(/\\u003c/, "<", s); gsub(/\\u003e/, ">", s); gsub(/\\u0026/, "\\&", s); gsub(/\\u001b/, "\033", s)
	gsub(/\001/, "\\", s)
	return s
}

/^exit [0-9]+$/ { status = $2; next }
!/^{/ { print; next } # not an event: go has something to say

{
	action = field("Action"); package = field("Package"); test = field("Test")
	# Every test has a key of its own, and all tests of a package share a prefix.
	key = package SUBSEP test
}

action == "build-output" { printf "%s", text(field("Output")); next }

action == "output" {
	line = text(field("Output"))
	if (line ~ /^=== /) next
	if (test != "") output[key] = output[key] line
	else if (line !~ /^(PASS|FAIL)\n$/) about[package] = about[package] line
	next
}

test != "" && (action == "pass" || action == "fail" || action == "skip") {
	count[action]++
	if (action == "fail") { failed[package]++; printf "%s", output[key] }
	if (action == "skip") printf "%s", output[key]
	delete output[key]
	next
}

# The package's own end, with its line such as "ok  	goodput_exporter/config	0.1s".
test == "" && (action == "pass" || action == "fail" || action == "skip") {
	if (action == "fail" && !failed[package]) count["fail"]++
	printf "%s", about[package]
	fflush()
}

END {
	if (status != 0 && !count["fail"]) count["fail"]++
	if (!count["pass"] && !count["fail"]) print "no test ran"
	printf "%d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"]
	exit !(status == "0" && count["pass"] && !count["fail"])
}
