#!/bin/sh
# The ladder of GEMM kernels on this machine's GPU: the document to OUT_FILE, its table into docs/ladder.md.
# usage: bench/ladder.sh PROGRAM OUT_FILE [SHAPE]
set -eu
[ $# -ge 2 ] && [ $# -le 3 ] || { echo "usage: $0 PROGRAM OUT_FILE [SHAPE]" >&2; exit 2; }
page=$(dirname "$0")/../docs/ladder.md
"$1" measure ladder --shape "${3:-4096x4096x4096}" --json --out "$2"
"$1" report ladder "$2" >"$2.md"
# The table stands between two comments; what was there goes.
awk -v table="$2.md" '
    /<!-- end of the table -->/ { inside = 0 }
    !inside
    /<!-- table: bench\/ladder.sh -->/ {
        inside = 1
        while ((getline line < table) > 0) print line
    }' "$page" >"$page.new"
mv "$page.new" "$page"
rm "$2.md"
