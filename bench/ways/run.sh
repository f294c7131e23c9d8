#!/bin/sh
# Six operators in six ways and an MLP at many sizes, once, in some three minutes on a GPU with PyTorch and Triton: every way verified first,
# side by side; then timed one after the other. Writes a document each, and a table last.
# usage: bench/ways/run.sh PROGRAM OUT_FOLDER
# The documents go to bench/results/ways/, the GPU's machine file first in their names; tools/answers then writes docs/ways.md.
# The package is taken from python/ and the folder of PROGRAM: build/python/rooftile/_rooftile.abi3.so and build/librooftile_c.so.0.1.0.
[ $# -eq 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER" >&2; exit 2; }
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$2" && cd "$2" || exit 1  # so that the documents name no folder
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=$(dirname "$program")
cp -r "$root/python/rooftile" "$work/rooftile" || exit 1
rm -f "$work/rooftile/_rooftile.abi3.so"
cp -L "$build/python/rooftile/_rooftile.abi3.so" "$work/rooftile/" || exit 1
cp -L "$build/librooftile_c.so.0.1.0" "$work/librooftile_c.so.0" || exit 1
export PYTHONPATH="$work" LD_LIBRARY_PATH="$work${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PYTHONDONTWRITEBYTECODE=1
export TORCHINDUCTOR_CACHE_DIR="$work/inductor" TRITON_CACHE_DIR="$work/triton"  # what verifying compiles, timing finds
chmod +x "$program"
operators="gelu softmax layernorm matmul mlp attention"
start=$(date +%s)
passed() { echo $(($(date +%s) - start)); }

status=0
for operator in $operators; do
    (
        timeout 100 "$program" measure ways "$operator" --no-time >"$work/$operator.txt" 2>"$work/$operator.log"
        echo $? >"$work/$operator.code"
    ) &
done
wait
for operator in $operators; do
    code=$(cat "$work/$operator.code")
    [ "$code" = 0 ] && continue
    status=3
    echo "$operator: verifying ended with exit code $code"
    tail -5 "$work/$operator.log"
    cat "$work/$operator.txt"
done
echo "verified after $(passed) s"

for operator in $operators; do
    timeout 60 "$program" measure ways "$operator" --json -o "$operator.json" 2>"$work/log" && continue
    status=$?
    tail -5 "$work/log"
done
echo "ways timed after $(passed) s"
timeout 60 "$program" sweep mlp --json -o sweep-mlp.json 2>"$work/log" || { status=$?; tail -5 "$work/log"; }
timeout 60 "$program" sweep mlp --batch 128..4096..128 --json -o sweep-mlp-batch.json 2>"$work/log" || { status=$?; tail -5 "$work/log"; }
echo "all after $(passed) s"
echo
for file in sweep-mlp sweep-mlp-batch; do
    [ -f "$file.json" ] && python3 "$root/bench/ways/table.py" "$file.json"
done
python3 "$root/bench/ways/table.py" $(for operator in $operators; do [ -f "$operator.json" ] && echo "$operator.json"; done)
exit $status
