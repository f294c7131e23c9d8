"""Runs one operator in several ways for `rooftile measure ways`: python3 ways.py REQUEST.json

The operator's own file, beside this one, has the operands, the result in fp64 and each way as a function. Every way is checked against
fp64 first. Then all are called in turn, each call in an NVTX range "way NAME": the device's times come from the recording of the run.
What a way lacks (PyTorch, Triton, the package) is written down in words. Results go to the file that the request names.
"""

import importlib
import json
import os
import sys
import time

WAYS = ("manual", "operator", "compiled", "triton", "cuda", "derived")
ROUNDS = 3
WARM_SECONDS = 0.1  # before each timed part: power is held over some 80 ms, so the clock is this way's own after that
TIMED_SECONDS = 0.04
LEAST_CALLS, MOST_CALLS, MOST_WARM_CALLS = 3, 200, 5000
L2_FACTOR = 3  # the sets of operands together take that many times L2
MOST_SETS = 64
UNITS = {"bf16": 2.0**-8}  # of rounding
ALLOWED_UNITS = 8  # of error, as a share
# Where each operator's result is rounded: a score of 40 is off by 0.1 before it is scaled, and its exponential by a hundredth.
MANUAL_UNITS = 32
HERE = os.path.dirname(os.path.abspath(__file__))


class Absent(Exception):
    """Why a way cannot run here, in words."""


def one_line(error):
    text = f"{type(error).__name__}: {error}" if not isinstance(error, Absent) else str(error)
    return " ".join(text.split())[:300]


def say(text):
    print(f"ways: {text}", file=sys.stderr, flush=True)


def imported(name, request):
    """The package, where it is installed or where this program's own build has it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if not name.startswith("rooftile") or not os.path.isdir(request["package"]):
            raise Absent(f"{name} is not importable: {error}") from None
    sys.path.append(request["package"])
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(f"{name} is not importable: {error}") from None


def asked():
    """The request, and the result with what this Python is; PyTorch fills in the rest."""
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    return request, {"python": sys.version.split()[0], "torch": None, "gpu": None, "device": None}


def torch_for(request, result):
    """PyTorch, and where it computes, in the request and in the result."""
    torch = imported("torch", request)
    result["torch"] = torch.__version__
    result["device"] = request["device"] = "cuda" if torch.cuda.is_available() else "cpu"
    if result["device"] == "cuda":
        result["gpu"] = torch.cuda.get_device_name(0)
    return torch


def answer(request, result):
    with open(request["result"], "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


def way_functions(operator, torch, request):
    """A function of the operands for each way, or why there is none."""

    def manual():
        if isinstance(operator.manual, str):
            raise Absent(operator.manual)
        return operator.manual

    def compiled():
        torch._dynamo.reset()
        return torch.compile(operator.framework if isinstance(operator.manual, str) else operator.manual, dynamic=False)

    def triton():
        imported("triton", request)
        if request["device"] != "cuda" and not os.environ.get("TRITON_INTERPRET"):
            raise Absent("Triton needs a GPU")
        return importlib.import_module(f"{request['module']}_triton").call

    def cuda():
        load = imported("rooftile", request).load
        if request["device"] != "cuda":
            raise Absent("CUDA needs a GPU")
        return operator.cuda(lambda file, functions=(): load(os.path.join(HERE, file), functions))

    def derived():
        if request["device"] != "cuda":
            raise Absent("Rooftile's kernels need a GPU")
        return operator.derived(imported("rooftile.torch", request))

    makers = dict(zip(WAYS, (manual, lambda: operator.framework, compiled, triton, cuda, derived), strict=True))
    functions, absent = {}, {}
    for way in WAYS:
        try:
            functions[way] = makers[way]()
        except Exception as error:  # any of them may lack what it needs; the others run
            absent[way] = one_line(error)
    return functions, absent


def checked(torch, function, operands, exact, allowed):
    """Errors of one call against fp64. What a kernel does not write shows as NaN, since its result's memory held NaN before."""
    poison = torch.full(exact.shape, float("nan"), dtype=operands[0].dtype, device=operands[0].device)
    del poison
    got = function(*operands)
    if got.shape != exact.shape:
        raise RuntimeError(f"the result is {list(got.shape)} and not {list(exact.shape)}")
    return errors_of(got, exact, allowed)


