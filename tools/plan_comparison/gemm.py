"""Requests for matrix products, half of them of any size, half of layers of models."""
from .laws import beside_a_problem, log_uniform, stepped

FLOP_RANGE = (5e7, 2e13)


def log_shape(rng):
    m = round(log_uniform(rng, 1, 16384))
    n, k = (stepped(log_uniform(rng, 64, 32768), rng.choice((8, 128))) for _ in range(2))
    return m, n, k


def model_shape(rng):
    m = round(log_uniform(rng, 1, 16384))
    head, parallel = rng.choice((64, 128)), rng.choice((1, 2, 4, 8))
    hidden = stepped(log_uniform(rng, 512, 18432), head * parallel)
    heads = hidden // head
    kv_heads = max(rng.choice((1, max(1, heads // 4), heads)), parallel)
    ffn = stepped(hidden * rng.uniform(2.5, 4.5), 64 * parallel)
    n, k = rng.choice((
        ((hidden // head + 2 * kv_heads) * head // parallel, hidden),
        (hidden, hidden // parallel),
        (2 * ffn // parallel, hidden),
        (hidden, ffn // parallel),
    ))
    return m, n, k


def any_shape(rng):
    law = rng.choice((log_shape, model_shape))
    while True:
        m, n, k = law(rng)
        if FLOP_RANGE[0] <= 2 * m * n * k <= FLOP_RANGE[1]:
            return m, n, k


def any_layout(rng, m, n, k):
    """Both majors, and leading dimensions that are dense or up to 64 longer. A third of it at any size, which is often
    refused, and the rest at multiples of 8 elements."""
    aligned = rng.random() < 0.67
    if aligned:
        m = stepped(m, 8)
    else:
        n, k = n + rng.randint(0, 7), k + rng.randint(0, 7)
    a_major, b_major = rng.choice("km"), rng.choice("kn")
    arguments = ["--a-major", a_major, "--b-major", b_major]
    dense = {"--lda": k if a_major == "k" else m, "--ldb": k if b_major == "k" else n, "--ldc": n}
    for flag, extent in dense.items():
        if rng.random() < 0.4:
            longer = 8 * rng.randint(1, 8) if aligned else rng.randint(1, 64)
            arguments += [flag, str(extent + (longer if rng.random() < 0.97 else -1))]
    return m, n, k, arguments


def problem(rng):
    m, n, k = any_shape(rng)
    layout = []
    if rng.random() < 0.3:
        m, n, k, layout = any_layout(rng, m, n, k)
    sizes = ["--m", m, "--n", n, "--k", k] if rng.random() < 0.7 else ["--shape", f"{m}x{n}x{k}"]
    arguments = [*map(str, sizes), *layout]
    kind = rng.random()
    if kind < 0.3:
        arguments += ["--type", "fp16" if kind < 0.2 else "bf16"]
    return arguments


FIXED = {
    "--tile": ["128x256x64", "128x128x64", "64x128x64", "256x128x64", "192x160x64", "64x64x32", "128x64x128", "17x8x8"],
    "--stages": list("1234568"),
    "--consumer-warpgroups": list("123"),
    "--schedule": ["cooperative", "pingpong"],
    "--swap-ab": ["on", "off"],
    "--cluster": ["1x1", "2x1", "1x2", "2x2", "4x1"],
    "--order": ["row", "column", "grouped", "serpentine", "morton", "hilbert"],
    "--split-k": list("1248"),
    "--ctas-per-sm": list("12"),
    "--overlapped-epilogue": ["on", "off"],
    "--epilogue-tile-n": ["32", "64"],
    "--pdl": ["on", "off"],
    "--evict-first": ["none", "a", "bc"],
}
REFUSED = [["--alpha", "2"], ["--batch", "4"], ["--type", "fp64"], ["--schedule", "other"], ["--m", "0"],
           ["--epilogue", "relu"], ["--set", "sm.size=1"]]
OUTPUT = [["--top", "1"], ["--top", "20"], ["--explain=all"], ["--explain"], ["--energy"], ["--sample", "6"],
          ["--sample", "4", "--seed", "7"], ["--orders", "all"], ["--orders", "grouped:8,hilbert"],
          ["--buildable-only"], ["--set", "sm.count=64"], ["--set", "l2.size=unknown"]]


def request(rng):
    return problem(rng) + beside_a_problem(rng, FIXED, OUTPUT, REFUSED)
