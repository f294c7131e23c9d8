"""tools/answers on records made by hand: ratios, shares and rates are those of the records, and a page that is not theirs is found."""
import importlib.machinery
import importlib.util
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
loader = importlib.machinery.SourceFileLoader("answers", str(root / "tools/answers"))
answers = importlib.util.module_from_spec(importlib.util.spec_from_loader("answers", loader))
loader.exec_module(answers)


def expect(text, *parts):
    for part in parts:
        if part not in text:
            sys.exit(f"{part!r} is missing in:\n{text}")


def point(kernel, count, place, us, stalls=None):
    return {"kernel": kernel, "x_bytes": count, "place": place, "time_us": us, "stall_shares": stalls, "counters": None}


kernels = ["product", "silu_divide", "silu_fast_divide", "silu_no_division", "rms_norm", "gemv"]
units = {"context": {"gpu": "NVIDIA H200", "command": "x"}, "machine": {"name": "H200"}, "type": "bf16", "judged_from_us": 5, "mean_error": 0.084,
         "kernels": [{"id": name} for name in kernels], "points": []}
for count, row in ((1 << 20, [4, 8, 5, 4.1, 9, 3]), (1 << 30, [750, 500, 500, 500, 510, 250])):
    units["points"] += [point(name, count, "l2" if count == 1 << 20 else "dram", us) for name, us in zip(kernels, row)]
units["points"][5]["stall_shares"] = {"math_pipe_throttle": 0.25, "mio_throttle": 0.1, "wait": 0.2, "short_scoreboard": 0.05, "long_scoreboard": 0.1, "selected": 0.2}
units["points"][11]["stall_shares"] = {"math_pipe_throttle": 0.01, "long_scoreboard": 0.9, "selected": 0.05}
text = "\n".join(answers.answer_units(units))
expect(text, "| 1 MiB | 4 | 8 | 5 | 4.1 | 9 | 3 | 2.00 |", "| 1 GiB | 750 | 500 | 500 | 500 | 510 | 250 | 0.67 |",
       "2.00 times the product's time at most (x of 1 MiB)", "It is the slower one at every size.", "It is the slower one nowhere.",
       "within 5 %, at every size", "a fast one at every size", "a fast one nowhere", "RMSNorm is the slowest of all at every size; of those that read x and write z alone at every size.",
       "RMSNorm is the slowest of all nowhere; of those that read x and write z alone at every size.", "GEMV 的结构冒险占 1 % 到 35 %，数据冒险占 35 % 到 90 %；笔记中的 40 % 与 30 % 在上述", "| 1 MiB | in L2 | 35 % | 25 % | 10 % | 20 % |", "Within ten points of both: 1 MiB in L2.", "8.4 % in the mean",
       "操作数在 L2 中时，SiLU 的时间是乘积的 2.00 倍")


def rate(series, label, gbps, **more):
    return {"probe": "dram_ceilings", "series": series, "label": label, "gbps": gbps, "gbps_spread": 10, "asked_bytes": 1000, **more}


dram = {"context": {"gpu": "NVIDIA H200", "command": "x"}, "machine": {"name": "H200"}, "values": [{"name": "dram.peak", "value": 4800}], "points": [
    rate("dram.mix", "1:0", 4400, read_share=1), rate("dram.mix", "0:1", 4400, read_share=0), rate("dram.mix", "1:1", 3960, read_share=0.5),
    rate("dram.blocks", "512 B every 512 B", 4300, block_bytes=512, stride_bytes=512),
    rate("dram.blocks", "512 B every 65536 B", 2150, block_bytes=512, stride_bytes=65536),
    rate("dram.blocks", "32 B every 65536 B", 1000, block_bytes=32, stride_bytes=65536, counted_read_bytes=2000, counted_write_bytes=0)]}
text = "\n".join(answers.answer_dram(dram))
expect(text, "4800 GB/s", "| 1:1 | 4400 | 3960 | 10.0 % |", "| 32 B every 65536 B | 1000 ± 10 | 20.8 % | 2.00 |", "are read at 50 % of the rate of reading in order at worst, at a stride of 64 KiB", "有的步长只落在",
       "some channels have more", "best of all is 91.7 % of the peak", "8.3 %", "一读一写 3960 GB/s")
dram["points"][4]["gbps"] = 4200
expect("\n".join(answers.answer_dram(dram)), "addresses are spread over channels", "任何步长都不会", "Blocks of 32 B each in another place reach 23 % of that rate, and 2.00 bytes",
       "blocks from 512 B on")
# 1000 B at 4400 GB/s are 0.000227 us; 50 % of 4800 GB/s for the same bytes 0.000417: 0.000189 us more.
dram["points"][0] |= {"counted_percent_of_peak": 50, "counted_read_bytes": 1000, "counted_write_bytes": 0, "asked_bytes": 1000e6}
dram["points"][0]["counted_read_bytes"] = 1000e6
expect("\n".join(answers.answer_dram(dram)), "says 50.0 % of its peak where the GPU's own clock says 91.7 %", "averages over 189 us more")

