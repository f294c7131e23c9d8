# Tells what a run of the tests came to: which tests failed, and which were skipped, with the reason.
# Reads GoogleTest's XML files, one a shard, then ctest's JUnit file, which knows the tests that are no GoogleTest's
# and the shards that died before they wrote their file.

function unescape(text) {
    gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text); gsub(/&apos;/, "'", text)
    gsub(/&amp;/, "\\&", text)
    return text
}
function attribute(name) {
    if (!match($0, " " name "=\"[^\"]*\"")) return ""
    return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
}
function skip(suite, test, reason) {
    sub(/^skipped: */, "", reason)
    if (reason == "") reason = "no reason printed"
    skips[reason]++
    if (!((reason, suite) in tests)) suites[reason] = suites[reason] SUBSEP suite
    tests[reason, suite] = tests[reason, suite] " " test
}

FNR == 1 { googletest = FILENAME ~ /\/shards\/[^\/]*$/ }
FNR == 1 && googletest {
    shard = FILENAME
    sub(/.*\//, "", shard); sub(/\.xml$/, "", shard)
    reported[shard] = 1
}
/<testcase / { name = attribute("name"); status = attribute("status"); last = ""; running = "" }

googletest && /<testcase / { suite = attribute("classname"); total++; bad = 0 }
googletest && /<failure / && !bad++ { failed[++failures] = suite "." name }
# The message is FILE:LINE, a line end, and what GTEST_SKIP() was given.
googletest && /<skipped / {
    reason = attribute("message")
    sub(/^[^&]*&#x0A;/, "", reason)
    sub(/&#x0A;.*/, "", reason)
    skip(suite, name, unescape(reason))
}

!googletest {
    line = $0
    sub(/.*<system-out>/, "", line)
    sub(/<\/system-out>.*/, "", line)
    line = unescape(line)
    if (line ~ /^\[ RUN      \] /) running = substr(line, 14)
    if (line !~ /^[ \t]*(<|$)/) last = line
}
!googletest && /<\/testcase>/ && !(name in reported) {
    total++
    # A test that is no GoogleTest's says in its last line why it was skipped.
    if (status == "notrun") skip("ctest", name, last)
    else if (status == "fail") failed[++failures] = name (running == "" ? "" : ": ended in " running)
}

END {
    count = 0
    for (reason in skips) count += skips[reason]
    printf "%d tests: %d passed, %d failed, %d skipped\n", total, total - failures - count, failures, count
    for (reason in skips) {
        printf "%d skipped: %s\n", skips[reason], reason
        n = split(substr(suites[reason], 2), suite_names, SUBSEP)
        for (i = 1; i <= n; i++) printf "    %s:%s\n", suite_names[i], tests[reason, suite_names[i]]
    }
    for (i = 1; i <= failures; i++) printf "FAILED %s\n", failed[i]
}
