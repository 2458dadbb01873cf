# task: gelu_shapes
# track: pure
"""Walks the strides of its input itself instead of copying it."""

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
#include <cmath>
extern "C" void gelu(const float* x, float* y, long rows, long columns, long step, long stride) {
    for (long r = 0; r < rows; ++r)
        for (long c = 0; c < columns; ++c) {
            const float v = x[r * step + c * stride];
            y[r * columns + c] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
        }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape)
        LIBRARY.gelu(pointer(x), pointer(y), *map(size, (*x.shape, *x.stride())))
        return y
