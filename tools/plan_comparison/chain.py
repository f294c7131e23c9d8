"""Requests for chains of two products: the draws' law, few rows, steps of 8, and what is refused."""
from .laws import beside_a_problem, log_uniform


def problem(rng):
    step = rng.choice((8, 64))
    d = step * max(1, round(log_uniform(rng, 64, 8192) / step))
    ff = step * max(1, round(d * rng.uniform(2, 5) / step))
    m = round(log_uniform(rng, 1, 2**18))
    arguments = ["--m", m, "--d", d, "--ff", ff, "--act", rng.choice(("gelu", "silu", "relu", "swiglu"))]
    if rng.random() < 0.5:
        arguments += ["--residual"]
    if rng.random() < 0.2:
        arguments += ["--type", "fp16"]
    return [str(argument) for argument in arguments]


FIXED = {
    "--form": ["two_kernels", "carry_over", "persistent", "on_chip"],
    "--chunk-rows": ["128", "1000"],
    "--tile-m": ["64", "128", "192"],
    "--tile-ff": ["64", "128"],
    "--stages": list("123"),
}
OUTPUT = [["--top", "1"], ["--explain=all"], ["--exhaustive"], ["--set", "l2.size=8MiB"], ["--set", "l2.size=unknown"]]
REFUSED = [["--act", "tanh"], ["--form", "sideways"], ["--tile-m", "65"]]


def request(rng):
    return problem(rng) + beside_a_problem(rng, FIXED, OUTPUT, REFUSED)
