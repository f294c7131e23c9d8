#!/bin/sh
# Products of 17 rows and more by packed weights on the Hopper GPU of this machine: are they right, and how fast are they next to bf16?
# usage: bench/gemm/quantised_many.sh PROGRAM OUT_FOLDER [--no-tests] [more arguments of measure gemm: --mode cold, --quant-group 32, ...]
#
# Random problems first (ROOFTILE_FUZZ_SHAPES of them, 80), every element against fp64. Then of three layers M of 17 to 2048: the best plans of both
# kernels by packed weights, with cuBLASLt on the same weights unpacked, and this library's own product in bf16; cold unless --mode says otherwise.
# Writes OUT_FOLDER/tests.txt, MxNxK.json and MxNxK-bf16.json, and prints a line each: predicted and measured us, of bf16, of cuBLASLt.
# Exit code: that of the step that failed.
[ $# -ge 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER [--no-tests] [arguments of measure gemm]" >&2; exit 2; }
case $1 in
    */*) program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
    *) program=$1 ;;
esac
mkdir -p "$2" || exit 1
out=$(cd "$2" && pwd)
shift 2
tests=1
[ "${1-}" = --no-tests ] && { tests=0; shift; }

if [ $tests = 1 ]; then
    "$(dirname "$program")/rooftile_device_tests" --gtest_filter='QuantisedTest.*:WrongOnPurpose.GemmMany*' >"$out/tests.txt" 2>&1
    status=$?
    tail -n 3 "$out/tests.txt"
    [ $status -eq 0 ] || exit $status
fi

for layer in 8192x8192 28672x8192 4096x14336; do
    for m in 17 32 64 65 128 256 2048; do
        shape=${m}x$layer
        for kernel in sm90_few_quantised sm90_many_quantised; do
            [ $kernel = sm90_few_quantised ] && [ $m -gt 64 ] && continue
            "$program" measure gemm "$shape" --types bf16,int4,bf16 --mode cold --top 2 --kernel $kernel "$@" --json -o "$out/$shape-$kernel.json" || exit $?
        done
        "$program" measure gemm "$shape" --mode cold --top 1 --baseline none --json -o "$out/$shape-bf16.json" || exit $?
        python3 - "$out/$shape" <<'END' || exit $?
import glob, json, sys

shape = sys.argv[1]
rows = lambda path: [row for row in json.load(open(path))["rows"] if row["time_us"]]
bf16 = min(row["time_us"] for row in rows(shape + "-bf16.json"))
for path in sorted(glob.glob(shape + "-sm90_*.json")):
    best = min(rows(path), key=lambda row: row["time_us"])
    other = best["baselines"]["cublaslt_best_us"]
    least = min(bf16, other or bf16)
    print(f"{path.rsplit('/', 1)[-1][:-5]:42} {best['label']:30} predicted {best['predicted_time_us']:8.2f} us, measured {best['time_us']:8.2f} us,"
          f" {'right' if not best['verified']['failure'] else best['verified']['failure']}; bf16 {bf16:8.2f} us,"
          f" cuBLASLt {other or float('nan'):8.2f} us; {least / best['time_us']:.2f} times as fast as the better")
END
    done
done
