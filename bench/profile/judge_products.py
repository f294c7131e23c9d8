#!/usr/bin/env python3
"""How well the profiler knows the library's products: names against launches, predictions against measured times.

    python3 bench/profile/judge_products.py PROFILE.json [--least-us 5] [--worst 10]
"""

import argparse
import json


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("profile")
    parser.add_argument("--least-us", type=float, default=5)
    parser.add_argument("--worst", type=int, default=10)
    given = parser.parse_args()
    with open(given.profile, encoding="utf-8") as file:
        document = json.load(file)
    products = [(kernel, launch) for kernel in document["kernels"] for launch in kernel["launches"] if kernel["decoded"].get("role") == "gemm"]
    agree = [not launch["disagreements"] for _, launch in products]
    print(f"{len(products)} products of {len({kernel['name'] for kernel, _ in products})} kernels; "
          f"{sum(agree)} agree with their launch ({sum(agree) / len(agree):.1%})")
    sized = [1 for _, launch in products if launch["sizes"]]
    print(f"sizes known of {len(sized)} ({len(sized) / len(products):.1%})")
    long = [(kernel, launch) for kernel, launch in products if launch["mean_us"] >= given.least_us]
    known = [(launch["predicted_us"] / launch["mean_us"] - 1, kernel, launch) for kernel, launch in long if launch["predicted_us"]]
    print(f"{len(long)} take {given.least_us:g} us or more, {len(known)} are predicted ({len(known) / max(1, len(long)):.1%})")
    if known:
        errors = sorted(abs(error) for error, _, _ in known)
        signed = sum(error for error, _, _ in known) / len(known)
        print(f"predictions are {sum(errors) / len(errors):.1%} off in the mean (signed {signed:+.1%}), "
              f"95th percentile {errors[int(0.95 * (len(errors) - 1))]:.1%}")
    for band, inside in (("rows < 128", lambda s: s["m"] < 128), ("128 to 2047", lambda s: 128 <= s["m"] < 2048), ("2048 and more", lambda s: s["m"] >= 2048)):
        some = [error for error, _, launch in known if inside(launch["sizes"])]
        if some:
            print(f"  {band}: {len(some)}, {sum(map(abs, some)) / len(some):.1%}, signed {sum(some) / len(some):+.1%}")
    for error, kernel, launch in sorted(known, key=lambda each: -abs(each[0]))[: given.worst]:
        print(f"  {error:+.1%} {launch['problem']} {launch['mean_us']:.2f} us {kernel['name'][:100]}")
    without = {}
    for kernel, launch in long:
        if not launch["predicted_us"]:
            without.setdefault(launch["why_not"], []).append(kernel["name"][:60])
    for why, names in without.items():
        print(f"  not predicted, {len(names)}: {why}: {names[0]}")
    for kernel, launch in products:
        for sentence in launch["disagreements"]:
            print(f"  disagrees: {kernel['name'][:80]}: {sentence}")


if __name__ == "__main__":
    main()
