#!/bin/sh
# Every type of packed weights on the Hopper GPU of this machine: are products right, and how fast are they next to cuBLASLt on the same weights unpacked?
# usage: bench/gemm/quantised_types.sh PROGRAM OUT_FOLDER [more arguments of measure gemm: --mode sustained, --top 4, ...]
#
# 8192 columns, K of 8192, M of 1, 16, 64 and 2048, bf16 activations (ACTIVATIONS=fp16 takes others); cold unless --mode says otherwise. TYPES="nf4 mxfp4"
# takes some. Writes OUT_FOLDER/TYPE-M.json and prints a line each: predicted and measured us, and of cuBLASLt.
# Exit code: that of the step that failed.
[ $# -ge 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER [arguments of measure gemm]" >&2; exit 2; }
program=$1
out=$2
mkdir -p "$out" || exit 1
shift 2
a=${ACTIVATIONS:-bf16}

for type in ${TYPES:-int4 int8 fp8_e4m3 fp8_e5m2 mxfp4 nf4}; do
    for m in 1 16 64 2048; do
        file=$out/$type-$m.json
        "$program" measure gemm "${m}x8192x8192" --types "$a,$type,$a" --mode cold --top 2 --baseline cublaslt "$@" --json -o "$file" || exit $?
        python3 - "$file" <<'END' || exit $?
import json, sys

rows = [row for row in json.load(open(sys.argv[1]))["rows"] if row["time_us"]]
best = min(rows, key=lambda row: row["time_us"])
other = best["baselines"].get("cublaslt_best_us") or float("nan")
print(f"{sys.argv[1].rsplit('/', 1)[-1][:-5]:16} {best['label']:30} predicted {best['predicted_time_us']:8.2f} us, measured {best['time_us']:8.2f} us,"
      f" {'right' if not best['verified']['failure'] else best['verified']['failure']}; cuBLASLt {other:8.2f} us, {other / best['time_us']:.2f} times as long")
END
    done
done
