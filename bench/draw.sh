#!/bin/sh
# A draw that counts: problems that nobody chose, by the operation's law, beside its baselines, every result verified.
# usage: bench/draw.sh PROGRAM OUT_FOLDER OPERATION [PROBLEMS [SEED]]    100 problems
#
# The seed follows from the commit, so that it is not known before the last change: the first six hexadecimal digits of
# `git rev-parse HEAD` as a number. It is given where there is no git. Writes OUT_FOLDER/<gpu>-OPERATION-draw-SEED.jsonl, one row a
# problem, and its report as .txt. To make it a run that counts, put it into bench/results/current/, its figures into
# bench/results/judged.jsonl (good or bad), and run make results.
[ $# -ge 3 ] || { echo "usage: $0 PROGRAM OUT_FOLDER OPERATION [PROBLEMS [SEED]]" >&2; exit 2; }
. "$(dirname "$0")/on_gpu.sh"
operation=$3 problems=${4:-100} seed=${5:-$((0x$(git rev-parse HEAD | cut -c1-6)))}
name=$gpu-$operation-draw-$seed

# The command in the first line then names no folder of this computer.
ln -sfn "$out" build-draw-out || exit 1
trap 'rm -f build-draw-out' EXIT
"$program" sweep "$operation" --draw "$problems" --seed "$seed" --out "build-draw-out/$name.jsonl" --timings
status=$?
[ -s "$out/$name.jsonl" ] || exit $status
"$program" report sweep "$out/$name.jsonl" >"$out/$name.txt"
cat "$out/$name.txt"
exit $status