# A product of 11.4 us at 2 MiB of x, where SiLU takes twice as long.
rows = [(1 << 20, {"product": 5.7, "silu_divide": 11.4, "silu_no_division": 5.7}), (1 << 22, {"product": 22.8, "silu_divide": 45.6, "silu_no_division": 22.8})]
expect("\n".join(answers.quoted_size(rows)), "at some 2.0 MiB of x. SiLU takes 22.8 us there, not 19.3, and 11.4 without")
assert answers.quoted_size(rows[:1]) == []

counted = {"kernels": [{"id": "product", "cta_bytes": 4096, "threads": 256, "instructions": 50}], "points": [
    {"kernel": "product", "x_bytes": 1 << 20, "place": "dram", "time_us": 4, "model": {"issue_us": 1, "special_us": 0}, "stall_shares": {"long_scoreboard": 0.8, "selected": 0.1},
     "counters": {"instructions": 2048 * 50, "issue_active_percent": 30, "special_percent": 0}}]}
expect("\n".join(answers.answer_counters(counted)), "| product | 1 MiB | from DRAM | 1.00 | 30 and 25 % | 0 and 0 % | long scoreboard 80 % |")
judged = {"judged_from_us": 5, "kernels": [{"id": "product"}], "points": [
    {"kernel": "product", "place": "dram", "time_us": 10, "predicted_us": 9}, {"kernel": "product", "place": "l2", "time_us": 10, "predicted_us": 13},
    {"kernel": "product", "place": "l2", "time_us": 1, "predicted_us": 0.5}]}
expect("\n".join(answers.answer_errors(judged)), "| product | 10.0 % | 20.0 % | 50.0 % |")


def way(id, us, right=True):
    return {"id": id, "name": id, "time_us": us, "right": right, "absent": None, "launches": 1 if us else None}


def operator(name, **times):
    ids = ("manual", "operator", "compiled", "triton", "cuda", "derived")
    return {"operator": name, "shape": "8x8", "gpu": "H200", "file": f"{name}.json", "versions": {"torch": "2", "triton": "3"},
            "prediction": {"possible_us": 5, "predicted_us": 11}, "ways": [way(id, times.get(id)) for id in ids]}


text = "\n".join(answers.answer_ways([operator("gelu", manual=50, operator=12, compiled=15, cuda=20, derived=10), operator("softmax", operator=9, cuda=20, derived=10)]))
expect(text, "`gelu`: ours is ahead, 1.200 of the speed of operator", "one by one take 5.0 times as long", "`softmax`: ours is behind, 0.900", "Behind by more than 2 %: softmax.",
       "gelu +10.0 %", "Not recorded yet: attention, layernorm, matmul, mlp.", "gelu 为其余最快者的 1.20 倍速度")


def step(batch, us, host_us, predicted, bound, host_bound, gelu):
    return {"steps": 1, "layers": 1, "batch": batch, "dim": 8, "step_us": us, "kernel_us": us, "host_us": host_us, "predicted_us": predicted, "predicted_bound": bound,
            "host_bound": host_bound, "tflops": batch, "weights_bytes": 9e5, "kernels": [
                {"role": "gemm", "calls": 1, "mean_us": 10, "predicted_us": 9}, {"role": "elementwise", "calls": 1, "mean_us": 10, "predicted_us": gelu}]}


sweep = {"gpu": "H200", "file": "x.json", "l2_bytes": 1e6, "context": {"command": "rooftile sweep mlp"}, "curves": [{"parameter": "batch", "fixed": {"dim": 8}, "points": [
    step(16, 40, 40, 44, "host", True, 12), step(4096, 100, 20, 95, "device", False, 8)],
    "changes": [{"from": 16, "to": 4096, "growth": 2.5, "work_growth": 256, "jump": True, "reasons": [{"kind": "kernel", "text": "another kernel"}]}]}]}
text = "\n".join(answers.answer_sweeps([sweep]))
expect(text, "16 → 4096: 2.50 times the time for 256.00 times the work: another kernel.", "binds at 1 of 2 points", "10.0 to 20.0 us for a launch", "names what binds at 2 of 2",
       "device binds, the prediction is off by 5.0 % in the mean, signed -5.0 %; where the host binds by 10.0 %", "Products of 5 us and more: the prediction of the kernel is off by 10.0 %",
       "come from DRAM: 10.0 %, signed -10.0 %.", "are more than L2 holds: 10.0 %, signed -10.0 %.",
       "on the 2 kernels from 1.6 us on of the other curves they are 20.0 % off, signed +0.0 %")
