"""rooftile.pack() on plain arrays; needs no GPU."""

import array
import json
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

    def test_floats_and_tables_are_packed_as_their_bits(self):
        # 1.5 and -2^-9 in e4m3, side by side along K: halves of the first word.
        packed = rooftile.pack(matrix("B", 2, 8, [0x3C, 0x81] + [0] * 14), matrix("f", 2, 1, [1, 1]), weights="fp8_e4m3")
        self.assertEqual((packed.group, packed.scale), (128, "bf16"))
        self.assertEqual(packed.data[128:132], b"\x3c\x00\x81\x00")
        with self.assertRaisesRegex(rooftile.RequestError, r"q\[0, 1\] is 127; accepted are bits of finite numbers of fp8_e4m3"):
            rooftile.pack(matrix("B", 1, 8, [0, 0x7F] + [0] * 6), matrix("f", 1, 1, [1]), weights="fp8_e4m3")
        # Of tables they are the halves of a byte; scales of mxfp4 are numbers or their exponents.
        for scales in (matrix("f", 1, 2, [0.5, 4]), matrix("B", 1, 2, [126, 129])):
            packed = rooftile.pack(matrix("B", 1, 40, [7, 10] + [0] * 38), scales, weights="mxfp4")
            self.assertEqual((packed.group, packed.scale), (32, "e8m0"))
            self.assertEqual(packed.data[128], 0xA7)
            self.assertEqual((packed.data[128 + 4096], packed.data[128 + 4096 + 64]), (126, 129))
        with self.assertRaisesRegex(rooftile.RequestError, r"scales\[0, 1\] is 3; accepted are powers of two"):
            rooftile.pack(matrix("B", 1, 40, [1] * 40), matrix("f", 1, 2, [1, 3]), weights="mxfp4")
        self.assertEqual(rooftile.pack(matrix("B", 1, 8, [3] * 8), matrix("f", 1, 1, [1]), weights="nf4").group, 64)

    def test_what_is_loaded_says_what_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "packed")
            for weights in ("int4", "uint4", "int8", "fp8_e4m3", "fp8_e5m2", "mxfp4", "nf4"):
                packed = rooftile.pack(matrix("B", 1, 8, [1] * 8), matrix("f", 1, 1, [1]), weights=weights)
                with open(path, "wb") as out:
                    out.write(packed.data)
                loaded = rooftile.Packed.load(path)
                self.assertEqual(loaded.fields("bf16"), packed.fields("bf16"))
                self.assertEqual(loaded.data, packed.data)

    def test_zeros_of_floats_are_numbers_of_their_own(self):
        packed = rooftile.pack(matrix("b", 2, 8, [0] * 16), matrix("f", 2, 1, [1, 1]), matrix("f", 2, 1, [0.5, -2]))
        self.assertEqual(packed.zeros, "float")
        at = 128 + 4096 + 128  # header, weights, scales
        self.assertEqual(packed.data[at : at + 4], b"\x00\x3f\x00\xc0")
        self.assertEqual(len(packed.data), at + 128)


