"""What an all-reduce takes between the GPUs of a host: NCCL's, and PyTorch's one-shot over symmetric memory, inside a CUDA graph.

usage: python3 -m torch.distributed.run --nproc-per-node N bench/layer/all_reduce.py [OUT.jsonl]

bf16 sums, checked first; microseconds of one of `repeats` in a row, the median of the slowest GPU's replays. The last lines fit
time = a + bytes / b to NCCL's points by least squares of relative errors: `link.all_reduce_latency` and the rate of machine files.
"""

import json
import statistics
import sys

import torch
import torch.distributed as dist

repeats, replays = 50, 9


def time_of(run, x):
    """us of run(x), the slowest GPU's; the graph is replayed by all together."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run(x)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for _ in range(repeats):
            run(x)
    times = []
    for _ in range(replays):
        dist.barrier()
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        slowest = torch.tensor([begin.elapsed_time(end)], device="cuda")
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        times.append(slowest.item() * 1e3 / repeats)
    return statistics.median(times)


def main():
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    rows = []
    symmetric = None
    try:
        import torch.distributed._symmetric_memory as symmetric
    except ImportError:
        if rank == 0:
            print("no symmetric memory in this PyTorch")
    for size in [1 << n for n in range(13, 28)]:
        n = size // 2
        row = {"gpus": ranks, "bytes": size, "gpu": torch.cuda.get_device_name(rank), "torch": torch.__version__}
        x = torch.full((n,), float(rank + 1), device="cuda", dtype=torch.bfloat16)
        dist.all_reduce(x)
        if not torch.all(x == ranks * (ranks + 1) / 2).item():
            sys.exit(f"NCCL's sum of {size} B is wrong")
        x.zero_()
        row["nccl_us"] = round(time_of(dist.all_reduce, x), 2)
        if symmetric is not None and size <= 1 << 21:
            group = dist.group.WORLD.group_name
            x = symmetric.empty(n, device="cuda", dtype=torch.bfloat16)
            symmetric.rendezvous(x, group)
            x.fill_(float(rank + 1))
            torch.cuda.synchronize()
            dist.barrier()
            y = torch.ops.symm_mem.one_shot_all_reduce(x, "sum", group)
            if not torch.all(y == ranks * (ranks + 1) / 2).item():
                sys.exit(f"the one-shot sum of {size} B is wrong")
            row["one_shot_us"] = round(time_of(lambda t: torch.ops.symm_mem.one_shot_all_reduce(t, "sum", group), x), 2)
        rows.append(row)
        if rank == 0:
            print(f"{size:>10} B  NCCL {row['nccl_us']:8.2f} us" + (f"  one-shot {row['one_shot_us']:8.2f} us" if "one_shot_us" in row else ""))
    if rank == 0:
        # w = 1 / time, so that every size counts alike: minimise sum (w (a + s / b) - 1)^2 over a and 1 / b.
        points = [(r["bytes"], r["nccl_us"]) for r in rows]
        s11 = sum(1 / t**2 for _, t in points)
        s12 = sum(s / t**2 for s, t in points)
        s22 = sum(s * s / t**2 for s, t in points)
        r1, r2 = sum(1 / t for _, t in points), sum(s / t for s, t in points)
        det = s11 * s22 - s12 * s12
        a, per_byte = (r1 * s22 - r2 * s12) / det, (s11 * r2 - s12 * r1) / det
        errors = [abs((a + s * per_byte) / t - 1) for s, t in points]
        print(f"NCCL: {a:.2f} us + bytes / {1e-3 / per_byte:.1f} GB/s, {sum(errors) / len(errors):.1%} off in the mean, {max(errors):.1%} at most")
        if len(sys.argv) > 1:
            with open(sys.argv[1], "w") as out:
                out.writelines(json.dumps(r) + "\n" for r in rows)
    dist.destroy_process_group()


main()
