#!/bin/sh
# The one run that counts: the whole suite beside cuBLASLt, sustained, every result verified.
# usage: bench/suite.sh PROGRAM OUT_FOLDER [more arguments of measure gemm: --max-seconds 590, --filter TEXT, ...]
#
# Writes OUT_FOLDER/<gpu>.jsonl, named after the machine file of the GPU, one row a plan, and its report as
# <gpu>.txt. A run that was cut (by --max-seconds, or Ctrl-C) is gone on with by the same command. To make it the
# run that counts, move the one before to bench/results/history/, put this one into bench/results/current/, and run
# make results.
# Exit code: that of the measurement where it is not 0; else 8 where a problem is left or a bar is missed.
[ $# -ge 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER [arguments of measure gemm]" >&2; exit 2; }
. "$(dirname "$0")/on_gpu.sh"
shift 2

# The command in the first line then names no folder of this computer.
ln -sfn "$out" build-suite-out || exit 1
trap 'rm -f build-suite-out' EXIT
"$program" measure gemm --suite bench/suites/gemm.toml --out "build-suite-out/$gpu.jsonl" --timings "$@"
status=$?
[ -s "$out/$gpu.jsonl" ] || exit $status
"$program" report suite "$out/$gpu.jsonl" --suite bench/suites/gemm.toml --require >"$out/$gpu.txt"
bars=$?
cat "$out/$gpu.txt"
[ $status -eq 0 ] || exit $status
exit $bars
