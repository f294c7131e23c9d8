#!/bin/sh
# Every family of kernels under each tool of compute-sanitizer, and what the tool says of it: its own SUMMARY line.
# usage: bench/sanitize.sh PROGRAM OUT_FOLDER [JOBS [LIMIT]]    runs side by side (a core each), seconds a run (100)
# `rooftile measure --no-time` launches a kernel among those that fill, watch and judge, so a tool sees these too. The
# places that findings name stand below the table, all that was said in OUT_FOLDER/FAMILY.TOOL.txt.
# Exit code 0 where every tool came to an end, found nothing, and the program's own verdict was good.

# The family, then the words behind `rooftile`. Small: a tool makes some kernels a hundred times as slow.
families() {
    cat <<'END'
sm90-cooperative measure gemm --shape 256x384x512 --tile 128x128x64 --consumer-warpgroups 2 --schedule cooperative --split-k 1 --cluster 1x1
sm90-overlapped measure gemm --shape 1792x1792x128 --tile 128x128x64 --consumer-warpgroups 2 --schedule cooperative --split-k 1 --cluster 1x1 --overlapped-epilogue on
sm90-by-element measure gemm --shape 250x190x264 --tile 128x128x64 --schedule cooperative --split-k 1 --cluster 1x1
sm90-pingpong measure gemm --shape 1280x1280x128 --tile 64x128x64 --schedule pingpong --split-k 1 --cluster 1x1
sm90-split-k measure gemm --shape 128x256x1024 --tile 64x128x64 --split-k 4 --cluster 1x1
sm90-pieces measure gemm --shape 128x256x1024 --tile 64x128x64 --split-k 2 --grid-split-k 3 --cluster 1x1
sm90-multicast measure gemm --shape 512x384x512 --tile 128x128x64 --schedule cooperative --split-k 1 --cluster 2x1
sm80 measure gemm --kernel sm80_gemm --shape 256x256x512 --tile 128x128x32
sm80-persistent measure gemm --kernel sm80_gemm --shape 1792x1792x64 --tile 128x128x32 --ctas-per-sm 1
sm80-few measure gemm --kernel sm80_few_gemm --shape 9x250x1021 --tile 16x128x64 --grid-split-k 1
sm80-few-pieces measure gemm --kernel sm80_few_gemm --shape 9x250x1021 --tile 16x128x64 --grid-split-k 3
sm90-quantised measure gemm --types bf16,uint4,bf16 --quant-zero int --quant-group 32 --shape 9x250x1032 --tile 16x64x256
sm90-many-quantised measure gemm --types bf16,uint4,bf16 --quant-zero float --quant-group 32 --shape 150x250x1032 --kernel sm90_many_quantised --tile 64x128x128
sm90-quantised-floats measure gemm --types bf16,fp8_e4m3,bf16 --shape 9x250x1032 --tile 16x64x256
sm90-many-quantised-table measure gemm --types bf16,mxfp4,bf16 --shape 150x250x1032 --kernel sm90_many_quantised --tile 64x128x128
point-wise measure fuse "y = gelu(x + b)" --tensor x:bf16[64,512] --tensor b:bf16[512]
dropout measure fuse "y = dropout(x, 0.25, 7)" --tensor x:bf16[64,512]
columns measure fuse "s = column_sum(x)" --tensor x:bf16[300,520]
columns-shifted measure fuse "s = column_sum(x)" --tensor x:bf16[300,4099]
columns-folded measure fuse "s = column_sum(x); m = column_max(x)" --tensor x:bf16[3001,33]
everything measure fuse "s = sum_all(x)" --tensor x:bf16[64,1024]
rows-in-registers measure fuse "y = layernorm(x, g, b)" --tensor x:bf16[64,8192] --tensor g:bf16[8192] --tensor b:bf16[8192] --row-storage registers --threads 256
rows-in-shared measure fuse "y = softmax(x)" --tensor x:bf16[32,8192] --row-storage shared
rows-of-clusters measure fuse "y = x - mean(x)" --tensor x:bf16[16,32768] --row-storage shared --cluster 4
rings measure fuse "y = x - mean(x)" --tensor x:bf16[140,32768] --row-storage pipelined --exhaustive
rings-of-clusters measure fuse "y = softmax(x)" --tensor x:bf16[16,131072] --row-storage pipelined --cluster 8
grid-resident measure fuse "y = x - mean(x)" --tensor x:bf16[4,262144] --row-storage reload --cluster 32
probe-cluster machine probe --only cluster --max-seconds 80
probe-mma-sync machine probe --only mma_sync --max-seconds 80
END
}
tools="memcheck racecheck synccheck initcheck"
set -f  # [64,512] is no pattern

