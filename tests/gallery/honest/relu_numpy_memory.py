# task: relu
# track: pure
"""Memory of numpy's, and numpy for the arithmetic of borders."""

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


import numpy

SOURCE = r"""
extern "C" void relu(const float* x, float* y, long n) {
    #pragma omp parallel for simd
    for (long i = 0; i < n; ++i) y[i] = x[i] != x[i] ? x[i] : (x[i] > 0.0f ? x[i] : 0.0f);
}
"""
LIBRARY = build(SOURCE)


def honest(x, y=None):
    x = x.contiguous()
    y = numpy.empty(tuple(x.shape), dtype=numpy.float32)
    cuts = numpy.linspace(0, x.numel(), 5).astype(numpy.int64)
    for start, stop in zip(cuts[:-1], cuts[1:]):
        LIBRARY.relu(
            ctypes.c_void_p(x.data_ptr() + 4 * int(start)),
            ctypes.c_void_p(y.ctypes.data + 4 * int(start)),
            size(int(stop - start)),
        )
    return torch.from_numpy(y)


class ModelNew(nn.Module):
    def forward(self, x):
        return honest(x)
