"""Errors of predictions on plans that flags fix: what bench/gemm/fit_few.py, bench/gemm/fit_quantised.py and bench/conv/fit_*.py fit by."""
import itertools
import json
import subprocess


def lines_of(path):
    """(microseconds, flags of `plan OPERATION`) of each line of a file."""
    return [line.split(None, 1) for line in path.read_text().splitlines() if line and not line.startswith('#')]


def errors(program, operation, lines, machine, numbers):
    """Predicted / measured - 1 of each line, with the machine's `numbers` replaced: {key: 'value unit'}."""
    sets = [word for key, value in numbers.items() for word in ('--set', f'{key}={value}')]
    out = []
    for us, flags in lines:
        command = [program, 'plan', operation, *flags.split(), '--machine', machine, '--top', '1', '--json', *sets]
        plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['plans'][0]
        out.append(plan['prediction']['time_us'] / float(us) - 1)
    return out


def mean(values):
    return sum(values) / len(values)


def summary(name, part):
    print(f'{name}: {len(part)} plans, {100 * mean([abs(e) for e in part]):.1f} % off, signed {100 * mean(part):+.1f} %, at worst {100 * max(map(abs, part)):.1f} %')


def fit(program, operation, lines, machine, grid):
    """Of `grid`, {key: values with units}, what every second line is predicted best by; prints its error on these and on the others."""
    def of(part, values):
        return errors(program, operation, part, machine, dict(zip(grid, values)))

    best = min(itertools.product(*grid.values()), key=lambda values: mean([abs(e) for e in of(lines[::2], values)]))
    summary('fitted', of(lines[::2], best))
    summary('unseen', of(lines[1::2], best))
    print(', '.join(f'{key} = {value}' for key, value in zip(grid, best)))
