#!/bin/sh
# One suite measured, its rows kept, and what they say of the model: the common part of traffic.sh and
# configurations.sh.
# usage: bench/recorded.sh PROGRAM OUT_FOLDER SUITE NAME REPORT [arguments of measure gemm]
#
# Writes OUT_FOLDER/<gpu>-NAME.jsonl and, by `report REPORT`, <gpu>-NAME.txt.
# Exit code: that of the measurement where it is not 0, of the report otherwise.
[ $# -ge 5 ] || { echo "usage: $0 PROGRAM OUT_FOLDER SUITE NAME REPORT [arguments]" >&2; exit 2; }
. "$(dirname "$0")/on_gpu.sh"
suite=$3 name=$4 report=$5
shift 5

# The command in the first line then names no folder of this computer.
ln -sfn "$out" "build-$name-out" || exit 1
trap 'rm -f "build-$name-out"' EXIT
"$program" measure gemm --suite "$suite" --out "build-$name-out/$gpu-$name.jsonl" "$@"
status=$?
[ -s "$out/$gpu-$name.jsonl" ] || exit $status
"$program" report "$report" "$out/$gpu-$name.jsonl" --require >"$out/$gpu-$name.txt"
bars=$?
cat "$out/$gpu-$name.txt"
[ $status -eq 0 ] || exit $status
exit $bars
