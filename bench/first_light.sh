#!/bin/sh
# First light on a GPU: the program starts, its kernels are right, and how fast the first configurations are.
# usage: bench/first_light.sh PROGRAM_FOLDER OUT_FOLDER
bin=$1 out=$2
"$bin/02_launch" || echo "02_launch ends with $?"
run() { timeout 100 "$bin/rooftile" measure gemm "$@" --color never >>"$out/first_light.txt" 2>&1 || echo "[$*] ends with $?" >>"$out/first_light.txt"; }
run --shape 1000x1000x1000 --timings --mode cold
run --shape 8192x8192x8192 --tile 128x256x64 --cluster 1x1 --timings
run --shape 8192x8192x8192 --tile 128x256x64 --cluster 2x1 --baseline none
run --shape 8192x8192x8192 --tile 128x192x64 --schedule pingpong --cluster 2x1 --baseline none
run --shape 8192x8192x8192 --tile 256x128x64 --cluster 2x1 --baseline none
run --shape 4096x14336x4096
cat "$out/first_light.txt"
