#!/bin/sh
# Times of configurations that nothing was fitted to, beside their predictions: every problem of the suite with its
# chosen plan and seven drawn from all that pass the constraints, up to twice the predicted time.
# usage: bench/configurations.sh PROGRAM OUT_FOLDER [more arguments of measure gemm: --max-seconds 590, --filter TEXT]
#
# Every run draws others: once a run has chosen a constant, the bars want a new one. --seed N draws the same again from
# the same model; the first line of the rows names it.
#
# Writes OUT_FOLDER/<gpu>-configurations.jsonl, one row a configuration, and the table and bars as
# <gpu>-configurations.txt. A run that was cut is gone on with by the same command. Exit code: 8 where a bar is missed.
[ $# -ge 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER [arguments of measure gemm]" >&2; exit 2; }
program=$1 out=$2
shift 2
exec sh "$(dirname "$0")/recorded.sh" "$program" "$out" bench/suites/gemm.toml configurations predictions \
    --sample 8 --baseline none "$@"
