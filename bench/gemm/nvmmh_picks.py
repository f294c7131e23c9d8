#!/usr/bin/env python3
"""What nvMatmulHeuristics picks for the problems of a draw, as `rooftile ledger gemm --picks` reads them.

    pip install nvidia-matmul-heuristics
    rooftile sweep gemm --draw 48 --seed 7 --plan-only --machine h200-sxm --out problems.jsonl
    bench/gemm/nvmmh_picks.py problems.jsonl > picks.jsonl

The library needs no GPU: it is asked for one kernel of its CUTLASS 3 backend for an H200 SXM, bf16 with fp32 sums, row-major A
times transposed row-major B, ranked by its performance model. Of its answer our kernel has the rows and columns of the CTA's
tile, the cluster and the parts of K; the rest is our planner's choice for these. Alternatives follow from the nearest on: fewer
parts of K, then a smaller cluster.
"""
import json
import sys
from importlib.metadata import version

from nvMatmulHeuristics import (NvMatmulHeuristicsFlags, NvMatmulHeuristicsInterfaceEx,
                                NvMatmulHeuristicsMatmulLayout, NvMatmulHeuristicsNvidiaGpu,
                                NvMatmulHeuristicsTarget)


SOURCE = f"nvidia-matmul-heuristics {version('nvidia-matmul-heuristics')}, CUTLASS3, H200_SXM, TST"


def alternatives(kernel):
    """Values that our planner can be asked for, nearest first."""
    m, n = kernel.cta_tile_m, max(16, (kernel.cta_tile_n + 15) // 16 * 16)
    tile = {"tile": f"{m}x{n}x64", "swap_ab": "off"}
    clusters = [(kernel.cluster_m, kernel.cluster_n)]
    while clusters[-1] != (1, 1):
        across, down = clusters[-1]
        clusters.append((across // 2, down) if across >= down else (across, down // 2))
    splits = sorted((s for s in (1, 2, 3, 4, 6, 8) if s <= max(1, kernel.split_k)), reverse=True)
    found = []
    for cluster_m, cluster_n in clusters:
        for split in splits:
            found.append({**tile, "cluster": f"{cluster_m}x{cluster_n}", "split_k": str(split)})
    found.append(tile)
    return found


def main():
    library = NvMatmulHeuristicsInterfaceEx(backend=NvMatmulHeuristicsTarget.CUTLASS3,
                                            flags=NvMatmulHeuristicsFlags.PERF_MODEL_BASED_AUTO_TUNING,
                                            gpu=NvMatmulHeuristicsNvidiaGpu.H200_SXM)
    layout = NvMatmulHeuristicsMatmulLayout.NT_ROW_MAJOR
    for line in open(sys.argv[1], encoding="utf-8"):
        row = json.loads(line)
        if "problem" not in row:
            continue
        problem = row["problem"]
        asked = library.makeNvMatmulHeuristicsProblem(problem["m"], problem["n"], problem["k"], layout)
        picked = library.get(asked, 1, precision="TST")
        if not picked:
            print(f"nothing is picked for {problem['m']}x{problem['n']}x{problem['k']}", file=sys.stderr)
            continue
        kernel = picked[0]["kernel"]
        print(json.dumps({"name": "nvmatmulheuristics", "source": SOURCE,
                          "picked": str(kernel), "problem": problem, "alternatives": alternatives(kernel)}))


if __name__ == "__main__":
    main()