def unpacked(packed):
    """Every weight in fp64, from the bytes: kernels/gemm/quantised_weights.hpp has the layout."""
    import numpy

    data = numpy.frombuffer(packed.data, dtype=numpy.uint8)
    width = 128 if packed.group == "row" else packed.group
    groups, zero_bytes = 128 // width, {"none": 0, "int": 1, "float": 2}[packed.zeros]
    bits, bias = {"int8": (8, 128), "int4": (4, 8)}.get(packed.weights, (8 if packed.weights.startswith("fp8") else 4, 0))
    scale_bytes = 1 if packed.scale == "e8m0" else 2
    weight_bytes = 64 * 128 * bits // 8
    blocks_k, block_bytes = -(-packed.k // 128), weight_bytes + groups * 64 * (scale_bytes + zero_bytes)
    n, k = numpy.arange(packed.n)[:, None], numpy.arange(packed.k)[None, :]
    at = 128 + (n // 64 * blocks_k + k // 128) * block_bytes
    row, column = n % 64, k % 128
    lane = row % 8 * 4 + column % 8 // 2
    if bits == 4:
        word = column // 64 * 512 + row // 16 * 128 + lane * 4 + column % 64 // 16
        place = row % 16 // 8 + column % 16 // 8 * 2
        shift = 8 * place + 4 * (column % 2) if packed.weights in ("mxfp4", "nf4") else 4 * place + 16 * (column % 2)
    else:
        word = column // 64 * 1024 + row // 16 * 256 + column % 64 // 32 * 128 + lane * 4 + column % 32 // 8
        shift = 16 * (row % 16 // 8) + 8 * (column % 2)
        if packed.weights != "int8":
            shift = 8 * (row % 16 // 8) + 16 * (column % 2)
    q = (data[at + 4 * word + shift // 8] >> (shift % 8) & (1 << bits) - 1).astype(numpy.float64)

    if packed.weights == "mxfp4":
        q = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])[q.astype(int)]

    def number(first):
        if packed.scale == "e8m0":
            return 2.0 ** (data[first].astype(int) - 127)
        bits = (data[first].astype(numpy.uint32) | data[first + 1].astype(numpy.uint32) << 8)
        if packed.scale == "bf16":
            return (bits << 16).view(numpy.float32).astype(numpy.float64)
        return bits.astype(numpy.uint16).view(numpy.float16).astype(numpy.float64)

    place = column // width * 64 + row
    zeros = at + weight_bytes + groups * 64 * scale_bytes + place * zero_bytes
    whole = data[zeros] if packed.zeros == "int" else bias
    return (q - whole) * number(at + weight_bytes + place * scale_bytes) - (number(zeros) if packed.zeros == "float" else 0)


def safetensors(path, tensors):
    """A file of NumPy's arrays, as the format's specification has it."""
    names = {"int32": "I32", "float16": "F16", "float32": "F32"}
    header, data = {}, b""
    for name, array in tensors.items():
        begin = len(data)
        data += array.tobytes()
        header[name] = {"dtype": names[str(array.dtype)], "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


class Files(unittest.TestCase):
    def setUp(self):
        try:
            import numpy  # noqa: F401
        except ImportError as error:
            self.skipTest(f"{error}: pip install numpy")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "model")

    def test_gguf_is_what_its_own_reader_makes_of_it(self):
        try:
            import gguf
        except ImportError as error:
            self.skipTest(f"{error}: pip install gguf")
        import numpy

        random = numpy.random.default_rng(5)
        kind = gguf.GGMLQuantizationType
        n, k = 70, 512
        stored = {
            "w.q4_0": (kind.Q4_0, gguf.quantize(random.standard_normal((n, k)).astype(numpy.float32), kind.Q4_0)),
            "w.q5_0": (kind.Q5_0, gguf.quantize(random.standard_normal((n, k)).astype(numpy.float32), kind.Q5_0)),
            "w.q8_0": (kind.Q8_0, gguf.quantize(random.standard_normal((n, k)).astype(numpy.float32), kind.Q8_0)),
        }
        if hasattr(kind, "MXFP4"):
            stored["w.mxfp4"] = (kind.MXFP4, gguf.quantize(random.standard_normal((n, k)).astype(numpy.float32), kind.MXFP4))
        # gguf quantises to no Q4_K: any bits are one, and the two numbers that scale a block are made finite.
        blocks = random.integers(0, 256, (n * k // 256, 144), dtype=numpy.uint8)
        blocks[:, :4] = (random.random((len(blocks), 2)) / 64).astype(numpy.float16).view(numpy.uint8)
        stored["w.q4_k"] = (kind.Q4_K, blocks.reshape(n, -1))
        writer = gguf.GGUFWriter(self.path, "llama")
        writer.add_array("some.texts", ["a", "bc"])
        for name, (type, data) in stored.items():
            writer.add_tensor(name, data, raw_dtype=type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        for name, weights, zeros, most in (
            ("w.q4_0", "int4", "none", 0), ("w.q8_0", "int8", "none", 0), ("w.q4_k", "uint4", "float", 2**-10),
            ("w.mxfp4", "mxfp4", "none", 0),
        ):  # fmt: skip
            if name not in stored:
                continue
            type, data = stored[name]
            theirs = gguf.dequantize(data, type).reshape(n, k).astype(numpy.float64)
            packed = rooftile.pack_file(self.path, name)
            self.assertEqual((packed.n, packed.k, packed.weights, packed.group, packed.zeros), (n, k, weights, 32, zeros))
            # Q4_K's scales and minima have up to 17 bits and are rounded to 11: of 15 scales and a minimum together.
            size = 0 if most == 0 else numpy.abs(theirs).max()
            self.assertLessEqual(numpy.abs(unpacked(packed) - theirs).max(), most * size)
        with self.assertRaisesRegex(rooftile.RequestError, "w.q5_0 is Q5_0"):
            rooftile.pack_file(self.path, "w.q5_0")
        with self.assertRaisesRegex(rooftile.RequestError, "nearest is w.q4_0"):
            rooftile.pack_file(self.path, "w.q4_00")

    def test_layers_of_awq_and_gptq_are_what_their_formulas_say(self):
        import numpy

        random = numpy.random.default_rng(6)
        n, k, group = 136, 384, 128
        q = random.integers(0, 16, (k, n), dtype=numpy.int64)
        zeros = random.integers(1, 16, (k // group, n), dtype=numpy.int64)
        scales = (random.random((k // group, n)) + 0.5).astype(numpy.float16)
        index = numpy.arange(k) // group
        exact = (scales[index].astype(numpy.float64) * (q - zeros[index])).T

        def words(numbers, axis, order=range(8)):
            eights = numpy.moveaxis(numbers, axis, -1)
            eights = eights.reshape(*eights.shape[:-1], -1, 8)
            packed = sum(eights[..., column] << 4 * place for place, column in enumerate(order))
            return numpy.ascontiguousarray(numpy.moveaxis(packed, -1, axis).astype(numpy.uint32).view(numpy.int32))

        awq = (0, 2, 4, 6, 1, 3, 5, 7)
        layers = {
            "awq": {"qweight": words(q, 1, awq), "qzeros": words(zeros, 1, awq)},
            "gptq": {"qweight": words(q, 0), "qzeros": words(zeros - 1, 1), "g_idx": index.astype(numpy.int32)},
            "moved": {"qweight": words(q, 0), "qzeros": words(zeros - 1, 1), "g_idx": index[::-1].astype(numpy.int32)},
        }
        tensors = {layer: {**arrays, "scales": scales} for layer, arrays in layers.items()}
        safetensors(self.path, {f"{layer}.{name}": array for layer, arrays in tensors.items() for name, array in arrays.items()})
        for layer in ("awq", "gptq"):
            with self.subTest(layer):
                packed = rooftile.pack_file(self.path, layer)
                self.assertEqual((packed.n, packed.k, packed.weights, packed.group, packed.zeros), (n, k, "uint4", group, "int"))
                self.assertTrue((unpacked(packed) == exact).all())
        with self.assertRaisesRegex(rooftile.RequestError, r"moved.g_idx\[0\] is 2"):
            rooftile.pack_file(self.path, "moved")
        rounded = rooftile.pack_file(self.path, "awq", scale="bf16")
        self.assertLess(numpy.abs(unpacked(rounded) / exact.clip(1e-9) - 1)[exact > 0].max(), 2**-8)

    def test_packed_files_are_loaded_again(self):
        q, few = matrix("b", 3, 136, [1] * 408), matrix("f", 3, 5, [2] * 15)
        for options in (
            {"group": 32}, {"group": 32, "zeros": matrix("b", 3, 5, [3] * 15)}, {"group": 32, "weights": "int8"},
            {"group": 32, "zeros": few, "weights": "uint4", "scale": "fp16"},
            {"group": "row", "scales": matrix("f", 3, 1, [1] * 3)},
        ):  # fmt: skip
            packed = rooftile.pack(q, **{"scales": few, **options})
            with open(self.path, "wb") as out:
                out.write(packed.data)
            again = rooftile.Packed.load(self.path)
            self.assertEqual((again.data, again.fields("fp16")), (packed.data, packed.fields("fp16")))
        with open(self.path, "ab") as out:
            out.write(b"0")
        with self.assertRaisesRegex(rooftile.RequestError, "bytes; weights of 3 x 136 take"):
            rooftile.Packed.load(self.path)
        with open(self.path, "wb") as out:
            out.write(b"GGUF" + bytes(200))
        with self.assertRaisesRegex(rooftile.RequestError, "no packed weights"):
            rooftile.Packed.load(self.path)


if __name__ == "__main__":
    unittest.main()
