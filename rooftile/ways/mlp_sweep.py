"""Runs an MLP of PyTorch at many sizes for `rooftile sweep mlp`: python3 mlp_sweep.py REQUEST.json

Layers of linear with bias, each with gelu after it, forward, in steps that follow each other. A run of steps begins and ends with the
device idle, in an NVTX range "run INDEX" of its point; the device's times come from the recording.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ways import ALLOWED_UNITS, UNITS, Absent, answer, asked, errors_of, one_line, say, torch_for

WARM_SECONDS = 0.05  # of one point, before its timed runs
TIMED_SECONDS = 0.05
LEAST_RUNS, MOST_RUNS = 5, 50
JUDGED_ROWS = 64


class Mlp:
    def __init__(self, torch, point, dtype, device, generator):
        self.linear, self.gelu = torch.nn.functional.linear, torch.nn.functional.gelu
        dim = point["dim"]

        def make(*shape, scale=1.0):
            return (torch.randn(shape, generator=generator, device=device, dtype=torch.float32) * scale).to(dtype)

        self.layers = [(make(dim, dim, scale=1.5 * dim**-0.5), make(dim, scale=0.1)) for _ in range(point["layers"])]
        self.x = make(point["batch"], dim)

    def step(self):
        x = self.x
        for weight, bias in self.layers:
            x = self.gelu(self.linear(x, weight, bias))
        return x

    def exact(self, rows):
        x = self.x[:rows].double()
        for weight, bias in self.layers:
            x = x @ weight.double().t() + bias.double()
            x = 0.5 * x * (-x * 0.5**0.5).erfc()
        return x


def measure_point(torch, index, point, request, generator):
    dtype = {"bf16": torch.bfloat16}[request["type"]]
    mlp = Mlp(torch, point, dtype, request["device"], generator)
    # What one layer rounds, the next ones hand on.
    out = errors_of(mlp.step()[:JUDGED_ROWS], mlp.exact(JUDGED_ROWS), ALLOWED_UNITS * (1 + point["layers"]) ** 0.5 * UNITS[request["type"]])
    if request["device"] != "cuda" or not request["time"] or not out["right"]:
        return out
    walls = []

    def run(name):
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.cuda.nvtx.range_push(name)
        for _ in range(point["steps"]):
            mlp.step()
        torch.cuda.nvtx.range_pop()
        torch.cuda.synchronize()
        return time.perf_counter() - start

    run("warm")
    begin, runs = time.perf_counter(), 0
    while time.perf_counter() - begin < WARM_SECONDS or runs < LEAST_RUNS:
        run("warm")
        runs += 1
    one = (time.perf_counter() - begin) / runs
    for _ in range(max(LEAST_RUNS, min(MOST_RUNS, int(TIMED_SECONDS / one)))):
        walls.append(run(f"run {index}"))
    out["wall_us"] = sorted(walls)[len(walls) // 2] * 1e6
    return out


def main():
    request, result = asked()
    result |= {"l2_bytes": None, "points": []}
    try:
        torch = torch_for(request, result)
        if result["device"] == "cuda":
            result["l2_bytes"] = torch.cuda.get_device_properties(0).L2_cache_size
        if result["device"] == "cuda" or not request["time"]:
            generator = torch.Generator(result["device"]).manual_seed(request["seed"])
            with torch.no_grad():
                for index, point in enumerate(request["points"]):
                    say(f"{index + 1}/{len(request['points'])}: {', '.join(f'{key} {value}' for key, value in point.items())}")
                    try:
                        result["points"].append(measure_point(torch, index, point, request, generator))
                    except (RuntimeError, MemoryError) as error:  # too large for this GPU, say: the others are measured
                        result["points"].append({"absent": one_line(error)})
    except Absent as error:
        result["absent"] = str(error)
    answer(request, result)


if __name__ == "__main__":
    main()
