"""What all draws share."""
import math
import random


def generator(seed, what, index):
    return random.Random(f"{seed}/{what}/{index}")


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def stepped(value, step):
    return max(step, round(value / step) * step)


def fixed(rng, choices):
    """One to three parameters that are given and not searched."""
    arguments = []
    for flag in rng.sample(sorted(choices), rng.choice((1, 1, 2, 3))):
        arguments += [flag, rng.choice(choices[flag])]
        if arguments[-1] in ("grouped", "serpentine") and rng.random() < 0.5:
            arguments += ["--group", rng.choice(("2", "8"))]
    return arguments


def document_form(rng):
    return [rng.choice(("--jsonl", "--csv", "--color=never"))] if rng.random() < 0.03 else ["--json"]


def beside_a_problem(rng, choices, output, refused):
    """What some requests fix and ask for, what few are refused for, and the form of the answer."""
    arguments = fixed(rng, choices) if rng.random() < 0.2 else []
    if rng.random() < 0.15:
        arguments += rng.choice(output)
    if rng.random() < 0.02:
        arguments += rng.choice(refused)
    return arguments + document_form(rng)
