#!/bin/sh
# Short kernels of both types and the ceilings of device memory, once, in some 90 s on a GPU: every result verified, a document each.
# usage: bench/units/run.sh PROGRAM OUT_FOLDER
# Needs PROGRAM, NVRTC and CUPTI alone. The documents go to bench/results/units/ under the GPU's name; tools/answers then writes the pages.
[ $# -eq 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER" >&2; exit 2; }
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
chmod +x "$program"
mkdir -p "$2" && cd "$2" || exit 1  # so that the documents name no folder
status=0
for type in bf16 fp32; do
    timeout 45 "$program" measure units --type $type --json -o "units-$type.json" || { code=$?; status=$code; echo "units, $type: exit code $code"; }
done
timeout 30 "$program" machine probe --only dram_ceilings --data dram-ceilings.json || { code=$?; status=$code; echo "dram_ceilings: exit code $code"; }
exit $status
