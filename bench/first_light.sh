#!/bin/sh
# First light on a GPU: the kernels are right, and how fast the first plans are.
# usage: bench/first_light.sh PROGRAM_FOLDER OUT_FOLDER
bin=$1 out=$2
ROOFTILE_FUZZ_SHAPES=300 timeout 120 "$bin/rooftile_device_tests" --gtest_filter='GemmFuzz*' 2>&1 | tail -20
run() { timeout 100 "$bin/rooftile" measure gemm "$@" --color never >>"$out/first_light.txt" 2>&1 || echo "[$*] ends with $?" >>"$out/first_light.txt"; }
run --shape 8192x8192x8192 --tile 128x256x64 --cluster 2x1 --timings
run --shape 8192x8192x8192 --top 8
run --shape 4096x14336x4096 --top 8
run --shape 4096x4096x4096 --top 8
cat "$out/first_light.txt"
