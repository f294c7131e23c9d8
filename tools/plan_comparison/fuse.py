"""Requests for fused expressions: named ones of the draws' law, others, and random ones."""
from .laws import beside_a_problem, log_uniform, stepped

# Expressions, and what their tensors hold: full, one row, one column, or a single number.
NAMED = [
    ("y = softmax(x)", {"x": "full"}),
    ("y = log_softmax(x * 0.5)", {"x": "full"}),
    ("y = layernorm(x, gamma, beta)", {"x": "full", "gamma": "row", "beta": "row"}),
    ("y = rmsnorm(x, gamma)", {"x": "full", "gamma": "row"}),
    ("h = x + z; y = rmsnorm(h, gamma)", {"x": "full", "z": "full", "gamma": "row"}),
    ("y = sum(x * x)", {"x": "full"}),
    ("y = max(x)", {"x": "full"}),
    ("y = logsumexp(x)", {"x": "full"}),
    ("y = silu(g) * u", {"g": "full", "u": "full"}),
    ("y = gelu(x + b)", {"x": "full", "b": "row"}),
    ("y = gelu(layernorm(x, gamma, beta) + z)", {"x": "full", "gamma": "row", "beta": "row", "z": "full"}),
    ("y = x * s + z", {"x": "full", "s": "column", "z": "full"}),
]
# Several outputs, dropout, statistics, casts, comparisons, reductions of everything, and what is refused.
OTHERS = [
    ("h = x + r; y = layernorm(h, g, b); z = h", {"x": "full", "r": "full", "g": "row", "b": "row"}),
    ("y = gelu(x); z = fp32(x); w = x > 0", {"x": "full"}),
    ("y = softmax(x); l = logsumexp(x)", {"x": "full"}),
    ("m = mean(x); y = (x - m) * rsqrt(mean((x - m) ** 2) + 1e-5)", {"x": "full"}),
    ("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, seed=1))", {"x": "full", "g": "row", "b": "row", "r": "full"}),
    ("y = dropout(softmax(x * 0.125 + m), 0.25, 3, 5)", {"x": "full", "m": "row"}),
    ("y = dropout(x, 0.5) + z", {"x": "full", "z": "full"}),
    ("y = where(x > c, x, minimum(z, 0))", {"x": "full", "z": "full", "c": "column"}),
    ("y = fp32(argmax(x))", {"x": "full"}),
    ("y = argmax(x)", {"x": "full"}),
    ("y = mean_all(x * z)", {"x": "full", "z": "full"}),
    ("y = sum_all(abs(x))", {"x": "full"}),
    ("y = x / max_all(x)", {"x": "full"}),
    ("y = abs(tanh(sigmoid((x + a) * 0.5) - b) * x + 1.0) * 0.25 - a", {"x": "full", "a": "row", "b": "row"}),
    ("y = log(abs(x) + 1) * rsqrt(x ** 2 + 1) + erf(x) / (1 + exp(-z)) + sqrt(abs(z))", {"x": "full", "z": "full"}),
    ("y = bf16(x * s + z) * 2", {"x": "full", "z": "full", "s": "number"}),
    ("y = layernorm(softmax(x) + z)", {"x": "full", "z": "full"}),
    ("y = softmax(log_softmax(x) * z) - mean(x)", {"x": "full", "z": "full"}),
    ("y = x * rsqrt(sum(x * x)) + maximum(z, b)", {"x": "full", "z": "full", "b": "row"}),
    ("y = gelu_tanh(x); z = relu(x); w = silu(x)", {"x": "full"}),
    ("y = x", {"x": "full"}),
    ("y = gelux(x)", {"x": "full"}),
    ("y = layernorm(x, epsilon=1)", {"x": "full"}),
    ("y = x + w", {"x": "full"}),
]
# Three axes, where a tensor's row follows from the loop's row by division and remainder.
BANDED = [
    ("y = gelu(x + b)", {"x": "ijc", "b": "jc"}),
    ("y = x * s + z", {"x": "ijc", "s": "i1c", "z": "ij1"}),
    ("y = softmax(x + m)", {"x": "ijc", "m": "i1c"}),
    ("y = softmax(x * 0.125 + m)", {"x": "ijc", "m": "jc"}),
    ("y = layernorm(x + p, g, b)", {"x": "ijc", "p": "1jc", "g": "c", "b": "c"}),
    ("y = sum(x * w)", {"x": "ijc", "w": "jc"}),
    ("y = dropout(x * s, 0.1); z = max(x)", {"x": "ijc", "s": "j1"}),
]
TYPES = ["bf16", "fp16", "fp32"]
FIXED = {
    "--vector-width": list("1248"),
    "--vectors-per-thread": list("1248"),
    "--threads": ["64", "128", "256", "512", "1024"],
    "--threads-per-row": ["8", "32", "256"],
    "--cluster": list("1248"),
    "--stages": list("234"),
    "--reduction-threads": ["0", "128"],
    "--row-storage": ["registers", "shared", "pipelined", "reload"],
    "--persistent": ["on", "off"],
}
OUTPUT = [["--top", "1"], ["--top", "20"], ["--explain=all"], ["--explain"], ["--set", "sm.count=64"],
          ["--set", "l2.size=unknown"]]
