#!/bin/sh
# The GEMMs of Llama-3-8B beside cuBLASLt, sustained: one line of JSON a plan, four plans a shape.
# usage: bench/survey.sh PROGRAM OUT_FILE
[ $# -eq 2 ] || { echo "usage: $0 PROGRAM OUT_FILE" >&2; exit 2; }
: >"$2"
for m in 128 512 2048 8192; do
    for nk in 6144x4096 4096x4096 28672x4096 4096x14336; do
        "$1" measure gemm --shape "${m}x${nk}" --top 4 --jsonl >>"$2" || echo "${m}x${nk}: exit $?" >&2
    done
done
python3 - "$2" <<'PY'
import json, sys
best = {}
for line in open(sys.argv[1]):
    row = json.loads(line)
    if "time_us" not in row or row["time_us"] is None:
        continue
    p = row["problem"]
    best.setdefault((p["m"], p["n"], p["k"]), []).append(row)
print(f"{'m x n x k':>20} {'rank 1 us':>10} {'predicted':>10} {'cuBLASLt':>9} {'ratio':>6} {'best of ours':>12}  tile of rank 1, of the best")
for shape, rows in best.items():
    first, fastest = rows[0], min(rows, key=lambda r: r["time_us"])
    library = first["baselines"]["cublaslt_best_us"]
    tile = lambda r: "{tile_m}x{tile_n} {schedule} {cluster_m}x{cluster_n} s{stages}".format(**r["config"])
    print(f"{'x'.join(map(str, shape)):>20} {first['time_us']:10.1f} {first['predicted_time_us'] or 0:10.1f} {library:9.1f}"
          f" {library / first['time_us']:6.3f} {library / fastest['time_us']:12.3f}  {tile(first)} | {tile(fastest)}")
PY
