#!/bin/sh
# sm80_gemm on the Hopper GPU of this machine: is it right, how fast is it beside what mma.sync can do there, and how well is
# its time predicted?
# usage: bench/sm80.sh PROGRAM OUT_FOLDER [--quarter] [--no-tests] [more arguments of measure gemm: --max-seconds 200, ...]
#
# The gemm suite's problems of M >= 2048, each with the first plan of sm80_gemm: some four minutes with the tests.
# --quarter: each layer with one M, the four of them in turn, and the squares: some 40 s without the tests.
# Writes OUT_FOLDER/probe.{txt,json,toml} (mma.sync alone), tests.txt, suite.toml, <gpu>-sm80.jsonl (gone on with where a
# run was cut), predictions.txt by the shipped numbers and predictions-probed.txt by the probed ones.
# Exit code: that of the step that failed; else 8 where a bar is missed: prediction 10 % in the mean, 0.70 of mma.sync's
# sustained rate at 4096^3 and 8192^3.
[ $# -ge 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER [--quarter] [--no-tests] [arguments of measure gemm]" >&2; exit 2; }
. "$(dirname "$0")/on_gpu.sh"
shift 2
quarter=0 tests=1
while :; do
    case ${1-} in
        --quarter) quarter=1 ;;
        --no-tests) tests=0 ;;
        *) break ;;
    esac
    shift
done

"$program" machine probe --only mma_sync --out "$out/probe.toml" --data "$out/probe.json" >"$out/probe.txt" || exit $?
probed() { awk -v name="$1" '$1 == name { print $2; exit }' "$out/probe.txt"; }
sustained=$(probed mma_sync.sustained)
[ -n "$sustained" ] || { echo "$0: the probe found no sustained rate; see $out/probe.txt" >&2; exit 1; }

if [ $tests = 1 ]; then
    ROOFTILE_FUZZ_SHAPES=${ROOFTILE_FUZZ_SHAPES:-300} "$(dirname "$program")/rooftile_device_tests" \
        --gtest_filter='*sm80*:*Sm80*' >"$out/tests.txt" 2>&1
    status=$?
    tail -n 3 "$out/tests.txt"
    [ $status -eq 0 ] || exit $status
fi

# A model a layer, so that each can have an M of its own.
awk -v quarter=$quarter '
    BEGIN { count = split("2048 4096 8192 16384", m); all = "2048, 4096, 8192, 16384" }
    /^(schema|type|a_major|b_major) = / { print }
    /^name = / && !model { print "name = \"gemm-sm80\"" }
    /^\[\[model\]\]/ { model = 1 }
    /^name = / && model { name = $0 }
    /^source = / { source = $0 }
    /^ *\{ name = / {
        sub(/#.*/, ""); sub(/^ */, ""); sub(/, *$/, "")
        printf "[[model]]\n%s\n%s\nm = [%s]\nlayers = [%s]\n", name, source,
               quarter ? m[layer++ % count + 1] : all, $0
    }
    /^squares = / { printf "[[model]]\n%s\n%s\nsquares = [%s]\n", name, source, all }
' bench/suites/gemm.toml >"$out/suite.toml" || exit $?

# The command in the first line then names no folder of this computer.
ln -sfn "$out" build-sm80-out || exit 1
trap 'rm -f build-sm80-out' EXIT
rows=build-sm80-out/$gpu-sm80.jsonl
"$program" measure gemm --suite build-sm80-out/suite.toml --kernel sm80_gemm --top 1 --baseline none --confirm 0 --out "$rows" \
    --timings "$@" || exit $?
. bench/least_error.sh
error=$("$program" report sweep "$rows" --again --json | mean_error)
error_probed=$("$program" report sweep "$rows" --machine "$out/probe.toml" --json | mean_error)

awk -v error="$error" -v sustained="$sustained" -v rate="$(probed mma_sync.rate_bf16)" \
    -v clock="$(probed mma_sync.clock)" -v power="$(probed mma_sync.power)" '
    function number(key,   found) {
        if (!match($0, "\"" key "\":[-+.0-9e]+")) return ""
        found = substr($0, RSTART, RLENGTH)
        sub(/.*:/, "", found)
        return found + 0
    }
    /"rank":1,/ {
        shape = number("m") "x" number("n") "x" number("k")
        if (shape != "4096x4096x4096" && shape != "8192x8192x8192") next
        share = number("tflops") / sustained
        printf "%-16s %6.1f TFLOP/s, %.3f of the probed %.1f; %.0f MHz, %.0f W\n", shape, number("tflops"), share,
               sustained, number("sm_clock_mhz"), number("power_w")
        ++squares
        if (share < 0.70) missed = missed "  " shape " has " share " of mma.sync, the bar is 0.70\n"
    }
    END {
        printf "mma.sync by the probe: %s FLOP/clk/SM, sustained %s TFLOP/s at %s MHz, %s W\n", rate, sustained, clock, power
        if (error == "") missed = missed "  no row has a time\n"
        if (error > 10) missed = missed "  the prediction is off by more than 10 % in the mean\n"
        if (squares < 2) missed = missed "  4096^3 or 8192^3 was not measured\n"
        if (missed) { printf "missed:\n%s", missed; exit 8 }
    }
' "$out/$gpu-sm80.jsonl"
status=$?
printf 'mean absolute error: %s %%, predicted anew by the probed numbers: %s %%\n' "$error" "$error_probed"
exit $status
