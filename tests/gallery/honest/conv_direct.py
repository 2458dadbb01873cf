# task: conv
# track: pure
"""A direct convolution with its borders cut off by hand."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn


def build(source, *flags):
    """Compile C++ to a shared object in the folder for temporary files, once for each source."""
    name = os.path.join(tempfile.gettempdir(), "gallery_" + hashlib.sha256((source + repr(flags)).encode()).hexdigest()[:16])
    if not os.path.exists(name + ".so"):
        with open(name + ".cpp", "w") as file:
            file.write(source)
        command = ["g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", *flags, name + ".cpp", "-o", name + ".part"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        os.replace(name + ".part", name + ".so")
    return ctypes.CDLL(name + ".so")


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def size(value):
    return ctypes.c_long(value)


SOURCE = r"""
extern "C" void conv(const float* x, const float* w, const float* bias, float* y, long B, long C, long O, long H, long W) {
    #pragma omp parallel for collapse(2)
    for (long b = 0; b < B; ++b)
        for (long o = 0; o < O; ++o)
            for (long i = 0; i < H; ++i)
                for (long j = 0; j < W; ++j) {
                    float sum = bias[o];
                    for (long c = 0; c < C; ++c)
                        for (long p = -1; p < 2; ++p)
                            for (long q = -1; q < 2; ++q)
                                if (i + p >= 0 && i + p < H && j + q >= 0 && j + q < W)
                                    sum += x[((b * C + c) * H + i + p) * W + j + q] * w[((o * C + c) * 3 + p + 1) * 3 + q + 1];
                    y[((b * O + o) * H + i) * W + j] = sum;
                }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        x = x.contiguous()
        b, c, h, w = x.shape
        filters = self.conv.weight.shape[0]
        y = torch.empty(b, filters, h, w)
        given = pointer(self.conv.weight), pointer(self.conv.bias)
        LIBRARY.conv(pointer(x), *given, pointer(y), size(b), size(c), size(filters), size(h), size(w))
        return y
