#!/bin/sh
# page_in_browser_test.sh ROOT PROGRAM PYTHON: a page of a plan, a plan for another machine, a run and a simulation, in a browser.
# In `make test-all`, which gets a browser; elsewhere this says that it did nothing.
set -eu
root=$1 program=$2 python=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" plan gemm 4096x14336x4096 --machine h100-sxm --explain=all --map --json -o "$work/h100.json"
"$program" plan gemm 4096x14336x4096 --machine h200-sxm --explain=all --map --json -o "$work/h200.json"
"$program" simulate gemm 2048x2048x1024 --machine h100-sxm --tiles --json -o "$work/tiles.json"
run=$(ls "$root"/bench/results/current/*.jsonl | head -1)
"$program" report page "$work/h100.json" "$work/h200.json" "$run" "$work/tiles.json" -o "$work/page.html"
size=$(wc -c <"$work/page.html")
[ "$size" -le 3145728 ] || { echo "the page has $size bytes, more than 3 MiB"; exit 1; }
if [ "${ROOFTILE_TEST_ALL:-0}" != 1 ]; then
    echo "written, $size bytes; looked at by a browser in make test-all"
    exit 0
fi
browser=$(command -v chromium) || { echo "no chromium; tools/setup --browser installs it"; exit 1; }
"$python" "$root/tests/picture/page_in_browser.py" "$browser" "$work/page.html"