REFUSED = [["--row-storage", "elsewhere"], ["--vector-width", "3"], ["--alignment", "3"], ["--tensor", "unused:bf16[8]"]]


def extents_of(rng):
    widest = 2**28 if rng.random() < 0.1 else 2**20
    columns = round(log_uniform(rng, 2, widest))
    if rng.random() < 0.5:
        columns = stepped(columns, 8)
    return max(1, int(log_uniform(rng, 2**20, 2**28)) // columns), columns


def split_rows(rng, rows):
    """Rows as a product of two: the nearest one at or below."""
    inner = max(1, min(rows, round(log_uniform(rng, 1, rows + 1))))
    return rows // inner, inner


def random_expression(rng):
    """A small random expression that has a value, with a row operation more often than not."""
    used = {}

    def tensor(name=None):
        name = name or rng.choice("xz")
        used[name] = {"x": "full", "z": "full", "b": "row", "c": "column", "s": "number"}[name]
        return name

    def leaf():
        return rng.choice(("0.5", "2.0", "-1.5", "3", "0.1")) if rng.random() < 0.2 else tensor(rng.choice("xzbcs"))

    def value(depth):
        if depth == 0:
            return leaf()
        kind = rng.randrange(9)
        if kind == 0:
            return f"({value(depth - 1)} + {value(depth - 1)})"
        if kind == 1:
            return f"({value(depth - 1)} - {tensor()})"
        if kind == 2:
            return f"{leaf()} * {call(depth - 1)}"
        if kind == 3:
            return f"{call(depth - 1)} / ({tensor()} ** 2 + 1.0)"
        if kind == 4:
            return f"where({tensor()} > {leaf()}, {value(depth - 1)}, {tensor()})"
        if kind == 5:
            return f"dropout({tensor()} * {leaf()}, 0.25, {rng.randrange(100)})"
        if kind == 6:
            return call(depth - 1)
        operation = rng.choice("softmax log_softmax layernorm rmsnorm sum mean max logsumexp".split())
        return f"{operation}({tensor()} * {leaf()})"

    def call(depth):
        return f"{rng.choice('tanh erf sigmoid silu relu gelu gelu_tanh abs'.split())}({tensor()} * {value(depth)})"

    body = value(4)
    if "x" not in used:
        body = f"{tensor('x')} + {body}"
    return f"y = {body}", used


def problem(rng):
    kind = rng.random()
    rows, columns = extents_of(rng)
    if kind < 0.5:
        expression, tensors = rng.choice(NAMED)
    elif kind < 0.72:
        expression, tensors = rng.choice(OTHERS)
    elif kind < 0.82:
        expression, tensors = rng.choice(BANDED)
    else:
        expression, tensors = random_expression(rng)
    extents = {"full": f"{rows},{columns}", "row": f"{columns}", "column": f"{rows},1", "number": ""}
    outer, inner = split_rows(rng, rows)
    element = rng.choice(TYPES)
    other = rng.choice(sorted(tensors)) if rng.random() < 0.2 else None
    arguments = [expression]
    for name, holds in tensors.items():
        letters = {"i": outer, "j": inner, "c": columns, "1": 1}
        shape = extents[holds] if holds in extents else ",".join(str(letters[letter]) for letter in holds)
        arguments += ["--tensor", f"{name}:{rng.choice(TYPES) if name == other else element}[{shape}]"]
    return arguments


def request(rng):
    arguments = problem(rng)
    if rng.random() < 0.1:
        arguments += ["--alignment", rng.choice(("2", "4", "8", "16"))]
    return arguments + beside_a_problem(rng, FIXED, OUTPUT, REFUSED)
