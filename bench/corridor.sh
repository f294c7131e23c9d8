#!/bin/sh
# What the corridor promises on a Hopper GPU: right results, first result in time, 8192^3 beside cuBLASLt.
# usage: bench/corridor.sh PROGRAM_FOLDER OUT_FOLDER      (the folder of rooftile and rooftile_device_tests)
bin=$1 out=$2
export ROOFTILE_CACHE_DIR="$out/cache"
status=0
check() { echo "$1: exit $2"; [ "$2" -eq 0 ] || status=1; }

ROOFTILE_FUZZ_SHAPES=${ROOFTILE_FUZZ_SHAPES:-300} "$bin/rooftile_device_tests" >"$out/device_tests.txt" 2>&1
check "device tests, 300 fuzzed shapes" $?
grep -E "FUZZ_SEED=|shapes, |PASSED|FAILED" "$out/device_tests.txt" | sort -u

rm -rf "$ROOFTILE_CACHE_DIR"
for cache in cold warm; do
    "$bin/rooftile" measure gemm --shape 4096x14336x4096 --timings --json -o "$out/first_result_$cache.json"
    check "first result, $cache cache" $?
done
"$bin/rooftile" measure gemm --shape 8192x8192x8192 --top 3 --json -o "$out/gemm_8192.json"
check "8192^3 beside cuBLASLt" $?

ROOFTILE_FUZZ_SHAPES=21 compute-sanitizer --tool memcheck --error-exitcode 9 \
    "$bin/rooftile_device_tests" --gtest_filter='GemmFuzz*Right' >"$out/memcheck.txt" 2>&1
check "memcheck, 21 configurations" $?
tail -1 "$out/memcheck.txt"
rm -rf "$ROOFTILE_CACHE_DIR"
exit $status
