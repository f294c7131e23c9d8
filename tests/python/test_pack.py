"""rooftile.pack() on plain arrays; needs no GPU."""

import array
import os
import struct
import tempfile
import unittest

import rooftile


def matrix(code, rows, columns, values):
    values = list(values)
    return memoryview(array.array(code, values)).cast("B").cast(code, shape=[rows, columns]) if values else None


class Pack(unittest.TestCase):
    def setUp(self):
        try:
            rooftile.pack(matrix("b", 1, 8, [0] * 8), matrix("f", 1, 1, [1]))
        except rooftile.RequestError as error:
            if "no operation" in str(error):
                self.skipTest(str(error))
            raise

    def test_has_the_bytes_that_a_plan_takes(self):
        n, k = 70, 200
        q = matrix("b", n, k, ((i * 7 + 3) % 16 - 8 for i in range(n * k)))
        packed = rooftile.pack(q, matrix("f", n, 4, [0.5] * (n * 4)), group=64)
        fields = packed.fields("bf16")
        op = next(o.name for o in rooftile.operations().values() if any(f.key == "quant_group" for f in o.fields))
        plan = rooftile.plan(op, machine="h200-sxm", m=3, k=k, **fields)
        self.assertEqual([t.shape for t in plan.tensors if t.type == "uint8"], [(len(packed.data),)])
        # 2 x 2 blocks of 4096 B of weights and 2 x 64 scales of 2 B, behind 128 B; row 0's first pair is in the first word's bits 0 and 16.
        self.assertEqual(len(packed.data), 128 + 4 * (4096 + 256))
        word = int.from_bytes(packed.data[128:132], "little")
        self.assertEqual((word & 15, word >> 16 & 15), (3 % 16, 10 % 16))
        self.assertEqual(packed.data[128 + 4096 : 128 + 4098], b"\x00\x3f")  # 0.5 in bf16

    def test_refuses_what_does_not_fit(self):
        scales = matrix("f", 2, 1, [1, 1])
        for q, text in (
            (matrix("b", 2, 8, [0] * 15 + [8]), r"q\[1, 7\] is 8; accepted are -8 \.\. 7"),
            (matrix("f", 2, 8, [0] * 16), "q is fp32"),
            (matrix("b", 3, 8, [0] * 24), r"scales is \[2, 1\]; here it is \[3, 1\]"),
            ([[0]], "buffer protocol"),
            (memoryview(b"12"), "1 axes"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(rooftile.RequestError, text):
                rooftile.pack(q, scales)
        q = matrix("b", 2, 8, [0] * 16)
        for named, text in (({"group": 48}, "48"), ({"weights": "int3"}, "int3"), ({"scale": "fp32"}, "fp32")):
            with self.subTest(**named), self.assertRaisesRegex(rooftile.RequestError, text):
                rooftile.pack(q, scales, **named)
        with self.assertRaisesRegex(rooftile.RequestError, r"zeros\[0, 0\] is 9"):
            rooftile.pack(q, scales, matrix("b", 2, 1, [9, 0]))


def unpacked(packed, n, k):
    """(q + bias) * scale in fp16 of row n, column k of int4 in groups of 32, from the bytes: docs in kernels/gemm/quantised_weights.hpp."""
    blocks_k, block_bytes = -(-packed.k // 128), 4096 + 4 * 128
    at = 128 + (n // 64 * blocks_k + k // 128) * block_bytes
    row, column = n % 64, k % 128
    lane = row % 8 * 4 + column % 8 // 2
    word = column // 64 * 512 + row // 16 * 128 + lane * 4 + column % 64 // 16
    shift = 4 * (row % 16 // 8 + column % 16 // 8 * 2) + 16 * (column % 2)
    q = int.from_bytes(packed.data[at + 4 * word : at + 4 * word + 4], "little") >> shift & 15
    scale = at + 4096 + (column // 32 * 64 + row) * 2
    return (q - 8) * struct.unpack("<e", packed.data[scale : scale + 2])[0]


class Gguf(unittest.TestCase):
    def test_q4_0_is_what_its_own_reader_makes_of_it(self):
        try:
            import gguf
            import numpy
        except ImportError as error:
            self.skipTest(f"{error}: pip install gguf")
        n, k = 70, 192
        weights = numpy.random.default_rng(5).standard_normal((n, k)).astype(numpy.float32)
        kind = gguf.GGMLQuantizationType
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "small.gguf")
            writer = gguf.GGUFWriter(path, "llama")
            for name, type in (("w.weight", kind.Q4_0), ("x.weight", kind.Q8_0)):
                writer.add_tensor(name, gguf.quantize(weights, type), raw_dtype=type)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            packed = rooftile.pack_gguf(path, "w.weight")
            with self.assertRaisesRegex(rooftile.RequestError, "x.weight is Q8_0"):
                rooftile.pack_gguf(path, "x.weight")
            with self.assertRaisesRegex(rooftile.RequestError, "nearest is 'w.weight'"):
                rooftile.pack_gguf(path, "w.weigth")
        self.assertEqual((packed.n, packed.k, packed.weights, packed.group), (n, k, "int4", 32))
        theirs = gguf.dequantize(gguf.quantize(weights, kind.Q4_0), kind.Q4_0)
        for row in range(n):
            for column in range(k):
                self.assertEqual(unpacked(packed, row, column), float(theirs[row, column]))


if __name__ == "__main__":
    unittest.main()
