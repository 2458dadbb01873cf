# task: means_of_doubles
# track: pure
"""Double precision, six axes."""

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
extern "C" void f(const double* x, double* y, long a, long b, long c, long d, long e, long g) {
    for (long j = 0; j < b * d * g; ++j) y[j] = 0;
    for (long i0 = 0; i0 < a; ++i0) for (long i1 = 0; i1 < b; ++i1) for (long i2 = 0; i2 < c; ++i2) for (long i3 = 0; i3 < d; ++i3)
        for (long i4 = 0; i4 < e; ++i4) for (long i5 = 0; i5 < g; ++i5)
            y[(i1 * d + i3) * g + i5] += x[((((i0 * b + i1) * c + i2) * d + i3) * e + i4) * g + i5];
    for (long j = 0; j < b * d * g; ++j) y[j] /= a * c * e;
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[1], x.shape[3], x.shape[5], dtype=torch.float64)
        LIBRARY.f(pointer(x), pointer(y), *map(size, x.shape))
        return y
