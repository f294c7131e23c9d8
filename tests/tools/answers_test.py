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
    return {"kernel": kernel, "x_bytes": count, "place": place, "time_us": us, "stall_shares": stalls}


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
       "within 5 %, at every size", "a fast one at every size", "a fast one nowhere", "RMSNorm is the slowest of all at every size.",
       "RMSNorm is the slowest of all nowhere.", "| 1 MiB | in L2 | 35 % | 25 % | 10 % | 20 % |", "Within ten points of both: 1 MiB in L2.", "8.4 % in the mean",
       "操作数在 L2 中时，SiLU 的时间是乘积的 2.00 倍")


def rate(series, label, gbps, **more):
    return {"probe": "dram_ceilings", "series": series, "label": label, "gbps": gbps, "gbps_spread": 10, "asked_bytes": 1000, **more}


dram = {"context": {"gpu": "NVIDIA H200", "command": "x"}, "machine": {"name": "H200"}, "values": [{"name": "dram.peak", "value": 4800}], "points": [
    rate("dram.mix", "1:0", 4400, read_share=1), rate("dram.mix", "0:1", 4400, read_share=0), rate("dram.mix", "1:1", 3960, read_share=0.5),
    rate("dram.blocks", "512 B every 512 B", 4300, block_bytes=512, stride_bytes=512),
    rate("dram.blocks", "512 B every 65536 B", 2150, block_bytes=512, stride_bytes=65536),
    rate("dram.blocks", "32 B every 65536 B", 1000, block_bytes=32, stride_bytes=65536, counted_read_bytes=2000, counted_write_bytes=0)]}
text = "\n".join(answers.answer_dram(dram))
expect(text, "4800 GB/s", "| 1:1 | 4400 | 3960 | 10.0 % |", "| 32 B every 65536 B | 1000 ± 10 | 20.8 % | 2.00 |", "take 50 % off reading in order at worst, at a stride of 64 KiB",
       "some channels have more", "best of all is 91.7 % of the peak", "8.3 %", "一读一写 3960 GB/s")
dram["points"][4]["gbps"] = 4200
expect("\n".join(answers.answer_dram(dram)), "addresses are spread over channels")
