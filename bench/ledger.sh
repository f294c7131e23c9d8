#!/bin/sh
# A ledger that counts: every configuration of the declared spaces of problems that nobody chose, for `rooftile validate`.
# usage: bench/ledger.sh PROGRAM OUT_FOLDER OPERATION [PROBLEMS [SEED]]    48 problems
#
# The seed follows from the commit as that of bench/draw.sh does. Where bench/OPERATION/nvmmh_picks.py and its library are there, what
# that library picks is in the ledger, too. Writes OUT_FOLDER/<gpu>-OPERATION-SEED.jsonl and its validation as .txt. To make it one that
# counts, put it into bench/results/ledger/.
[ $# -ge 3 ] || { echo "usage: $0 PROGRAM OUT_FOLDER OPERATION [PROBLEMS [SEED]]" >&2; exit 2; }
. "$(dirname "$0")/on_gpu.sh"
operation=$3 problems=${4:-48} seed=${5:-$((0x$(git rev-parse HEAD | cut -c1-6)))}
name=$gpu-$operation-$seed

# The command in the first line then names no folder of this computer.
ln -sfn "$out" build-ledger-out || exit 1
trap 'rm -f build-ledger-out' EXIT
picks=
if [ -f "bench/$operation/nvmmh_picks.py" ] && python3 -c 'import nvMatmulHeuristics' 2>/dev/null; then
    "$program" sweep "$operation" --draw "$problems" --seed "$seed" --plan-only --out "$out/$name-problems.jsonl" || exit $?
    python3 "bench/$operation/nvmmh_picks.py" "$out/$name-problems.jsonl" >"$out/$name-picks.jsonl" || exit $?
    picks="--picks build-ledger-out/$name-picks.jsonl"
else
    echo "$0: without nvMatmulHeuristics' picks: no bench/$operation/nvmmh_picks.py, or no library (pip install nvidia-matmul-heuristics)" >&2
fi
# shellcheck disable=SC2086  # two words
"$program" ledger "$operation" --draw "$problems" --seed "$seed" $picks --out "build-ledger-out/$name.jsonl" --timings
status=$?
[ -s "$out/$name.jsonl" ] || exit $status
"$program" validate --ledger "$out/$name.jsonl" >"$out/$name.txt"
cat "$out/$name.txt"
exit $status
