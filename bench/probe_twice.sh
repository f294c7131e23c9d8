#!/bin/sh
# The GPU of this machine probed twice: does every number agree with itself within the spread that it states?
# usage: bench/probe_twice.sh PROGRAM OUT_FOLDER [more arguments of machine probe: --only tma,launch, ...]
#
# Writes OUT_FOLDER/probe_1.json, probe_2.json, the machine file of each as .toml, and compared.txt.
# Exit code: that of a probe that failed; else 8 where a number of the machine file does not agree.
[ $# -ge 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER [arguments of machine probe]" >&2; exit 2; }
program=$1 out=$2
shift 2
mkdir -p "$out" || exit 1
for run in 1 2; do
    "$program" machine probe --out "$out/probe_$run.toml" --data "$out/probe_$run.json" "$@" >"$out/probe_$run.txt" ||
        exit $?
done
"$program" machine compare "$out/probe_1.json" "$out/probe_2.json" >"$out/compared.txt"
status=$?
cat "$out/compared.txt"
exit $status
