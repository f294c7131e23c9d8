#!/bin/sh
# Fits mma_sync.overlap_exponent to recorded runs of sm80_gemm, and tells its error on runs that it did not see.
# usage: bench/fit_sm80.sh PROGRAM [FIT_FILE CHECK_FILE...]
[ $# -ge 1 ] || { echo "usage: $0 PROGRAM [FIT_FILE CHECK_FILE...]" >&2; exit 2; }
program=$1
shift
folder=$(dirname "$0")/results/history
[ $# -ge 1 ] || set -- "$folder/2026-11-24-h200-sm80-fit.jsonl" "$folder/2026-11-24-h200-sm80-check.jsonl" \
    "$folder/2026-11-24-h200-sm80-suite.jsonl"
error_of() { "$program" report sweep "$1" --set "mma_sync.overlap_exponent=$2" --json | mean_error; }
. "$(dirname "$0")/least_error.sh"
least_error "$1" "1.6 1.8 2.0 2.1 2.2 2.3 2.4 2.6 2.8 3.0 3.5 4.0"
for file in "$@"; do echo "$(basename "$file"): $(error_of "$file" $best) %"; done
