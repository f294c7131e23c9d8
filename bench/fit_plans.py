"""Errors of predictions on plans that a file fixes by flags: what bench/gemm/fit_few.py, bench/gemm/fit_quantised.py and bench/conv/fit_direct.py fit by."""
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
