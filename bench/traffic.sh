#!/bin/sh
# DRAM traffic as hardware counts it beside predicted, simulated and least possible: every problem of
# bench/suites/traffic.toml with its chosen plan, in the chosen order of tiles and in eight others. Nothing is timed.
# usage: bench/traffic.sh PROGRAM OUT_FOLDER [more arguments of measure gemm: --filter TEXT, --max-seconds 120, ...]
#
# Writes OUT_FOLDER/<gpu>-traffic.jsonl, one row a problem and order, and the tables and bars as
# <gpu>-traffic.txt. Exit code: 7 where counters are not permitted, 8 where a bar is missed.
[ $# -ge 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER [arguments of measure gemm]" >&2; exit 2; }
program=$1 out=$2
shift 2
exec sh "$(dirname "$0")/recorded.sh" "$program" "$out" bench/suites/traffic.toml traffic traffic \
    --orders row,column,grouped:4,grouped:8,grouped:16,serpentine:8,morton,hilbert \
    --counters --no-time --baseline none "$@"
