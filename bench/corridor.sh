#!/bin/sh
# What the corridor promises on a Hopper GPU: right results, first result in time, 8192^3 beside cuBLASLt.
# usage: bench/corridor.sh PROGRAM_FOLDER OUT_FOLDER      (the folder of rooftile and rooftile_device_tests)
# Exit code 0 where every promise holds. Needs python3 to read the documents, compute-sanitizer for memcheck.
[ $# -eq 2 ] || { echo "usage: $0 PROGRAM_FOLDER OUT_FOLDER" >&2; exit 2; }
bin=$1 out=$2
mkdir -p "$out" || exit 1
export ROOFTILE_CACHE_DIR="$out/cache"
status=0
check() { echo "$1: exit $2"; [ "$2" -eq 0 ] || status=1; }

# A log of tests that passed, ran at least one, and skipped none but those named in $2 (an expression).
tests_ran() {
    grep -Eq '\[  PASSED  \] [1-9][0-9]* test' "$1" || { echo "no test passed in $1"; return 1; }
    ! grep -E '\[  SKIPPED \] [A-Za-z]+\.' "$1" | grep -Ev "${2:-^$}"
}

# first_result less what is not ours to shorten: program and driver start-up. FILE LIMIT_S
first_result() {
    python3 -c '
import json, sys
parts = {}
for t in json.load(open(sys.argv[1]))["timings"]:
    parts.setdefault(t["part"], t["seconds"])
whole, limit = parts["first_result"], float(sys.argv[2])
aside = parts["before measuring"] + parts["driver and context"]
print(f"  first result {whole:.3f} s, less start-up {aside:.3f} s: {whole - aside:.3f} s of {limit} s,"
      f" ratio {(whole - aside) / limit:.2f}")
sys.exit(not whole - aside <= limit)' "$1" "$2"
}

# Rank 1 against the best of cuBLASLt: verified and at least LIMIT of its speed. FILE LIMIT
beside_cublaslt() {
    python3 -c '
import json, sys
row, limit = json.load(open(sys.argv[1]))["rows"][0], float(sys.argv[2])
ours, best, right = row["time_us"], row["baselines"]["cublaslt_best_us"], row["verified"]
if ours is None or best is None:
    sys.exit(f"  no ratio: ours {ours} ({row['"'invalid'"']}), cuBLASLt {best} ({row['"'baselines'"']['"'missing'"']})")
print(f"  {ours:.1f} us, cuBLASLt best {best:.1f} us: ratio {best / ours:.3f}, wanted {limit};"
      f" verified {right}")
sys.exit(not (best / ours >= limit and right["exact"] and right["random"]))' "$1" "$2"
}

ROOFTILE_FUZZ_SHAPES=${ROOFTILE_FUZZ_SHAPES:-300} "$bin/rooftile_device_tests" >"$out/device_tests.txt" 2>&1
check "device tests, ${ROOFTILE_FUZZ_SHAPES:-300} fuzzed shapes" $?
tests_ran "$out/device_tests.txt" 'OperandsBeyondTwoToThe31Elements|CublasLt'
check "device tests ran" $?
grep -E "FUZZ_SEED=|shapes, |PASSED|FAILED|SKIPPED" "$out/device_tests.txt" | sort -u

rm -rf "$ROOFTILE_CACHE_DIR"
for run in cold:1.5 warm:0.2; do
    cache=${run%:*}
    "$bin/rooftile" measure gemm --shape 4096x14336x4096 --timings --json -o "$out/first_result_$cache.json"
    check "measure 4096x14336x4096, $cache cache" $?
    first_result "$out/first_result_$cache.json" "${run#*:}"
    check "first result in time, $cache cache" $?
done
"$bin/rooftile" measure gemm --shape 8192x8192x8192 --top 3 --json -o "$out/gemm_8192.json"
check "measure 8192^3" $?
beside_cublaslt "$out/gemm_8192.json" 0.85
check "8192^3 beside cuBLASLt" $?

ROOFTILE_FUZZ_SHAPES=21 compute-sanitizer --tool memcheck --error-exitcode 9 \
    "$bin/rooftile_device_tests" --gtest_filter='*GemmFuzz*Right*' >"$out/memcheck.txt" 2>&1
check "memcheck, 21 configurations" $?
tests_ran "$out/memcheck.txt"
check "memcheck ran tests" $?
grep -E "PASSED|SKIPPED|ERROR SUMMARY" "$out/memcheck.txt"
rm -rf "$ROOFTILE_CACHE_DIR"
exit $status
