"""Requests for attention: prefill of the draws' law, unlike numbers of queries and keys, short rows, padded dims."""
from .laws import beside_a_problem, log_uniform


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def problem(rng):
    heads = round(log_uniform(rng, 1, 128))
    q = round(log_uniform(rng, 1, 32768))
    dim = rng.choice((64, 96, 128, 192, 256)) if rng.random() < 0.7 else 8 * rng.randint(1, 32)
    arguments = ["--heads", heads, "--q", q, "--dim", dim]
    if rng.random() < 0.7:
        arguments += ["--batch", max(1, round(log_uniform(rng, 2**10, 2**17) / q))]
    if rng.random() < 0.5:
        arguments += ["--kv-heads", rng.choice(divisors(heads))]
    if rng.random() < 0.3:
        arguments += ["--kv", round(log_uniform(rng, 1, 131072))]
    if rng.random() < 0.1:
        arguments += ["--dim-v", 8 * rng.randint(1, 32)]
    kind = rng.random()
    if kind < 0.4:
        arguments += ["--mask", "causal"]
    elif kind < 0.6:
        arguments += ["--mask", f"window:{round(log_uniform(rng, 1, q + 1))}"]
    if rng.random() < 0.2:
        arguments += ["--type", "fp16"]
    if rng.random() < 0.2:
        arguments += ["--layout", "bshd"]
    if rng.random() < 0.2:
        arguments += ["--log-sum-exp", "on"]
    return [str(argument) for argument in arguments]


FIXED = {
    "--tile-q": ["64", "128", "192"],
    "--tile-kv": ["64", "80", "128", "176"],
    "--stages": list("1234"),
    "--consumer-warpgroups": list("123"),
    "--schedule": ["pingpong", "cooperative"],
    "--section-heads": ["1", "8", "1000"],
}
OUTPUT = [["--top", "1"], ["--top", "20"], ["--explain=all"], ["--exhaustive"], ["--set", "sm.count=64"], ["--set", "rate.mufu=unknown"]]
REFUSED = [["--mask", "sideways"], ["--dim-v", "7"], ["--tile-kv", "17"], ["--kv-heads", "1000"]]


def request(rng):
    return problem(rng) + beside_a_problem(rng, FIXED, OUTPUT, REFUSED)
