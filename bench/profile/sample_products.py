#!/usr/bin/env python3
"""A small recording out of a large one: of each family of products one launch of some kernels, with its parameters, its call and its range.

    python3 bench/profile/sample_products.py RECORDING.rec tests/data/profile/products.rec

The recording is of a program that computes each product in a range "shape KIND BATCH M N K". Takes launches with a batch first, then others,
evenly over the family's names.
"""

import argparse
import struct

MAGIC = b"roofrec1"
TEXT, KERNEL, CALL, RANGE, LAUNCH, PARAMETERS, DEVICE, MOMENT = 1, 2, 4, 5, 6, 7, 10, 11
FAMILIES = {"nvjet": 26, "cutlass7Kernel2I": 18, "sm80_xmma_gemm": 12, "sm90_xmma_gemm": 5, "gemmSN_TN_kernel": 3, "gemmSN_NN_kernel": 1, "magma_sgemmEx_kernel": 1}


def records(data):
    at = len(MAGIC)
    while at + 8 <= len(data):
        kind, _, size = struct.unpack_from("<HHI", data, at)
        if size < 8 or at + size > len(data):
            return
        yield kind, data[at:at + size]
        at += size


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recording")
    parser.add_argument("sample")
    given = parser.parse_args()
    with open(given.recording, "rb") as file:
        data = file.read()
    texts, text_records, parameters, launched, calls, kernels, kept = {0: ""}, {}, {}, {}, {}, [], []
    ranges, opened = [], {}
    for kind, record in records(data):
        if kind == TEXT:
            number, length = struct.unpack_from("<II", record, 8)
            texts[number], text_records[number] = record[16:16 + length].decode(), record
        elif kind == PARAMETERS:
            parameters[struct.unpack_from("<I", record, 8)[0]] = record
        elif kind == LAUNCH:
            correlation, number = struct.unpack_from("<II", record, 8)
            launched[correlation] = (number, record)
        elif kind == CALL:
            start, _, name, _, correlation = struct.unpack_from("<QQIII", record, 8)
            if texts[name].startswith("cuLaunch"):
                calls[correlation] = (start, name, record)
        elif kind == RANGE:
            time, name, _, _, number, mark = struct.unpack_from("<QIIIII", record, 8)
            if mark == 1:
                opened[number] = (time, name, record)
            elif number in opened:
                start, name, first = opened.pop(number)
                ranges.append((start, time, name, first, record))
        elif kind == KERNEL:
            name, _, _, _, correlation = struct.unpack_from("<IIIII", record, 32)
            kernels.append((name, correlation, record))
        elif kind in (DEVICE, MOMENT):
            kept.append((kind, record))
    shaped = [each for each in ranges if len(texts[each[2]].split()) == 6 and texts[each[2]].startswith("shape ")]

    candidates = {family: {} for family in FAMILIES}
    for name, correlation, record in kernels:
        family = next((family for family in FAMILIES if family in texts[name]), None)
        if family is None or correlation not in calls or correlation not in launched:
            continue
        around = [each for each in shaped if each[0] <= calls[correlation][0] <= each[1]]
        if around:
            key = (texts[around[-1][2]].split()[2] == "1", texts[name])  # with a batch first
            candidates[family].setdefault(key, (name, correlation, record, around[-1]))
    out, written = [MAGIC], set()

    def write_text(number):
        if number and number not in written:
            written.add(number)
            out.append(text_records[number])

    for kind, record in kept:
        if kind == DEVICE:
            write_text(struct.unpack_from("<II", record, 8)[1])
        if kind == DEVICE or struct.unpack_from("<I", record, 16)[0] == 1:  # the beginning
            out.append(record)
    taken = []
    for family, count in FAMILIES.items():
        with_batch = sorted(key for key in candidates[family] if not key[0])[:count // 3]
        others = sorted(key for key in candidates[family] if key[0])
        left = min(len(others), count - len(with_batch))
        taken += [candidates[family][key] for key in with_batch + [others[i * len(others) // left] for i in range(left)]]
    for name, correlation, record, (_, _, range_name, first, last) in sorted(taken, key=lambda each: calls[each[1]][0]):
        for number in (name, range_name, calls[correlation][1]):
            write_text(number)
        if first not in written:
            written.add(first)
            out += [first, last]
        number, launch = launched[correlation]
        if ("parameters", number) not in written:
            written.add(("parameters", number))
            out.append(parameters[number])
        out += [launch, calls[correlation][2], record]
    out += [record for kind, record in kept if kind == MOMENT and struct.unpack_from("<I", record, 16)[0] == 2]
    with open(given.sample, "wb") as file:
        file.write(b"".join(out))
    print(f"{len(taken)} launches, {sum(map(len, out))} bytes")


if __name__ == "__main__":
    main()
