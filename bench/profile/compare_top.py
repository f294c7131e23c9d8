#!/usr/bin/env python3
"""The top ten of a profile beside torch.profiler's of the same program: names, calls and times of a step.

    python3 bench/profile/compare_top.py PROFILE.json TORCH.json
"""

import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        ours = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        torch = json.load(file)
    a = {k["name"]: (k["calls"] / ours["steps"], k["time_us"] / ours["steps"]) for k in ours["kernels"]}
    b = {name: (calls / torch["steps"], us / torch["steps"]) for name, (calls, us) in torch["kernels"].items() if not name.startswith("Mem")}

    def top(kernels):
        return sorted(kernels, key=lambda name: -kernels[name][1])[:10]

    print("same ten" if set(top(a)) == set(top(b)) else f"not the same: {set(top(a)) ^ set(top(b))}")
    for name in top(b):
        mine = a.get(name)
        print(f"  {b[name][1]:10.2f} us, ours {mine[1] if mine else float('nan'):10.2f} us ({(mine[1] / b[name][1] - 1) if mine else float('nan'):+.1%}), "
              f"calls {b[name][0]:g} and {mine[0] if mine else 0:g}: {name[:70]}")
    for device in ours["devices"]:
        sums = device["busy_us"] + device["idle_us"]
        print(f"window {device['window_us']:.0f} us, busy and idle {sums:.0f} us")
    total = sum(k["time_us"] for k in ours["kernels"])
    decoded = sum(k["time_us"] for k in ours["kernels"] if k["decoded"]["family"] != "unknown")
    print(f"{decoded / total:.1%} of kernel time has a decoded name")


if __name__ == "__main__":
    main()
