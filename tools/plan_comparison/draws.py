"""Draws requests by seed, as arguments of the program. Request i of a seed is the same however many are drawn.

The laws are those of the draws of `rooftile sweep`; unaligned sizes, fixed parameters, requests that are refused and
other output flags are mixed in, so that messages and optional parts of the document are compared too.
"""
from . import attention, chain, conv, fuse, gemm
from .laws import fixed, generator

MACHINES = ("v100-sxm2 a100-40-sxm a100-80-sxm a40 rtx4090 l40s h100-sxm h100-pcie h800-sxm h200-sxm h20 b200").split()
MACHINES_WITH_KERNELS = ("h100-sxm", "h200-sxm")
OPERATIONS = {"gemm": gemm, "fuse": fuse, "attention": attention, "chain": chain, "conv": conv}
BUILDS = {"gemm": 1, "fuse": 0.2, "attention": 0.2, "chain": 0.1, "conv": 0.1}  # kernels of each for one that --sass asks for


def plan_request(seed, operation, index):
    return [operation, *OPERATIONS[operation].request(generator(seed, operation, index))]


def machines_of(seed, operation, index, machines, wanted):
    if not wanted or wanted >= len(machines):
        return machines
    return generator(seed, operation + "-machines", index).sample(machines, wanted)


def build_request(seed, operation, index):
    """What `build` takes, for a GPU with kernels: rank 1 mostly, sometimes another one of the best eight."""
    rng = generator(seed, operation + "-build", index)
    arguments = [operation, *OPERATIONS[operation].problem(rng)]
    if rng.random() < 0.3:
        arguments += fixed(rng, OPERATIONS[operation].FIXED)
    if rng.random() < 0.4:
        arguments += ["--rank", str(rng.randint(2, 8))]
    return arguments + ["--machine", rng.choice(MACHINES_WITH_KERNELS), "--json"]
