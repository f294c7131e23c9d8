#!/bin/bash
# What `rooftile profile` says of programs on a GPU: checks first, one table last. From the repository's root, build/ built.
# usage: bench/profile/check.sh [OUT_FOLDER]
out=${1:-${OUT:-/tmp/profile-check}}; mkdir -p "$out"; bad=0
rt=build/rooftile
note() { echo "CHECK $1: $2"; [ "$2" = ok ] || bad=1; }
run() { # NAME FLAGS... -- PROGRAM: the document, its text, and the recordings
    local name=$1; shift; local flags=(); while [ "$1" != -- ]; do flags+=("$1"); shift; done; shift
    timeout 300 $rt profile "${flags[@]}" --recordings "$out/$name.rec" --json -o "$out/$name.json" -- "$@" > "$out/$name.log" 2>&1
    local code=$?
    [ -s "$out/$name.json" ] && $rt report profile "$out/$name.json" --top 15 > "$out/$name.txt" 2>&1
    echo $code
}
# 1 a program of ours
code=$(run ours -- build/02_launch); note "02_launch profiled (code $code)" "$([ "$code" = 0 ] && echo ok || echo bad)"
code=$(run measure -- $rt measure gemm --m 4096 --n 14336 --k 4096); note "measure profiled (code $code)" "$([ "$code" = 0 ] && echo ok || echo bad)"
python3 - "$out" <<'P'
import json, sys
d = json.load(open(sys.argv[1] + "/measure.json"))
ours = [(k, l) for k in d["kernels"] for l in k["launches"] if k["decoded"]["family"] == "rooftile" and k["decoded"]["role"] == "gemm"]
known = [l["predicted_us"] / l["mean_us"] - 1 for _, l in ours if l["predicted_us"]]
print("CHECK our products predicted:", "ok" if known else "bad", [f"{e:+.1%}" for e in known])
P
# 2 counters: 7 and one line where they are not permitted or ncu is not there
code=$(run counters --counters --top 5 -- $rt measure gemm --m 4096 --n 14336 --k 4096); echo "COUNTERS code $code: $(grep -h rooftile: "$out/counters.log" | tail -2 | tr '\n' ' ')"
[ -s "$out/counters.txt" ] && sed -n '/^Counters/,/^$/p' "$out/counters.txt"
# 3 PyTorch: eager with its operators' shapes, as a graph, compiled
if python3 -c 'import torch' 2>/dev/null; then
    for mode in eager graph compiled; do
        flags=(--range step); [ $mode = eager ] && flags+=(--operators)
        code=$(run llama-$mode "${flags[@]}" -- python3 bench/profile/llama_block.py $mode --steps 20 --runs 3); note "llama $mode (code $code)" "$([ "$code" = 0 ] && echo ok || echo bad)"
    done
    # 4 NCCL: its ranges' collectives, on two GPUs
    if [ "$(python3 -c 'import torch; print(torch.cuda.device_count())')" -ge 2 ]; then
        cat > "$out/all_reduce.py" <<'P'
import torch, torch.distributed as dist
dist.init_process_group("nccl"); torch.cuda.set_device(dist.get_rank())
x = torch.ones(1 << 24, device="cuda", dtype=torch.bfloat16)
for _ in range(20):
    with torch.cuda.nvtx.range("step"):
        dist.all_reduce(x)
torch.cuda.synchronize(); dist.destroy_process_group()
P
        code=$(run nccl --range step -- python3 -m torch.distributed.run --nproc-per-node 2 "$out/all_reduce.py"); note "nccl (code $code)" "$([ "$code" = 0 ] && echo ok || echo bad)"
        [ -s "$out/nccl.txt" ] && grep -A3 '^Ranges' "$out/nccl.txt"
    fi
fi
echo; echo "program          kernels  decoded  predicted  error (mean, of 5 us and more)"
python3 - "$out" <<'P'
import glob, json, os, sys
for path in sorted(glob.glob(sys.argv[1] + "/*.json")):
    d = json.load(open(path)); whole = d["kernel_time_us"] or 1
    pairs = [(k, l) for k in d["kernels"] for l in k["launches"]]
    decoded = sum(l["time_us"] for k, l in pairs if k["decoded"]["family"] != "unknown") / whole
    known = [(l["time_us"], l["predicted_us"] / l["mean_us"] - 1, l["mean_us"]) for _, l in pairs if l["predicted_us"]]
    long = [abs(e) for _, e, us in known if us >= 5]
    print(f"{os.path.basename(path)[:-5]:16} {len(d['kernels']):7} {decoded:8.1%} {sum(t for t, _, _ in known) / whole:9.1%}  {sum(long) / len(long) if long else 0:.1%} of {len(long)}")
P
exit $bad
