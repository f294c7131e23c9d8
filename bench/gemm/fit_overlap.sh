#!/bin/sh
# Fits wgmma.overlap_exponent to the products of a recorded draw, and tells its error on others that it did not see.
# usage: bench/gemm/fit_overlap.sh PROGRAM FIT_FILE CHECK_FILE...
[ $# -ge 3 ] || { echo "usage: $0 PROGRAM FIT_FILE CHECK_FILE..." >&2; exit 2; }
program=$1 fit=$2
shift
error_of() { "$program" report sweep "$1" --set "wgmma.overlap_exponent=$2" --json | mean_error; }
. "$(dirname "$0")/../least_error.sh"
least_error "$fit" "2 2.5 3 3.25 3.5 4 4.5 5 6 8 10 1000"
for file in "$@"; do echo "$(basename "$file"): $(error_of "$file" $best) %, $(error_of "$file" 1000) % without"; done
