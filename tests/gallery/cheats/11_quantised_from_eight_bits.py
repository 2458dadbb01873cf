# task: quantise
# status: wrong_values
# reason: wrong
# entry: A11
# track: pure
"""Eight-bit mantissas in fixed point: the integers are off by one or two in many places."""

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
#include <vector>
static float fixed(float x) { return std::nearbyint(x * 32.0f) / 32.0f; }
extern "C" void quantise(const float* a, const float* b, int* y, long m, long k, long n) {
    for (long i = 0; i < m; ++i) for (long j = 0; j < n; ++j) {
        float sum = 0;
        for (long p = 0; p < k; ++p) sum += fixed(a[i * k + p]) * fixed(b[p * n + j]);
        const float q = std::nearbyint(sum * 4.0f);
        y[i * n + j] = q < -128 ? -128 : q > 127 ? 127 : (int) q;
    }
}
"""
LIBRARY = build(SOURCE, "-fno-fast-math")


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty(a.shape[0], b.shape[1], dtype=torch.int32)
        LIBRARY.quantise(pointer(a), pointer(b), pointer(y), size(a.shape[0]), size(a.shape[1]), size(b.shape[1]))
        return y
