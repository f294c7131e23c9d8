"""rooftile.torch's convolutions against torch's own in fp64."""

import random
import unittest

import torch
import torch.nn.functional as F
from on_gpu import assert_close, rand

import rooftile
from rooftile import torch as rt

OURS = {1: rt.conv1d, 2: rt.conv2d, 3: rt.conv3d}
TORCHS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def channels_last(tensor):
    return tensor.movedim(1, -1).contiguous().movedim(-1, 1)


class Convolutions(unittest.TestCase):
    def test_are_torchs(self):
        drawn = random.Random(58)
        for i in range(18):
            axes = i % 3 + 1
            channels, filters, taps = 8 * drawn.randint(1, 12), 8 * drawn.randint(1, 12), drawn.choice((1, 3, 5))
            numbers = {"stride": drawn.randint(1, 2), "padding": drawn.randint(0, 3), "dilation": drawn.randint(1, 2)}
            sides = [drawn.randint(9, 30) for _ in range(axes)]
            x, w = channels_last(rand(drawn.randint(1, 3), channels, *sides)), channels_last(rand(filters, channels, *[taps] * axes))
            bias = rand(filters) if drawn.random() < 0.5 else None
            with self.subTest(x=list(x.shape), w=list(w.shape), bias=bias is not None, **numbers):
                exact = TORCHS[axes](x.double(), w.double(), None if bias is None else bias.double(), **numbers)
                y = OURS[axes](x, w, bias, **numbers)
                self.assertEqual(y.shape, exact.shape)
                assert_close(y, exact, scale=4 * (channels * taps**axes) ** 0.5)

    def test_groups_are_torchs(self):
        for groups, of_each, filters, taps in ((24, 1, 24, 3), (8, 4, 32, 3), (96, 1, 96, 7), (1, 3, 16, 5)):
            x, w = channels_last(rand(2, groups * of_each, 20, 17)), channels_last(rand(filters, of_each, taps, taps))
            for bias in (None, rand(filters)):
                exact = F.conv2d(x.double(), w.double(), None if bias is None else bias.double(), padding=1, groups=groups)
                assert_close(rt.conv2d(x, w, bias, padding=1, groups=groups), exact, scale=4 * taps)

    def test_channels_outermost_are_packed(self):
        for channels, sides in ((32, (20, 17)), (3, (21, 15)), (16, (9, 8, 7)), (24, (50,))):
            axes = len(sides)
            x, w, bias = rand(2, channels, *sides), channels_last(rand(16, channels, *[3] * axes)), rand(16)
            y = OURS[axes](x, w, bias, padding=1)
            assert_close(y, TORCHS[axes](x.double(), w.double(), bias.double(), padding=1), scale=4 * (channels * 3**axes) ** 0.5)
            self.assertTrue(y.movedim(1, -1).is_contiguous())

    def test_gradients_are_torchs(self):
        x, w, bias = channels_last(rand(2, 16, 9, 11)), channels_last(rand(24, 16, 3, 3)), rand(24)
        ours, exact = ([t.detach().to(kind).requires_grad_() for t in (x, w, bias)] for kind in (x.dtype, torch.float64))
        y, z = rt.conv2d(*ours, padding=1, stride=2), F.conv2d(*exact, padding=1, stride=2)
        given = rand(*y.shape)
        y.backward(given), z.backward(given.double())
        for mine, other in zip(ours, exact, strict=True):
            assert_close(mine.grad, other.grad, scale=100)

    def test_planned_gradients_are_torchs(self):
        if torch.cuda.get_device_capability()[0] != 9:
            self.skipTest("skipped: gradients are planned for Hopper")
        drawn = random.Random(63)
        for i in range(12):
            axes = i % 3 + 1
            channels, filters, taps = 64 * drawn.randint(1, 3), 8 * drawn.randint(1, 12), drawn.choice((1, 3, 5))
            numbers = {"padding": drawn.randint(0, taps - 1), "dilation": drawn.randint(1, 2)}
            x, w = (channels_last(rand(n, channels, *sides)) for n, sides in ((2, [drawn.randint(9, 20) for _ in range(axes)]), (filters, [taps] * axes)))
            for stride in (1, drawn.randint(2, 3)):
                exact = [t.double().requires_grad_() for t in (x, w)]
                y = TORCHS[axes](*exact, stride=stride, **numbers)
                dy = channels_last(rand(*y.shape))
                y.backward(dy.double())
                with self.subTest(x=list(x.shape), w=list(w.shape), stride=stride, **numbers):
                    dw = OURS[axes](dy, x, gradient="weights", kernel_size=taps, stride=stride, **numbers)
                    self.assertEqual(dw.shape, w.shape)
                    assert_close(dw, exact[1].grad, scale=4 * (dy.numel() / filters) ** 0.5)
                    if stride == 1:
                        dx = OURS[axes](dy, w, gradient="data", **numbers)
                        self.assertEqual(dx.shape, x.shape)
                        assert_close(dx, exact[0].grad, scale=4 * (filters * taps**axes) ** 0.5)

    def test_what_they_do_not_take_is_refused(self):
        x, w = rand(2, 16, 9, 9), channels_last(rand(24, 16, 3, 3))
        for call, said in (
            (lambda: rt.conv2d(x.mT, w), "channels_last"),
            (lambda: rt.conv2d(x, rand(24, 16, 3, 3)), "channels_last"),
            (lambda: rt.conv2d(channels_last(x), w, groups=5), "groups"),
            (lambda: rt.conv2d(channels_last(x), channels_last(rand(24, 8, 3, 3))), "channels"),
            (lambda: rt.conv1d(channels_last(x), w), "axes"),
            (lambda: rt.conv2d(channels_last(x), w, stride=(1, 2, 3)), "stride"),
            (lambda: rt.conv2d(channels_last(x), w, kernel_size=3), "kernel_size"),
            (lambda: rt.conv2d(channels_last(x), channels_last(x), gradient="weights"), "kernel_size"),
            (lambda: rt.conv2d(channels_last(x), w, rand(24), gradient="data"), "bias"),
        ):
            with self.assertRaisesRegex(rooftile.RequestError, said):
                call()


if __name__ == "__main__":
    unittest.main()