# --run PROGRAM OUT LIMIT FAMILY TOOL: one of them; tool `none` is the program by itself, which fills the cache.
if [ "$1" = --run ]; then
    program=$2 out=$3 limit=$4 family=$5 tool=$6
    eval "set -- $(families | sed -n "s/^$family //p")"
    [ "$1" = measure ] && set -- "$@" --no-time --baseline none --top 1 --seed 1
    [ "$tool" = none ] || set -- compute-sanitizer --tool "$tool" "$program" "$@"
    [ "$tool" = none ] && set -- "$program" "$@"
    timeout "$limit" "$@" >"$out/$family.$tool.txt" 2>&1
    echo "exit $?" >>"$out/$family.$tool.txt"
    exit 0
fi

[ $# -ge 2 ] || { echo "usage: $0 PROGRAM OUT_FOLDER [JOBS [LIMIT]]" >&2; exit 2; }
program=$1 out=$2 jobs=${3:-$(nproc)} limit=${4:-100}
command -v compute-sanitizer >/dev/null || { echo "$0: compute-sanitizer is not in PATH" >&2; exit 1; }
mkdir -p "$out" || exit 1
export ROOFTILE_CACHE_DIR="$out/cache"
names=$(families | cut -d' ' -f1)
run() { xargs -P "$jobs" -L 1 sh "$0" --run "$program" "$out" "$limit"; }
for name in $names; do echo "$name none"; done | run
for tool in $tools; do
    for name in $names; do echo "$name $tool"; done
done | run

# "0 errors", "3 hazards displayed (1 errors, 2 warnings)"; else how the run ended. `*`: the program was not content.
status=0
verdict() {
    log=$out/$1.$2.txt
    said=$(sed -n 's/^=* *[A-Z]* SUMMARY: //p' "$log" | tail -1)
    code=$(sed -n 's/^exit //p' "$log" | tail -1)
    [ -n "$said" ] || said="no verdict, exit $code"
    [ "$code" = 0 ] || said="$said *"
    case $said in
        "0 errors" | "0 hazards displayed (0 errors, 0 warnings)") ;;
        *) status=1 ;;
    esac
}
printf '%-18s' kernel
for tool in $tools; do printf '  %-44s' "$tool"; done
echo
for name in $names; do
    printf '%-18s' "$name"
    for tool in $tools; do
        verdict "$name" "$tool"
        printf '  %-44s' "$said"
    done
    echo
done
echo "* the program itself did not end with exit code 0"
echo "findings by place:"
for name in $names; do
    for tool in $tools; do
        # "Error: Race reported between Write access at void FUNCTION<...>(...)+0x1ae0", "at FUNCTION(...)+0x70 in FILE"
        sed -n 's/^=========.* at \(.*+0x[0-9a-f]*\).*/\1/p' "$out/$name.$tool.txt" |
            sed 's/^void //; s/<.*>//; s/(.*)//' | sort | uniq -c |
            while read -r count what; do echo "  $name, $tool: $count at $what"; done
    done
done
rm -rf "$ROOFTILE_CACHE_DIR"
exit $status