def errors_of(got, exact, allowed):
    difference = (got.double() - exact).abs()
    # A share of the value, or where that is small, of what values of the result usually are.
    share = (difference / (exact.abs() + exact.square().mean().sqrt())).max().item()
    right = share <= allowed  # false of NaN
    finite = share == share and share != float("inf")
    return {"error": share if finite else None, "largest_difference": difference.max().item() if finite else None, "right": right}


def call_seconds(torch, function, sets):
    start = time.perf_counter()
    calls = 0
    while calls < LEAST_CALLS or (calls < MOST_CALLS and time.perf_counter() - start < WARM_SECONDS):
        function(*sets[calls % len(sets)])
        torch.cuda.synchronize()
        calls += 1
    return (time.perf_counter() - start) / calls


def time_all(torch, functions, sets, kept):
    """Each way in turn, round by round; the calls of a way follow each other without a wait, as a program's do."""
    seconds = {way: call_seconds(torch, function, sets) for way, function in functions.items()}
    at = {way: 0 for way in functions}
    order = list(functions)
    for round in range(ROUNDS):
        for way in order[round:] + order[:round]:
            function = functions[way]
            results = kept.setdefault(way, [None] * len(sets))

            def run(name, length, most, function=function, results=results, way=way):
                for _ in range(max(LEAST_CALLS, min(most, round_up(length / seconds[way])))):
                    place = at[way] % len(sets)
                    at[way] += 1
                    torch.cuda.nvtx.range_push(name)
                    results[place] = function(*sets[place])  # kept, so that results rotate too
                    torch.cuda.nvtx.range_pop()
                torch.cuda.synchronize()

            run("warm", WARM_SECONDS, MOST_WARM_CALLS)
            run(f"way {way}", TIMED_SECONDS, MOST_CALLS)


def round_up(value):
    return int(value) + 1


def measure(torch, operator, request):
    device = request["device"]
    allowed = {way: (ALLOWED_UNITS if way != "manual" else MANUAL_UNITS) * UNITS[request["type"]] for way in WAYS}
    dtype = {"bf16": torch.bfloat16}[request["type"]]
    generator = torch.Generator(device).manual_seed(request["seed"])

    def make(*shape, scale=1.0):
        return (torch.randn(shape, generator=generator, device=device, dtype=torch.float32) * scale).to(dtype)

    sets = [operator.operands(make, request["sizes"])]
    one = sum(operand.numel() * operand.element_size() for operand in sets[0])
    if device == "cuda" and request["time"]:
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        count = max(2, min(MOST_SETS, round_up(L2_FACTOR * l2 / one)))
        sets += [operator.operands(make, request["sizes"]) for _ in range(count - 1)]
    functions, absent = way_functions(operator, torch, request)
    exact = operator.exact(*(operand.double() for operand in sets[0]))
    ways = {}
    with torch.no_grad():
        for way in WAYS:
            if way not in functions:
                ways[way] = {"absent": absent[way]}
                continue
            say(f"{request['operator']}: checking {way}")
            try:
                ways[way] = checked(torch, functions[way], sets[0], exact, allowed[way])
            except Exception as error:  # a way that cannot run is left out, and said
                ways[way] = {"absent": one_line(error)}
        timed = {way: function for way, function in functions.items() if ways[way].get("right")}
        if device == "cuda" and request["time"]:
            say(f"{request['operator']}: timing {', '.join(timed)}")
            kept = {}
            time_all(torch, timed, sets, kept)
            for way in timed:  # what the timed calls left is judged too
                after = errors_of(kept[way][0], exact, allowed[way])
                if not after["right"]:
                    ways[way] = after
    return {"ways": ways, "operand_sets": len(sets), "operand_bytes": one}


def main():
    request, result = asked()
    sys.path.insert(0, HERE)
    result |= {"triton": None, "ways": {}}
    try:
        torch = torch_for(request, result)
        try:
            result["triton"] = imported("triton", request).__version__
        except Absent:
            pass
        if result["device"] == "cuda" or not request["time"]:
            result.update(measure(torch, importlib.import_module(request["module"]), request))
    except Absent as error:
        result["ways"] = {way: {"absent": str(error)} for way in WAYS}
    answer(request, result)


if __name__ == "__main__":
    main()
