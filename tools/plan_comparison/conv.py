"""Requests for convolutions: the draws' law, odd sizes, strides beyond the filter, padding beyond the image, and what is refused."""
from .laws import beside_a_problem, log_uniform


def problem(rng):
    axes = rng.choice((1, 2, 2, 2, 2, 3))
    channels = rng.choice((8, 16, 24, 32, 64, 96, 128, 256, 320, 512, 1280))
    filters = rng.choice((1, 8, 24, 32, 64, 96, 128, 255, 320, 512, 1280))
    arguments = ["--batch", round(log_uniform(rng, 1, 64)), "--channels", channels, "--filters", filters]
    for flag in ("--width", "--height", "--depth")[:axes]:
        arguments += [flag, rng.randint(1, 17) if flag == "--depth" else round(log_uniform(rng, 1, 256))]
    taps = rng.choice((1, 3, 5, 7))
    dilation = rng.choice((1, 1, 1, 1, 2, 6)) if axes < 3 else 1
    arguments += ["--kernel-size", taps, "--dilation", dilation, "--stride", rng.choice((1, 1, 2, 3))]
    arguments += ["--padding", (taps - 1) * dilation // 2 + rng.choice((0, 0, 0, 1, 4)) if axes < 3 else taps - 1]
    if rng.random() < 0.3:
        arguments += ["--epilogue", "y = relu(acc + bias)", "--tensor", "bias:bf16[N]"]
    elif rng.random() < 0.2:
        arguments += ["--type", "fp16"]
    return [str(argument) for argument in arguments]


FIXED = {
    "--tile": ["64x64x64", "128x128x64", "192x64x64", "256x128x64"],
    "--stages": list("345"),
    "--split-k": ["1", "2", "4"],
    "--swap-ab": ["on", "off"],
}
OUTPUT = [["--top", "1"], ["--explain=all"], ["--exhaustive"], ["--set", "l2.size=8MiB"]]
REFUSED = [["--layout", "nchw"], ["--groups", "2"], ["--tile", "65x64x64"]]


def request(rng):
    return problem(rng) + beside_a_problem(rng, FIXED, OUTPUT, REFUSED)
