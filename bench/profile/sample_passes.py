#!/usr/bin/env python3
"""A small recording out of large ones: PyTorch's kernels that mostly move tensors, and those of attention, one launch each with its parameters.

    python3 bench/profile/sample_passes.py tests/data/profile/passes.rec RECORDING.rec...

Of each name and grid it keeps the launch of median time, of the six longest grids of a name. A kernel of a graph becomes a launch by itself, since
the sample has no graph.
"""

import argparse
import struct

from sample_products import CALL, DEVICE, KERNEL, LAUNCH, MAGIC, MOMENT, PARAMETERS, TEXT, records

NODE, CLONE = 8, 9
NAMES = ("vectorized_elementwise_kernel", "unrolled_elementwise_kernel", "elementwise_kernelILi", "vectorized_layer_norm_kernel", "softmax_warp_forward",
         "cunn_SoftMaxForward", "13reduce_kernelILi", "CatArrayBatchedCopy", "flash_fwd_kernel", "sdpa_sm90_flash_fprop")
GRIDS = 6


class Recording:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        texts, parameters, launched, nodes, clones, self.device, self.begin = {0: ""}, {}, {}, {}, {}, None, None
        kernels = []
        for kind, record in records(data):
            if kind == TEXT:
                number, length = struct.unpack_from("<II", record, 8)
                texts[number] = record[16:16 + length].decode()
            elif kind == PARAMETERS:
                parameters[struct.unpack_from("<I", record, 8)[0]] = record
            elif kind == LAUNCH:
                correlation, number = struct.unpack_from("<II", record, 8)
                launched[correlation] = number
            elif kind == NODE:
                node, correlation = struct.unpack_from("<QI", record, 8)
                nodes[node] = correlation
            elif kind == CLONE:
                node, original = struct.unpack_from("<QQ", record, 8)
                clones[node] = original
            elif kind == DEVICE:
                self.device = record
            elif kind == MOMENT and struct.unpack_from("<I", record, 16)[0] == 1:
                self.begin = record
            elif kind == KERNEL:
                kernels.append(record)
        self.texts = texts
        self.groups = {}
        for record in kernels:
            start, end, node, name, _, _, _, correlation = struct.unpack_from("<QQQIIIII", record, 8)
            if not any(part in texts[name] for part in NAMES) or "cublasLt" in texts[name]:
                continue
            while node and node not in nodes and node in clones:
                node = clones[node]
            number = launched.get(nodes.get(node, correlation))
            if number in parameters:
                grid = struct.unpack_from("<3i", record, 56)
                self.groups.setdefault(texts[name], {}).setdefault(grid, []).append((end - start, record, parameters[number]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sample")
    parser.add_argument("recordings", nargs="+")
    given = parser.parse_args()
    out, texts, taken, seen = [MAGIC], {}, 0, set()

    def text(value):
        if value not in texts:
            texts[value] = len(texts) + 1
            body = value.encode()
            size = (16 + len(body) + 7) // 8 * 8
            out.append((struct.pack("<HHIII", TEXT, 0, size, texts[value], len(body)) + body).ljust(size, b"\0"))
        return texts[value]

    for path in given.recordings:
        recording = Recording(path)
        if len(out) == 1:
            name = text(recording.texts[struct.unpack_from("<I", recording.device, 12)[0]])
            out.append(recording.begin)
            out.append(recording.device[:12] + struct.pack("<I", name) + recording.device[16:])
        for name, grids in recording.groups.items():
            for grid, launches in sorted(grids.items(), key=lambda each: -max(ns for ns, _, _ in each[1]))[:GRIDS]:
                if (name, grid) in seen:
                    continue
                seen.add((name, grid))
                _, record, parameters = sorted(launches, key=lambda each: each[0])[len(launches) // 2]
                taken += 1
                number = text(name)
                out.append(parameters[:8] + struct.pack("<I", taken) + parameters[12:])
                out.append(struct.pack("<HHIII", LAUNCH, 0, 16, taken, taken))
                # No node, its own correlation, no graph.
                out.append(record[:24] + struct.pack("<QI", 0, number) + record[36:48] + struct.pack("<II", taken, 0) + record[56:])
    with open(given.sample, "wb") as file:
        file.write(b"".join(out))
    print(f"{taken} launches, {sum(map(len, out))} bytes")


if __name__ == "__main__":
    main()
