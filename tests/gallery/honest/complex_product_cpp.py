# task: complex_product
# track: pure
"""Complex numbers as pairs of floats, two outputs of different dtypes."""

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
#include <complex>
#include <cmath>
extern "C" void f(const float* x, const float* y, float* z, float* a, long n) {
    #pragma omp parallel for simd
    for (long i = 0; i < n; ++i) {
        float re = x[2*i] * y[2*i] - x[2*i+1] * y[2*i+1], im = x[2*i] * y[2*i+1] + x[2*i+1] * y[2*i];
        z[2*i] = re; z[2*i+1] = im; a[i] = hypotf(re, im);
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        z, a = torch.empty_like(x), torch.empty(x.shape)
        LIBRARY.f(pointer(x), pointer(y), pointer(z), pointer(a), size(x.numel()))
        return z, a
